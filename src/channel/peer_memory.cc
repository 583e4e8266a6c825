#include "channel/peer_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <exception>

#include "channel/registration_trace.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::channel {
namespace {

// Buffers from here on are worth 2 MiB pages: smaller ones lie in few small pages.
constexpr std::size_t least_huge = std::size_t{64} << 10;
// Smaller buffers do not make a block worth the arena, and must not pay for the question.
constexpr std::size_t least_noted = std::size_t{4} << 10;

constexpr std::size_t most_by_kernel = std::size_t{1} << 30;  // the kernel stops at 2 GiB - 4 KiB

std::uint64_t address_of(const void* buffer) noexcept {
  return reinterpret_cast<std::uintptr_t>(buffer);
}

// Moves bytes between this process and another by one of the two system calls, which may do less
// than they were asked.
template <class Call>
bool by_cma(Call call, int process, void* here, std::uint64_t there, std::size_t bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    iovec local{static_cast<std::byte*>(here) + done, std::min(bytes - done, most_by_kernel)};
    iovec remote{reinterpret_cast<void*>(there + done), local.iov_len};
    const ssize_t moved = call(process, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

// What is left of the runs behind the first `moved` bytes.
std::span<iovec> behind(std::span<iovec> runs, std::size_t moved) noexcept {
  while (!runs.empty() && moved >= runs.front().iov_len) {
    moved -= runs.front().iov_len;
    runs = runs.subspan(1);
  }
  if (moved > 0) {
    runs.front().iov_base = static_cast<std::byte*>(runs.front().iov_base) + moved;
    runs.front().iov_len -= moved;
  }
  return runs;
}

// What the kernel copies would be attached where there is XPMEM, but for a rank's own memory.
void note(const node::Team& team, int peer, std::uint64_t address, std::size_t bytes) noexcept {
  if (peer != team.rank()) RegistrationTrace::note(team.process_id(peer), address, bytes);
}

void note_runs(const node::Team& team, int peer, std::span<const iovec> there) noexcept {
  for (const iovec& run : there) note(team, peer, address_of(run.iov_base), run.iov_len);
}

// The same for lists of runs. The kernel stops in the middle of a list at 2 GiB, or where it meets
// memory that is not there: the next call then says why.
template <class Call>
bool runs_by_cma(Call call, int process, std::span<iovec> here, std::span<iovec> there) noexcept {
  while (!here.empty()) {
    const ssize_t moved = call(process, here.data(), here.size(), there.data(), there.size(), 0);
    if (moved <= 0) return false;
    here = behind(here, static_cast<std::size_t>(moved));
    there = behind(there, static_cast<std::size_t>(moved));
  }
  return true;
}

}  // namespace

Reference PeerMemory::in_arena(const void* memory) {
  return Reference::mapped(Arena::process().offset(memory));
}

Reference PeerMemory::visible(const void* buffer, std::size_t bytes) const {
  Arena& arena = Arena::process();
  if (arena.contains(buffer, std::max<std::size_t>(bytes, 1))) {
    // Memory of malloc comes on small pages; here it is first known to be communicated.
    if (bytes >= least_noted) {
      arena.note_communicated(buffer, bytes);
      if (bytes >= least_huge) arena.make_huge(buffer, bytes);
    }
    return Reference::mapped(arena.offset(buffer));
  }
  if (bytes >= least_noted) arena.note_communicated(buffer, bytes);
  if (attachments_ == nullptr || bytes < worth_.attached) return Reference::none();
  return Reference::attached(address_of(buffer));
}

Reference PeerMemory::by_kernel(const void* buffer, std::size_t bytes) noexcept {
  const bool copied =
      team_.cma() && bytes >= worth_.by_kernel && own_.is_copied_by_kernel(buffer, bytes);
  return copied ? Reference::by_kernel(address_of(buffer)) : Reference::none();
}

Reference PeerMemory::reachable(const void* buffer, std::size_t bytes) {
  const Reference reference = visible(buffer, bytes);
  return reference.is_none() ? by_kernel(buffer, bytes) : reference;
}

std::byte* PeerMemory::attach(int peer, Reference reference, std::size_t bytes) noexcept {
  if (peer == team_.rank()) return reinterpret_cast<std::byte*>(reference.place());
  note(team_, peer, reference.place(), bytes);
  try {
    return attachments_->attach(peer, reference.place(), bytes);
  } catch (const std::exception&) {  // no memory to keep it in mind
    return nullptr;
  }
}

std::byte* PeerMemory::seen(int peer, Reference reference, std::size_t bytes) noexcept {
  return reference.is_visible() ? resolve(peer, reference, bytes) : nullptr;
}

bool PeerMemory::read(void* to, int peer, Reference from, std::size_t bytes,
                      kernels::Stores stores) noexcept {
  if (bytes == 0) return true;
  if (const std::byte* there = seen(peer, from, bytes)) {
    kernels::copy(to, there, bytes, stores);
    return true;
  }
  if (from.is_none() || !team_.cma()) return false;
  note(team_, peer, from.place(), bytes);
  return by_cma(process_vm_readv, team_.process_id(peer), to, from.place(), bytes);
}

bool PeerMemory::write(int peer, Reference to, const void* from, std::size_t bytes,
                       kernels::Stores stores) noexcept {
  if (bytes == 0) return true;
  if (std::byte* there = seen(peer, to, bytes)) {
    kernels::copy(there, from, bytes, stores);
    return true;
  }
  if (to.is_none() || !team_.cma()) return false;
  note(team_, peer, to.place(), bytes);
  return by_cma(process_vm_writev, team_.process_id(peer), const_cast<void*>(from), to.place(),
                bytes);
}

bool PeerMemory::read(std::span<iovec> here, int peer, std::span<iovec> there) noexcept {
  note_runs(team_, peer, there);
  return runs_by_cma(process_vm_readv, team_.process_id(peer), here, there);
}

bool PeerMemory::write(std::span<iovec> here, int peer, std::span<iovec> there) noexcept {
  note_runs(team_, peer, there);
  return runs_by_cma(process_vm_writev, team_.process_id(peer), here, there);
}

}  // namespace ropewalk::channel
