#include "collectives/engine.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "topology/machine.hpp"

namespace ropewalk::collectives {
namespace {

// Scratch memory that is kept: the copies of small private buffers, the chunks of larger ones.
constexpr std::size_t kept_bytes = std::size_t{256} << 10;

// Buffers from here on are worth 2 MiB pages: smaller ones lie in few small pages.
constexpr std::size_t least_huge = std::size_t{64} << 10;

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

// Into lines that another rank has read: they are fetched for writing a kibibyte ahead, since
// stores would fetch them one after the other. A quarter of the time of 16 KiB between distant
// cores.
void copy_for_others(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t block = 1024;
  for (std::size_t at = 0; at < bytes; at += block) {
    for (std::size_t line = at + block; line < std::min(bytes, at + 2 * block);
         line += node::Slot::line_bytes) {
      os::prefetch_for_writing(to + line);
    }
    std::memcpy(to + at, from + at, std::min(block, bytes - at));
  }
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

Limits limits_for(int ranks, bool crowded) {
  // Through a slot every byte passes between caches twice as often as straight between buffers, for
  // one exchange of flags instead of two. Where ranks share cores an exchange costs time slices.
  const std::size_t shared = std::clamp<std::size_t>(8192 / ranks, 512, node::Slot::payload_bytes);
  // Read once: a walk over sysfs, in a call that every communicator makes.
  static const std::size_t cache =
      topology::read_machine().last_level_cache_bytes(topology::usable_cpus().cpus.front());
  // Send and receive buffers of all ranks together leave the last cache. What virtual machines are
  // told of it may be the host's: no more than 64 MiB are believed.
  const std::size_t believed =
      std::clamp<std::size_t>(cache, std::size_t{16} << 20, std::size_t{64} << 20);
  // A sender that does not wait for its root sends twice as fast, until that many lines a call take
  // longer from cache to cache than two exchanges of flags.
  const std::size_t rooted = crowded ? node::Slot::payload_bytes : 2048;
  return {.one_shot_bytes = crowded ? shared : 512,
          .gathered_bytes = std::clamp<std::size_t>(4096 / ranks, crowded ? shared : 512, rooted),
          .rooted_bytes = rooted,
          .copied_bytes = node::Team::overflow_bytes,
          .streaming_bytes = believed / (2 * static_cast<std::size_t>(ranks)),
          .two_level_bytes = std::size_t{16} << 10,
          .chunk_bytes = std::size_t{64} << 10,
          .cma_bytes = std::size_t{16} << 10,
          .attach_bytes = std::size_t{16} << 10};
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
  return collect(own);
}

const std::vector<Shown>& Engine::collect(const node::Slot& own) {
  for (int peer = 0; peer < size_; ++peer) {
    const node::Slot& slot = peer == rank_ ? own : arrival(peer, own);
    std::memcpy(&shown_[peer], slot.payload, sizeof(Shown));
  }
  team_->all_arrived();
  check(own);
  return shown_;
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
    if (bytes >= least_huge) arena.make_huge(buffer, bytes);
    return arena.offset(buffer);
  }
  if (attachments_ == nullptr || bytes < limits_.attach_bytes) return private_reference;
  return address_bit | reinterpret_cast<std::uintptr_t>(buffer);
}

std::byte* Engine::attach(int peer, std::uint64_t address, std::size_t bytes) {
  if (peer == rank_) return reinterpret_cast<std::byte*>(address);
  return attachments_->attach(peer, address, bytes);
}

// All others leave the call, too, and find that this rank has not done its part.
void Engine::give_up() {
  const std::uint64_t phase = team_->fail_phase();
  team_->wait_for_all(phase);
  if (attachments_ != nullptr) attachments_->end_call();
  check_complete(phase);
  throw_unreadable();  // not reached: this rank is among those that failed
}

void Engine::check_complete(std::uint64_t phase) const {
  const int failed = team_->failed_rank(phase);
  if (failed < 0) return;
  throw Error(ErrorCode::system,
              "collective: rank " + std::to_string(failed) +
                  " could not do its part: a private buffer of another rank could not be reached "
                  "(process_vm_readv, XPMEM), or its communication memory is full; results are "
                  "incomplete; check the buffers' addresses and counts, and ROPEWALK_ARENA_BYTES");
}

void Engine::reserve_staging(std::size_t bytes) {
  try {
    team_->staging(bytes);
  } catch (const Error&) {
    team_->wait_for_all(team_->fail_phase());
    throw;
  }
}

void Engine::synchronize() {
  const std::uint64_t phase = team_->finish_phase();
  team_->wait_for_all(phase);
  check_complete(phase);
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
  void* memory = Arena::process().allocate(bytes);
  scratch_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

std::byte* Engine::try_scratch(std::size_t bytes) noexcept {
  try {
    return scratch(bytes);
  } catch (const Error&) {
    return nullptr;
  }
}

// The others wait for this rank's arrival: one that has no memory arrives with a refusal.
template <class Allocate>
std::byte* Engine::before_arrival(Allocate allocate) {
  try {
    return allocate();
  } catch (const Error&) {
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

bool Engine::read(void* to, int peer, const Shown& shown, std::size_t offset, std::size_t bytes,
                  kernels::Stores stores) {
  if (bytes == 0) return true;
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

std::uint64_t Engine::address_for_cma(const void* buffer, std::size_t bytes,
                                      Reference reference) const {
  if (reference != private_reference || !team_->cma() || bytes < limits_.cma_bytes) return 0;
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
  std::byte* copy = before_arrival([&] { return team_->overflow(); });
  const auto* from = static_cast<const std::byte*>(send);
  copy_for_others(copy, from, unread.begin);
  copy_for_others(copy + unread.end, from + unread.end, bytes - unread.end);
  return {Arena::process().offset(copy), private_reference, 0, 0, 1};
}

void Engine::leave(bool complete) {
  const std::uint64_t phase = complete ? team_->finish_phase() : team_->fail_phase();
  team_->wait_for_all(phase);
  if (attachments_ != nullptr) attachments_->end_call();
  check_complete(phase);
}

void Engine::leave(const std::vector<Shown>& shown, bool complete) {
  if (std::ranges::all_of(shown, [](const Shown& rank) { return rank.copied != 0; })) {
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
