// A process group without an MPI: a key-value store brings its ranks together, and sockets carry
// the messages between their nodes.
#include "ropewalk/store_communicator.hpp"

#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "mpi/collectively.hpp"
#include "mpi/mpi.hpp"
#include "node/node_number.hpp"
#include "without_mpi/library.hpp"
#include "without_mpi/members.hpp"

namespace ropewalk {
namespace without_mpi {
namespace {

bool on_several_nodes(Member& group) {
  const std::vector<std::string> names = group.share(node::node_name());
  return std::set<std::string>(names.begin(), names.end()).size() > 1;
}

// Connects the ranks of several nodes. What one rank throws, all throw.
void connect(mpi::Comm comm, Member& group, int timeout_s) {
  std::shared_ptr<Endpoint> endpoint;
  mpi::collectively(comm, [&] { endpoint = std::make_shared<Endpoint>(group.rank()); });
  std::vector<node::Contact> contacts(static_cast<std::size_t>(group.size()));
  mpi::all_gather(&endpoint->own(), contacts.data(), sizeof(node::Contact), comm);
  mpi::collectively(comm, [&] { endpoint->find_routes(contacts); });
  endpoint->stop_answering();  // nobody asks any more, since all have come through the last call
  group.open(std::move(endpoint), timeout_s);
}

MemberPointer make_group(std::shared_ptr<KeyValueStore> store, int rank, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<Member>(std::move(store), "", std::move(ranks), rank);
}

void free(Word group) noexcept {
  try {
    find(group)->close_group();
  } catch (const std::exception&) {  // it is closed
  }
  remove_group(group);
  mpi::library().call.comm_free(&group);
}

}  // namespace
}  // namespace without_mpi

StoreCommunicator::StoreCommunicator(std::shared_ptr<KeyValueStore> store, int rank, int size,
                                     int timeout_s)
    : made_(std::uintptr_t{0}) {
  without_mpi::install();
  const without_mpi::MemberPointer group = without_mpi::make_group(std::move(store), rank, size);
  const without_mpi::Word word = without_mpi::add(group);
  without_mpi::add_group(word);
  made_ = Communicator(word);
  try {
    if (without_mpi::on_several_nodes(*group)) {
      without_mpi::connect({word}, *group, timeout_s);
    }
  } catch (...) {
    without_mpi::free(word);
    throw;
  }
}

StoreCommunicator::~StoreCommunicator() { without_mpi::free(made_.handle()); }

}  // namespace ropewalk
