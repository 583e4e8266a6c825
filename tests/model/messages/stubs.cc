// What lies around the messages of one node, beside what tests/model/stubs.cc has: nothing far,
// nothing attached, and limits so small that a few words make a message of each kind.
#include <string>
#include <vector>

#include "channel/attachments.hpp"
#include "channel/own_memory.hpp"
#include "messages/copy_threads.hpp"
#include "messages/far.hpp"
#include "model/model.hpp"
#include "mpi/collectively.hpp"
#include "node/liveness.hpp"
#include "node/machine_share.hpp"
#include "node/peers.hpp"
#include "node/rank_nodes.hpp"
#include "tuning/limits.hpp"

namespace ropewalk {

namespace tuning {

ChannelLimits channel_limits(int /*ranks*/, bool /*crowded*/) {
  constexpr std::size_t never = ~std::size_t{0};
  ChannelLimits limits{};
  limits.slot_bytes = 160;
  limits.private_slot_bytes = 160;
  limits.both_bytes = 0;
  limits.piece_bytes = 64;
  limits.pipeline_piece_bytes = 64;
  limits.streaming_bytes = never;
  limits.by_kernel_bytes = never;
  limits.attach_bytes = never;
  limits.spins = 1;
  return limits;
}

}  // namespace tuning

namespace mpi {

bool try_split(Comm comm, int /*color*/, int /*key*/, Comm& made) {
  made = comm;
  return true;
}
void free(Comm& /*comm*/) {}
Failure current_failure() { return {}; }
int FailuresByMpi::rank() const { return model::rank(); }
void FailuresByMpi::least(std::array<std::int64_t, 2>& /*values*/) const {}
void FailuresByMpi::tell(Failure& /*failure*/, int /*root*/) const {}
void share_failure(const FailureExchange& /*ranks*/, const Failure* own) {
  if (own != nullptr) throw Error(ErrorCode::internal, "the set-up of the model has failed");
}
CollectiveSection::CollectiveSection(const FailureExchange& ranks) noexcept
    : ranks_(ranks.id()), outer_(nullptr) {}
CollectiveSection::~CollectiveSection() = default;

}  // namespace mpi

namespace node {

Peer& Team::peer(int /*rank*/) const noexcept {
  static const auto somebody = std::make_shared<Peer>();
  return *somebody;
}
std::vector<int> nodes_of_ranks(mpi::Comm /*comm*/) {
  return std::vector<int>(static_cast<std::size_t>(model::ranks()));
}
Crowding crowding(mpi::Comm /*comm*/, int /*size*/) { return {}; }
std::unique_ptr<Liveness> Liveness::create(mpi::Comm /*comm*/, std::string& /*reason*/) {
  return nullptr;
}
void Liveness::look() {}
void Liveness::throw_lost() { throw Error(ErrorCode::peer_dead, "nobody dies in the model"); }

}  // namespace node

namespace channel {

bool OwnMemory::is_copied_by_kernel(const void* /*data*/, std::size_t /*bytes*/) noexcept {
  return false;
}
std::unique_ptr<Attachments> Attachments::create(node::Team& /*team*/, std::string& /*reason*/) {
  return nullptr;
}
Attachments::~Attachments() = default;
std::byte* Attachments::attach(int /*peer*/, std::uint64_t /*address*/, std::size_t /*bytes*/) {
  return nullptr;
}
void Attachments::end_call() noexcept {}

}  // namespace channel

void threads::Thread::join() noexcept {}

namespace messages {

// The ranks of the model have one thread each.
CopyThreads::CopyThreads(int /*threads*/, bool crowded) : news_(crowded) {}
CopyThreads::~CopyThreads() = default;
void CopyThreads::run(void (*work)(const void*), const void* object) noexcept { work(object); }

Far::Far(mpi::Comm comm, int /*rank*/, Posted& posted) : comm_(comm), posted_(posted) {}
Far::~Far() = default;
void Far::start_send(MessageOperation& /*operation*/) {}
void Far::advance() {}
void Far::withdraw(MessageOperation& /*operation*/) noexcept {}
std::optional<MessageStatus> Far::probe(int /*source*/, int /*tag*/) { return {}; }

}  // namespace messages
}  // namespace ropewalk
