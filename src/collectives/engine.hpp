// What the algorithms of this room share: the team, what a call says about itself, how buffers are
// shown.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "channel/attachments.hpp"
#include "channel/own_memory.hpp"
#include "kernels/kernels.hpp"
#include "node/team.hpp"
#include "ropewalk/collectives.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::collectives {

enum class Kind : std::uint8_t {
  barrier = 1,
  allreduce,
  reduce,
  scan,
  exscan,
  reduce_scatter,
  broadcast,
  allgather,
  gather,
  scatter,
  alltoall,
  neighbours
};
const char* name(Kind);

// How elements are combined: by our kernels, or by MPI_Reduce_local for what only MPI knows.
struct Operation {
  ElementType type = ElementType::byte;
  ReductionOp op = ReductionOp::sum;
  std::size_t element_bytes = 1;
  kernels::ReduceFunction function = nullptr;  // null for what MPI combines
  bool by_mpi = false;
  bool packed = false;  // elements travel without their gaps; MPI lays them out to combine them
  mpi::Datatype mpi_type{};
  mpi::Op mpi_op{};
  // Averages: a sum that is divided before it is rounded. Null for all else.
  kernels::AverageFunction average = nullptr;
  double divisor = 1;
  // Tells allreduces of the same kind apart, as the buckets of a plan: all ranks must give the
  // same.
  std::uint32_t number = 0;

  // The same operation for results that are combined further.
  Operation partial() const {
    Operation sum = *this;
    sum.average = nullptr;
    return sum;
  }
  // out_j = in_0 op in_1 op ..., `count` elements of each; an output may be one of the inputs.
  void combine(std::span<void* const> outputs, std::span<const void* const> inputs,
               std::size_t count, kernels::Stores stores) const;
  std::uint32_t code() const noexcept;  // for the header of a call, below 2^24
  static bool is_by_mpi(std::uint32_t code) { return (code >> 23 & 1) != 0; }
};
const Operation& operation(ElementType,
                           ReductionOp);  // Error(argument) for a pair MPI does not allow

// Where a buffer is, for other ranks: an offset in the arena of its owner; where private memory is
// attached, its address there with the top bit set; or nowhere. Grows with the address.
using Reference = std::uint64_t;
constexpr Reference private_reference = ~Reference{0};
// Nothing is read from or pushed into a buffer: the data lies in the slot. Never an offset.
constexpr Reference inlined_reference = private_reference - 1;
constexpr Reference address_bit = Reference{1} << 63;
// Addresses of programs end below 2^57, so the bit below tells them from special values.
constexpr bool is_address(Reference reference) noexcept { return reference >> 62 == 2; }

// What a rank shows of its buffers when a bulk call begins; fits the flag's line.
struct Shown {
  Reference send;
  Reference receive;
  // Addresses in the rank's own process, for CMA; 0 where it is not reached that way.
  std::uint64_t private_send;
  std::uint64_t private_receive = 0;
  // Not 0: `send` is a copy that is kept until its readers have left the call, and nobody waits for
  // them. Its first so many bytes were there at the arrival, the rest follows in pieces of as many.
  std::uint64_t copied = 0;
};
constexpr std::uint64_t copied_whole = ~std::uint64_t{0};
static_assert(sizeof(Shown) <= node::Slot::beside_flag_bytes);

// A half-open range of elements or bytes.
struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t length() const noexcept { return end - begin; }
};
// The part of rank `part` when `count` elements are dealt to `parts`, cut at multiples of `grain`.
Range slice(std::size_t count, int part, int parts, std::size_t grain);

using tuning::Limits;
using tuning::limits_for;

