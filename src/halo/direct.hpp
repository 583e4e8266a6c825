// Strategy::direct: ranks of one node copy faces from where they lie to where they belong, strided
// on both sides. No message is sent, and nothing is packed but what private memory makes necessary
// (staged_faces.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/peer_memory.hpp"
#include "halo/carrier.hpp"
#include "halo/flags.hpp"
#include "halo/kernel_copy.hpp"
#include "halo/workers.hpp"
#include "kernels/strided_copy.hpp"
#include "node/team.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "transport/lane_set.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::halo {

// What brings one face from the sender's memory to the receiver's: a copy for each field.
struct FaceCopies {
  // All workers of this rank make them together. Where the face is staged, there are others in odd
  // exchanges.
  std::array<std::vector<kernels::StridedCopy>, 2> plain;
  std::vector<KernelCopy> by_kernel;
  bool staged = false;

  const std::vector<kernels::StridedCopy>& plain_of(std::uint64_t exchange) const noexcept {
    return plain[staged ? exchange % 2 : 0];
  }
  bool empty() const noexcept { return plain[0].empty() && by_kernel.empty(); }
  std::size_t bytes() const noexcept;
};

// A transfer is the face that one rank sends another over one link: it is the same on both, but for
// the addresses.
struct FaceTransfer {
  int peer;                 // the rank on the other side
  int place;                // of the peer in the team
  const FlagLine* started;  // of the peer, in its block
  FlagLine* claim;          // both in the block of the receiver
  FlagLine* copied;
  int direction;      // from which the receiver gets it; it takes them in this order
  FaceCopies copies;  // none where only the peer can make them
  // Exchanges in which this rank has last seen it claimed, by either, and copied.
  std::uint64_t taken = 0;
  std::uint64_t finished = 0;
  unsigned polls = 0;  // of this rank that have found it unclaimed
  bool mine = false;   // claimed by this rank and not copied yet
  std::size_t bytes = 0;
};

// What a rank exchanges with its neighbours, as it maps their memory.
struct Transfers {
  FlagBlock flags;                     // its own
  std::vector<FaceTransfer> incoming;  // in the order in which it takes them
  std::vector<FaceTransfer> outgoing;  // in the order in which it helps with them; none is staged
  std::vector<FlagLine*> left;         // its lines in the neighbours' blocks
  // Copies into the places of staged faces, for even and for odd exchanges.
  std::array<std::vector<kernels::StridedCopy>, 2> packs;
  std::shared_ptr<channel::PeerMemory> memory;  // may be null where nothing is private
  std::shared_ptr<Workers> workers = std::make_shared<Workers>(1, false);
};

// Both ranks of a link reach both of its buffers, so either can copy: they map or attach them, or
// the kernel copies. Only what is staged is copied by its receiver alone. Exchange n of one rank:
// raise `started` to n; then, in test() and wait(), for every face in or out whose other rank has
// started n and which nobody has claimed: claim it, copy it, say so. Finished when all are copied;
// nobody waits for what it has staged itself. So wait() needs nothing of a neighbour but that it
// has started, as with messages that are posted.
//
// Invariants, for a face of a link between A and B:
// 1. `claim` goes from n - 1 to n only by a rank that has started n and has seen that the other
//    has, by compare-exchange: one wins, and it alone copies and then raises `copied` to n.
// 2. A finishes n, and may start n + 1, only when all its faces are copied in n. So while A is in
//    n, `claim` and `copied` of its faces are n - 1 or n and nothing else; and a fast B may have
//    started n + 1, but all that is between them is copied in n, and stays so until A starts n + 1.
// 3. What A wrote before start(n) is seen by who copies in n: it has acquired A's `started`. What
//    was copied in n is seen by who finishes n: it has acquired `copied`. What either rank reads or
//    writes after it has finished n happens after the copy for the same reason.
// 4. B looks at A's block in n until it has seen `copied`, after which it writes its `left` line
//    there and stays away until it starts n + 1. A may be long gone by then: its block is given
//    back when all have left (FlagBlock::retire), its data need not wait.
// 5. A rank that gives up in n claims for itself what nobody has claimed (`withdrawn`), waits for
//    copies that a living neighbour has begun, and withdraws `started`. Afterwards nobody reads or
//    writes its data, and a neighbour that wants them gets an error.
// 6. A rank that the kernel refuses a copy says so in `copied` (`withdrawn`) instead of the number,
//    so that the other does not wait for it, and gives up.
// 7. A staged face has two places in its sender's block, for even and for odd exchanges. A writes
//    for n + 2 only after it has finished n + 1, and so after it has acquired what says that B has
//    started n + 1: by then B has finished n, and so has read what A staged for n. B reads it after
//    it has acquired A's `started`.
class DirectCarrier final : public Carrier {
 public:
  // `team` may be null where there are no transfers.
  DirectCarrier(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, Transfers transfers);
  // Waits for what was started. While an exception unwinds the stack it gives up instead, and
  // neighbours that still want its data get an error.
  ~DirectCarrier() override;

  void start() override;
  bool test() override;
  bool poll() override;
  void wait() override;
  void give_up() noexcept override;

  Strategy strategy() const noexcept override { return Strategy::direct; }
  std::size_t send_bytes() const noexcept override { return bytes_; }  // and as many come in
  std::uint64_t copies_made() const noexcept { return copies_made_; }  // of faces, by this rank

 private:
  template <class Body>
  void guarded(Body&& body);  // after an error nothing more can be started
  unsigned patience() const noexcept;
  bool look(unsigned patience);
  bool advance(unsigned patience);
  std::size_t go_through(std::vector<FaceTransfer>& faces, unsigned patience) noexcept;
  bool seen_copied(FaceTransfer&) const noexcept;
  static bool given_up(const FaceTransfer&) noexcept;
  bool claim(FaceTransfer&, unsigned patience) noexcept;
  void copy(FaceTransfer&, std::size_t streaming_bytes) noexcept;
  bool copied(FaceTransfer&, std::size_t streaming_bytes) noexcept;
  void finish() noexcept;
  void end() noexcept;
  void withdraw(FaceTransfer&) noexcept;
  [[noreturn]] void neighbour_gave_up(int peer) const;
  [[noreturn]] void kernel_refused() const;

  std::shared_ptr<transport::LaneSet> lanes_;  // keeps the team
  node::Team* team_;
  FlagBlock flags_;
  std::vector<FaceTransfer> incoming_;
  std::vector<FaceTransfer> outgoing_;
  std::vector<FlagLine*> left_;
  std::array<std::vector<kernels::StridedCopy>, 2> packs_;
  std::shared_ptr<channel::PeerMemory> memory_;
  std::shared_ptr<Workers> workers_;
  tuning::HaloLimits limits_ = tuning::halo_limits();
  std::size_t bytes_ = 0;
  std::size_t streaming_bytes_ = 0;  // longer runs that come in are stored around the caches
  std::uint64_t exchange_ = 0;
  std::uint64_t copies_made_ = 0;
  int gone_ = -1;  // a neighbour that has given up while its face is awaited
  // The kernel has refused a copy of this neighbour's memory, with this error number.
  int refused_ = -1;
  int refusal_ = 0;
  unsigned tests_ = 0;
  bool started_ = false;
  bool failed_ = false;
  detail::Unwinding unwinding_;
};

}  // namespace ropewalk::halo
