// Buffers of other ranks of a node: a rank tells the others by a Reference where its buffer lies,
// and they read and write what is behind it.
//
// There are three ways, the fastest first: memory of the arena is mapped by all ranks; private
// memory can be attached, where the machine has XPMEM; or the kernel copies it from process to
// process (CMA: process_vm_readv and process_vm_writev). If none of them reaches a buffer, its
// owner must copy it into its arena: that is left to the caller. So are errors, which are false or
// null here.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "channel/attachments.hpp"
#include "channel/own_memory.hpp"
#include "kernels/kernels.hpp"
#include "node/team.hpp"

namespace ropewalk::channel {

// A Reference says where a buffer of one rank lies, for the others. It is one number, which ranks
// send each other; what it means depends on whose buffer it is. The two highest bits say which way
// leads there: arenas end below 2^62, and addresses of programs below 2^57.
class Reference {
 public:
  constexpr Reference() noexcept = default;  // none()

  // The buffer lies in the arena of its rank, so many bytes behind the beginning.
  static constexpr Reference mapped(std::uint64_t offset) noexcept { return {Way::mapped, offset}; }
  // At an address of its rank's process, which others attach.
  static constexpr Reference attached(std::uint64_t address) noexcept {
    return {Way::attached, address};
  }
  // At an address of its rank's process, from which the kernel copies.
  static constexpr Reference by_kernel(std::uint64_t address) noexcept {
    return {Way::kernel, address};
  }
  // Others do not reach the buffer. What the number, below 2^62, says is left to the caller.
  static constexpr Reference none(std::uint64_t number = 0) noexcept { return {Way::none, number}; }

  constexpr bool is_mapped() const noexcept { return way() == Way::mapped; }
  // Others load from it and store to it themselves.
  constexpr bool is_visible() const noexcept { return is_mapped() || way() == Way::attached; }
  constexpr bool is_by_kernel() const noexcept { return way() == Way::kernel; }
  constexpr bool is_none() const noexcept { return way() == Way::none; }
  // Returns the offset or the address.
  constexpr std::uint64_t place() const noexcept { return bits_ & ~(std::uint64_t{3} << 62); }

  // Refers to the place so many bytes further in the same buffer.
  constexpr Reference operator+(std::size_t bytes) const noexcept {
    return {way(), place() + bytes};
  }
  friend constexpr bool operator==(Reference, Reference) noexcept = default;

 private:
  enum class Way : std::uint8_t { mapped, kernel, attached, none };
  constexpr Reference(Way way, std::uint64_t place) noexcept
      : bits_(std::uint64_t{static_cast<std::uint8_t>(way)} << 62 | place) {}
  constexpr Way way() const noexcept { return static_cast<Way>(bits_ >> 62); }

  std::uint64_t bits_ = std::uint64_t{3} << 62;
};
static_assert(sizeof(Reference) == sizeof(std::uint64_t));

// Used by one thread at a time, as its team.
class PeerMemory {
 public:
  // Private buffers below these sizes, in bytes, are not worth attaching, or a system call.
  struct Worth {
    std::size_t attached;
    std::size_t by_kernel;
  };
  PeerMemory(node::Team& team, Worth worth) noexcept : team_(team), worth_(worth) {}

  // From now on private buffers are attached as well. To be called on all ranks of the team or on
  // none.
  void attach_with(std::unique_ptr<Attachments> attachments) noexcept {
    attachments_ = std::move(attachments);
  }
  bool attaches() const noexcept { return attachments_ != nullptr; }

  // ---- buffers of this rank

  // Refers to memory that Arena::process() has allocated.
  static Reference in_arena(const void* memory);
  // Refers to a buffer that others see, mapped or attached; the result is none for any other. The
  // arena hears that the buffer is communicated, and gives a large one pages of 2 MiB.
  Reference visible(const void* buffer, std::size_t bytes) const;
  // Refers to a private buffer that the kernel copies; the result is none for any other.
  Reference by_kernel(const void* buffer, std::size_t bytes) noexcept;
  // Refers to a buffer that others see, or that the kernel copies; the result is none for any
  // other.
  Reference reachable(const void* buffer, std::size_t bytes);

  // ---- buffers of any rank

  // Where the `bytes` behind a visible reference are seen here, until end_call(); null where they
  // cannot be attached.
  std::byte* resolve(int peer, Reference reference, std::size_t bytes) noexcept {
    if (reference.is_mapped()) [[likely]] {
      return team_.base(peer) + reference.place();
    }
    return attach(peer, reference, bytes);
  }
  // Copy from or to what is behind any reference; false where the kernel refuses.
  bool read(void* to, int peer, Reference from, std::size_t bytes, kernels::Stores) noexcept;
  bool write(int peer, Reference to, const void* from, std::size_t bytes, kernels::Stores) noexcept;
  // The same by the kernel alone, for runs of bytes `here` and runs `there` at addresses of the
  // peer's process: as many bytes on both sides, and no run is empty. Uses the lists up. False, and
  // errno says why, where the kernel refuses.
  static constexpr std::size_t most_runs = 512;  // in a list; the kernel allows 1024 (IOV_MAX)
  bool read(std::span<iovec> here, int peer, std::span<iovec> there) noexcept;
  bool write(std::span<iovec> here, int peer, std::span<iovec> there) noexcept;
  // What was resolved may be detached.
  void end_call() noexcept {
    if (attachments_ != nullptr) attachments_->end_call();
  }

 private:
  std::byte* attach(int peer, Reference, std::size_t bytes) noexcept;
  std::byte* seen(int peer, Reference, std::size_t bytes) noexcept;

  node::Team& team_;
  Worth worth_;
  OwnMemory own_;
  std::unique_ptr<Attachments> attachments_;  // null: none
};

}  // namespace ropewalk::channel