class Engine {
 public:
  Engine(std::unique_ptr<node::Team> team, Limits limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  node::Team& team() noexcept { return *team_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const Limits& limits() const noexcept { return limits_; }
  Path path = Path::none;  // of the last call

  // From now on private buffers of attach_bytes and more are attached. On all ranks or on none.
  void attach_with(std::unique_ptr<channel::Attachments> attachments) {
    attachments_ = std::move(attachments);
  }
  bool attaches() const noexcept { return attachments_ != nullptr; }
  void share_cores();  // see Team

  // ---- arriving

  // Claims the slot of the next call and fills its header.
  node::Slot& claim(Kind kind, std::uint64_t count, std::uint32_t type_and_op = 0,
                    std::uint32_t root = 0) {
    owed_ = Owed::nothing;
    node::Slot& slot = team_->claim();
    slot.call = std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
                std::uint64_t{type_and_op & 0xffffffU} << 32 | root;
    slot.count = count;
    return slot;
  }
  // The slot of `peer`; remembers whether its header differs from ours.
  const node::Slot& arrival(int peer, const node::Slot& own) {
    const node::Slot& slot = team_->arrival(peer);
    if (slot.call != own.call || slot.count != own.count) [[unlikely]] {
      differs_ = peer;
    }
    return slot;
  }
  // Arrives with a header nobody else has, so that the others do not wait for this rank's call.
  void refuse();
  // The same of all calls to come. Does nothing in a child of fork, whose parent goes on.
  void leave_for_good();
  // The same with a slot that has been claimed, by a rank that has no memory for what it must show.
  void refuse_claimed(std::uint64_t call);
  // Throws on every rank when any rank's header differs from another's.
  void check(const node::Slot& own) {
    if (differs_ >= 0) [[unlikely]] {
      mismatch(own);
    }
  }

  // ---- a rank that an exception takes out of a call: the others get an error, and do not wait

  std::uint64_t calls() const noexcept { return team_->calls(); }
  // Does for the others what this rank owes them of the call it was in. `before`: calls() when it
  // was begun, so that one that was not even claimed is refused.
  void rescue(std::uint64_t before) noexcept;
  // From here to the end of the call the others wait for a phase of this rank, which waits for none
  // of theirs. Otherwise all wait for all from collect() to leave().
  void owe_a_phase() noexcept { owed_ = Owed::a_phase; }
  // This rank has shown that phase.
  std::uint64_t finish_owed_phase() noexcept {
    owed_ = Owed::nothing;
    return team_->finish_phase();
  }
  void owe_nothing() noexcept { owed_ = Owed::nothing; }

  // Arrives with references to buffers, waits for all ranks, checks. Result: what each rank showed.
  const std::vector<Shown>& meet(node::Slot& own, const Shown& shown);
  // The second half of it, for a rank that has arrived.
  const std::vector<Shown>& collect(const node::Slot& own);

  // ---- buffers

  Reference reference(const void* buffer, std::size_t bytes) const;
  // Where the `bytes` behind a reference are seen here, until the end of the call; null where
  // private memory cannot be attached.
  std::byte* try_resolve(int peer, Reference reference, std::size_t bytes) {
    if (is_address(reference)) [[unlikely]] {
      return attach(peer, reference & ~address_bit, bytes);
    }
    return team_->base(peer) + reference;
  }
  // For calls that all ranks end with leave(): there a failure becomes an error on every rank.
  std::byte* resolve(int peer, Reference reference, std::size_t bytes) {
    std::byte* here = try_resolve(peer, reference, bytes);
    if (here == nullptr) [[unlikely]] {
      give_up();
    }
    return here;
  }
  // The team's staging area, for calls in which the others next wait for a phase of this rank:
  // where there is no memory, they find that it has failed in it.
  void reserve_staging(std::size_t bytes);
  // A phase of all ranks inside a bulk call. Throws on every rank where one has failed.
  void synchronize();
  // Throws when a rank whose phase was waited for has failed in it.
  void check_complete(std::uint64_t phase) const;
  // A copy in this rank's arena that lasts until the end of the call, for buffers others must see.
  // Before the arrival: a rank without memory for it refuses the call.
  std::byte* visible_copy(const void* data, std::size_t bytes);
  // Memory of the arena for the length of the call.
  std::byte* scratch(std::size_t bytes);
  // The same for a rank that has arrived: null where there is none, and the call ends with
  // leave(false).
  std::byte* try_scratch(std::size_t bytes) noexcept;
  void release_scratch() noexcept;

  // Copies from another rank's send buffer, mapped or by CMA; false where the kernel refuses.
  bool read(void* to, int peer, const Shown& shown, std::size_t offset, std::size_t bytes,
            kernels::Stores stores);
  // The same into another rank's receive buffer.
  bool write(int peer, const Shown& shown, std::size_t offset, const void* from, std::size_t bytes,
             kernels::Stores stores);
  // The address where others reach a private buffer of so many bytes by CMA, else 0: such a buffer
  // goes through staging on all ranks, who read that here.
  std::uint64_t address_for_cma(const void* buffer, std::size_t bytes, Reference);
  // A send buffer made readable for the others: mapped as it is, else by CMA or as a copy.
  // What nobody else reads, as a block of one's own, may be left out of a copy.
  Shown show(const void* send, std::size_t bytes, Range unread = {0, 0});
  // A copy made readable for the others, for a buffer that the call overwrites.
  Shown show_copy(const void* send, std::size_t bytes, Range unread = {0, 0});
  // The same, but up to piecewise_bytes (or another limit) only the first piece is copied at once;
  // after the arrival copy_rest() or copy_piece() adds what is missing, while others read.
  Shown show_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                       Range unread = {0, 0});
  Shown copy_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                       Range unread = {0, 0});
  void copy_piece() noexcept;  // nothing where all are there
  // For a rank that reads others' pieces between its own. Where ranks share cores a wait costs a
  // time slice: then all at once.
  void copy_ahead() noexcept { team_->crowded() ? copy_rest() : copy_piece(); }
  void copy_until(std::size_t bytes) noexcept {
    while (copy_.done < std::min(bytes, copy_.bytes)) copy_piece();
  }
  void copy_rest() noexcept { copy_until(copy_.bytes); }
  // Until the first `bytes` of what another rank has shown are there.
  void await(int peer, const Shown& shown, std::size_t bytes) {
    if (bytes <= shown.copied || shown.copied == 0) return;
    team_->wait_for_pieces(peer, (bytes + shown.copied - 1) / shown.copied);
  }
  std::size_t piece(std::size_t bytes) const noexcept;  // of a buffer of so many bytes

