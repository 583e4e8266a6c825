#include "collectives/engine.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::collectives {
namespace {

// Scratch memory that is kept: the copies of small private buffers, the chunks of larger ones.
constexpr std::size_t kept_bytes = std::size_t{256} << 10;

// Buffers from here on are worth 2 MiB pages: smaller ones lie in few small pages.
constexpr std::size_t least_huge = std::size_t{64} << 10;
// Smaller pieces do not make a block worth the arena, and must not pay for the question.
constexpr std::size_t least_noted = std::size_t{4} << 10;

constexpr std::size_t largest_cma_read = std::size_t{1} << 30;  // the kernel stops at 2 GiB - 4 KiB

// The header of a rank whose arguments were refused: differs from every proper one.
constexpr std::uint64_t refused_call = ~std::uint64_t{0};
// Of a rank that an exception has taken through the end of its communicator.
constexpr std::uint64_t no_more_calls = ~std::uint64_t{1};

std::string describe(const node::Slot& slot) {
  if (slot.call == refused_call) return "a call whose arguments were refused there";
  if (slot.call == no_more_calls) {
    return "nothing more, an exception has ended its communicator";
  }
  const auto kind = static_cast<Kind>(slot.call >> 56);
  const auto code = static_cast<std::uint32_t>(slot.call >> 32 & 0xffffff);
  const std::string elements =
      Operation::is_by_mpi(code)
          ? "an operation or type of MPI's own"
          : std::string("type ") + ropewalk::name(static_cast<ElementType>(code >> 8 & 0x3f)) +
                ", operation " +
                (code >> 22 != 0 ? "average"
                                 : ropewalk::name(static_cast<ReductionOp>(code & 0xff)));
  const auto form = static_cast<std::uint32_t>(slot.call);
  // Buckets of plans are numbered from 1, so that other allreduces have none.
  const std::string which = kind == Kind::allreduce && form != 0
                                ? ", bucket " + std::to_string(form - 1)
                                : ", root or form " + std::to_string(form);
  return std::string(name(kind)) + " (count " + std::to_string(slot.count) + ", " + elements +
         which + ")";
}

// Into lines that another rank has read. The string instruction takes whole lines for writing and
// fetches none of what they held: between two cores of an EPYC a copy of 64 to 256 KiB takes a half
// to a third of the time of stores that fetch the lines first, one of 8 KiB seven tenths. Its
// stores come in any order, but before the flag that is stored next.
void copy_for_others(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(ROPEWALK_WATCHED)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

// The part of [begin, end) that is copied: `unread` lies in it, behind it or before it.
template <class Move>
void without(Range unread, std::size_t begin, std::size_t end, Move move) {
  const std::size_t hole = std::clamp(unread.begin, begin, end);
  const std::size_t behind = std::clamp(unread.end, hole, end);
  if (hole > begin) move(begin, hole - begin);
  if (end > behind) move(behind, end - behind);
}

// Moves bytes between this process and another by one of the two system calls, which may do less
// than they were asked.
template <class Call>
bool by_cma(Call call, int process, void* here, std::uint64_t there, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    iovec local{static_cast<std::byte*>(here) + done, std::min(bytes - done, largest_cma_read)};
    iovec remote{reinterpret_cast<void*>(there + done), local.iov_len};
    const ssize_t moved = call(process, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

const char* name(Kind kind) {
  constexpr const char* names[] = {"none",    "barrier",        "allreduce", "reduce",    "scan",
                                   "exscan",  "reduce_scatter", "broadcast", "allgather", "gather",
                                   "scatter", "alltoall",       "neighbours"};
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(names) ? names[index] : "unknown collective";
}

Range slice(std::size_t count, int part, int parts, std::size_t grain) {
  const std::size_t grains = (count + grain - 1) / grain;
  const auto edge = [&](int index) {
    const auto whole = grains / parts * index;
    const auto rest = grains % parts * index / parts;
    return std::min(count, (whole + rest) * grain);
  };
  return {edge(part), edge(part + 1)};
}

Engine::Engine(std::unique_ptr<node::Team> team, Limits limits)
    : inputs(team->size()),
      outputs(team->size()),
      team_(std::move(team)),
      limits_(limits),
      rank_(team_->rank()),
      size_(team_->size()),
      shown_(team_->size()) {
  scratch_.reserve(4);
}

void Engine::share_cores() {
  team_->share_cores();
  limits_ = limits_for(size_, true);
}

const std::vector<Shown>& Engine::meet(node::Slot& own, const Shown& shown) {
  std::memcpy(own.payload, &shown, sizeof shown);
  team_->arrive();
  copy_rest();
  return collect(own);
}

const std::vector<Shown>& Engine::collect(const node::Slot& own) {
  for (int peer = 0; peer < size_; ++peer) {
    const node::Slot& slot = peer == rank_ ? own : arrival(peer, own);
    std::memcpy(&shown_[peer], slot.payload, sizeof(Shown));
  }
  team_->all_arrived();
  check(own);
  owed_ = Owed::phases;
  return shown_;
}

void Engine::rescue(std::uint64_t before) noexcept {
  const Owed owed = std::exchange(owed_, Owed::nothing);
  differs_ = -1;
  if (size_ == 1 || team_->broken()) {
    copy_ = {};  // its buffer may be gone at the next call
    return;
  }
  try {
    if (team_->calls() != before && team_->has_arrived()) copy_rest();  // others wait for it
    copy_ = {};
    if (team_->calls() == before) {
      refuse();
    } else if (!team_->has_arrived()) {
      refuse_claimed(refused_call);
    } else if (owed == Owed::a_phase) {
      team_->fail_phase();
    } else if (owed == Owed::phases && all_copied()) {
      team_->skip_phase();
    } else if (owed == Owed::phases) {
      team_->wait_for_all(team_->fail_phase());  // they may still read this rank's buffers
    }
  } catch (...) {  // of the dead the others learn as this rank does
  }
  release_scratch();
}

void Engine::refuse() {
  if (size_ == 1) return;
  team_->claim();
  refuse_claimed(refused_call);
}

void Engine::leave_for_good() {
  if (size_ == 1 || team_->process_id(rank_) != getpid()) return;
  team_->claim();
  refuse_claimed(no_more_calls);
}

void Engine::refuse_claimed(std::uint64_t call) {
  node::Slot& own = team_->claimed();
  own.call = call;
  own.count = 0;
  team_->arrive();
}

void Engine::mismatch(const node::Slot& own) {
  const int peer = std::exchange(differs_, -1);
  const node::Slot& other = team_->arrival(peer);
  throw Error(ErrorCode::argument, "collective: rank " + std::to_string(rank_) + " calls " +
                                       describe(own) + " while rank " + std::to_string(peer) +
                                       " calls " + describe(other) +
                                       "; all ranks must make the same call");
}

Reference Engine::reference(const void* buffer, std::size_t bytes) const {
  Arena& arena = Arena::process();
  if (arena.contains(buffer, std::max<std::size_t>(bytes, 1))) {
    // Memory of malloc comes on small pages; here it is first known to be communicated.
    if (bytes >= least_noted) {
      arena.note_communicated(buffer, bytes);
      if (bytes >= least_huge) arena.make_huge(buffer, bytes);
    }
    return arena.offset(buffer);
  }
  if (bytes >= least_noted) arena.note_communicated(buffer, bytes);
  if (attachments_ == nullptr || bytes < limits_.attach_bytes) return private_reference;
  return address_bit | reinterpret_cast<std::uintptr_t>(buffer);
}

std::byte* Engine::attach(int peer, std::uint64_t address, std::size_t bytes) noexcept {
  if (peer == rank_) return reinterpret_cast<std::byte*>(address);
  try {
    return attachments_->attach(peer, address, bytes);
  } catch (const std::exception&) {  // no memory for its books
    return nullptr;
  }
}

// All others leave the call, too, and find that this rank has not done its part.
void Engine::give_up() {
  owed_ = Owed::nothing;
  copy_rest();  // others wait for it
  const std::uint64_t phase = team_->fail_phase();
  team_->wait_for_all(phase);
  if (attachments_ != nullptr) attachments_->end_call();
  check_complete(phase);
  throw_unreadable();  // not reached: this rank is among those that failed
}

void Engine::check_complete(std::uint64_t phase) const {
  const int failed = team_->failed_rank(phase);
  if (failed < 0) return;
  throw Error(
      ErrorCode::system,
      "collective: rank " + std::to_string(failed) +
          " could not do its part: it has met an error of its own, a private buffer of another "
          "rank could not be reached (process_vm_readv, XPMEM), or its communication memory "
          "is full; results are incomplete; see its error, check the buffers' addresses and "
          "counts, and ROPEWALK_ARENA_BYTES");
}

void Engine::reserve_staging(std::size_t bytes) {
  try {
    team_->staging(bytes);
  } catch (...) {
    owed_ = Owed::nothing;
    team_->wait_for_all(team_->fail_phase());
    throw;
  }
}

void Engine::synchronize() {
  const std::uint64_t phase = team_->finish_phase();
  team_->wait_for_all(phase);
  owed_ = Owed::nothing;  // where one has failed, all leave the call here
  // It may have failed in a later phase already, and waits for that one.
  while (team_->failed_rank(team_->phase() + 1) >= 0) team_->finish_phase();
  check_complete(phase);
  owed_ = Owed::phases;
}

Engine::~Engine() {
  if (kept_scratch_ != nullptr) Arena::process().deallocate(kept_scratch_);
}

std::byte* Engine::scratch(std::size_t bytes) {
  if (bytes <= kept_bytes && !kept_in_use_) {
    if (kept_scratch_ == nullptr) kept_scratch_ = Arena::process().allocate(kept_bytes, 4096);
    kept_in_use_ = true;
    return static_cast<std::byte*>(kept_scratch_);
  }
  scratch_.reserve(scratch_.size() + 1);  // nothing fails behind the allocation
  void* memory = Arena::process().allocate(bytes);
  scratch_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

std::byte* Engine::try_scratch(std::size_t bytes) noexcept {
  try {
    return scratch(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// The others wait for this rank's arrival: one that has no memory arrives with a refusal.
template <class Allocate>
std::byte* Engine::before_arrival(Allocate allocate) {
  try {
    return allocate();
  } catch (...) {
    refuse_claimed(refused_call);
    throw;
  }
}

std::byte* Engine::visible_copy(const void* data, std::size_t bytes) {
  std::byte* copy = before_arrival([&] { return scratch(bytes); });
  if (bytes > 0) kernels::copy(copy, data, bytes, kernels::Stores::temporal);
  return copy;
}

void Engine::release_scratch() noexcept {
  for (void* memory : scratch_) Arena::process().deallocate(memory);
  scratch_.clear();
  kept_in_use_ = false;
  if (attachments_ != nullptr) attachments_->end_call();
}

void Engine::read_copy(std::byte* to, int peer, const Shown& shown, std::size_t offset,
                       std::size_t bytes) {
  const std::byte* from = team_->base(peer) + shown.send;
  const std::size_t end = offset + bytes;
  for (std::size_t at = offset; at < end;) {
    // To the end of the piece; what is there as a whole is one.
    const std::size_t behind = at % shown.copied;
    const std::size_t length = std::min(end - at, shown.copied - behind);
    await(peer, shown, at + length);
    kernels::copy(to, from + at, length, kernels::Stores::temporal);
    to += length;
    at += length;
  }
}

bool Engine::read(void* to, int peer, const Shown& shown, std::size_t offset, std::size_t bytes,
                  kernels::Stores stores) {
  if (bytes == 0) return true;
  if (shown.copied != 0) {
    read_copy(static_cast<std::byte*>(to), peer, shown, offset, bytes);
    return true;
  }
  std::uint64_t address = shown.private_send + offset;
  if (shown.send != private_reference) {
    if (const std::byte* from = try_resolve(peer, shown.send + offset, bytes)) {
      kernels::copy(to, from, bytes, stores);
      return true;
    }
    if (!team_->cma()) return false;
    address = (shown.send & ~address_bit) + offset;
  }
  return by_cma(process_vm_readv, team_->process_id(peer), to, address, bytes);
}

bool Engine::write(int peer, const Shown& shown, std::size_t offset, const void* from,
                   std::size_t bytes, kernels::Stores stores) {
  if (bytes == 0) return true;
  std::uint64_t address = shown.private_receive + offset;
  if (shown.receive != private_reference) {
    if (std::byte* to = try_resolve(peer, shown.receive + offset, bytes)) {
      kernels::copy(to, from, bytes, stores);
      return true;
    }
    if (!team_->cma()) return false;
    address = (shown.receive & ~address_bit) + offset;
  }
  return by_cma(process_vm_writev, team_->process_id(peer), const_cast<void*>(from), address,
                bytes);
}

std::uint64_t Engine::address_for_cma(const void* buffer, std::size_t bytes, Reference reference) {
  if (reference != private_reference || !team_->cma() || bytes < limits_.cma_bytes) return 0;
  if (!own_memory_.is_copied_by_kernel(buffer, bytes)) return 0;
  return reinterpret_cast<std::uintptr_t>(buffer);
}

Shown Engine::show(const void* send, std::size_t bytes, Range unread) {
  Shown shown{reference(send, bytes), private_reference, 0};
  if (shown.send != private_reference || bytes == 0) return shown;
  if (bytes <= limits_.copied_bytes) return show_copy(send, bytes, unread);
  shown.private_send = address_for_cma(send, bytes, shown.send);
  return shown.private_send == 0 ? show_copy(send, bytes) : shown;
}

Shown Engine::show_copy(const void* send, std::size_t bytes, Range unread) {
  path = Path::staged;
  if (bytes > limits_.copied_bytes) {
    return {Arena::process().offset(visible_copy(send, bytes)), private_reference, 0};
  }
  return begin_copy(send, bytes, bytes, unread);
}

Shown Engine::begin_copy(const void* send, std::size_t bytes, std::size_t piece, Range unread) {
  path = Path::staged;
  std::byte* room = before_arrival([&] { return team_->room(bytes); });
  copy_ = {room, static_cast<const std::byte*>(send), bytes, piece, unread, 0};
  copy_piece();
  return {Arena::process().offset(room), private_reference, 0, 0,
          piece < bytes ? piece : copied_whole};
}

// The first piece is shown by the arrival.
void Engine::copy_piece() noexcept {
  Copy& copy = copy_;
  if (copy.done >= copy.bytes) return;
  const std::size_t end = std::min(copy.bytes, copy.done + copy.piece);
  without(copy.unread, copy.done, end, [&](std::size_t at, std::size_t length) {
    copy_for_others(copy.to + at, copy.from + at, length);
  });
  const bool first = copy.done == 0;
  copy.done = end;
  if (!first) team_->show_pieces((end + copy.piece - 1) / copy.piece);
}

Shown Engine::show_in_pieces(const void* send, std::size_t bytes, std::size_t limit, Range unread) {
  Shown shown{reference(send, bytes), private_reference, 0};
  if (shown.send != private_reference || bytes == 0) return shown;
  if (bytes <= limit) return copy_in_pieces(send, bytes, limit, unread);
  shown.private_send = address_for_cma(send, bytes, shown.send);
  return shown.private_send == 0 ? show_copy(send, bytes) : shown;
}

Shown Engine::copy_in_pieces(const void* send, std::size_t bytes, std::size_t limit, Range unread) {
  if (bytes > limit) return show_copy(send, bytes, unread);
  return begin_copy(send, bytes, piece(bytes), unread);
}

std::size_t Engine::piece(std::size_t bytes) const noexcept {
  return std::min(bytes, limits_.piece_bytes);
}

void Engine::leave(bool complete) {
  owed_ = Owed::nothing;
  const std::uint64_t phase = complete ? team_->finish_phase() : team_->fail_phase();
  team_->wait_for_all(phase);
  if (attachments_ != nullptr) attachments_->end_call();
  check_complete(phase);
}

void Engine::leave(const std::vector<Shown>& shown, bool complete) {
  if (std::ranges::all_of(shown, [](const Shown& rank) { return rank.copied != 0; })) {
    owed_ = Owed::nothing;
    team_->skip_phase();
  } else {
    leave(complete);
  }
}

// The memory of a process that ends goes before the process itself: its death is the better answer.
void Engine::throw_unreadable() const {
  constexpr int looks = 500;  // of a millisecond
  for (int look = 0; look < looks; ++look) {
    team_->look_around();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error(
      ErrorCode::system,
      "send: the buffer of another rank could not be read with process_vm_readv; check that "
      "its address and count are valid there");
}

bool is_mpi_in_place(const void* buffer) { return mpi::loaded() && buffer == mpi::in_place(); }

}  // namespace ropewalk::collectives