  // The end of a bulk call: nobody touches another's memory any more. Throws on every rank where
  // one could not do its part.
  void leave(bool complete = true);
  // The same for calls that only read what was shown: none waits where all are copies.
  void leave(const std::vector<Shown>& shown, bool complete);
  [[noreturn]] void throw_unreadable() const;
  kernels::Stores stores(std::size_t bytes) const noexcept {
    return bytes >= limits_.streaming_bytes ? kernels::Stores::streaming
                                            : kernels::Stores::temporal;
  }

  // Pointers, one a rank: room for kernels' arguments without allocation.
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

 private:
  [[noreturn]] void mismatch(const node::Slot& own);
  std::byte* attach(int peer, std::uint64_t address, std::size_t bytes) noexcept;
  [[noreturn]] void give_up();
  bool all_copied() const noexcept {
    return std::ranges::all_of(shown_, [](const Shown& rank) { return rank.copied != 0; });
  }
  template <class Allocate>
  std::byte* before_arrival(Allocate allocate);
  void read_copy(std::byte* to, int peer, const Shown& shown, std::size_t offset,
                 std::size_t bytes);
  Shown begin_copy(const void* send, std::size_t bytes, std::size_t piece, Range unread);

  channel::OwnMemory own_memory_;
  std::unique_ptr<channel::Attachments> attachments_;  // outlives the team; null: none
  std::unique_ptr<node::Team> team_;
  Limits limits_;
  int rank_;
  int size_;
  int differs_ = -1;
  enum class Owed : std::uint8_t { nothing, a_phase, phases };  // to the others, of this call
  Owed owed_ = Owed::nothing;
  std::vector<Shown> shown_;
  struct Copy {  // that is under way
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    std::size_t piece;
    Range unread;
    std::size_t done;
  };
  Copy copy_{};
  std::vector<void*> scratch_;    // of this call
  void* kept_scratch_ = nullptr;  // from call to call, for the first that asks; null: not yet
  bool kept_in_use_ = false;
};

// Frees scratch memory at the end of a call, whichever way it ends.
class Scratch {
 public:
  explicit Scratch(Engine& engine) : engine_(engine) {}
  ~Scratch() { engine_.release_scratch(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  Engine& engine_;
};

// True for our in_place and for the loaded MPI's MPI_IN_PLACE. Every MPI's is -1 or 1 (mpi/abi.cc),
// so that real addresses are told apart at once.
bool is_mpi_in_place(const void* buffer);
inline bool is_in_place(const void* buffer) {
  if (buffer == in_place) return true;
  return reinterpret_cast<std::uintptr_t>(buffer) == 1 && is_mpi_in_place(buffer);
}

}  // namespace ropewalk::collectives
