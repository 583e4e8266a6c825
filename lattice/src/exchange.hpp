// The faces of one kind of field: where they are projected to, and the halo that moves them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/kernels.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "tables.hpp"

namespace ropewalk::lattice {

double now_us();

// The faces are half spinors: 12 numbers of the 24 of a site. Construction is collective, inside of
// collectively(). ropewalk::overlap_worker takes this class for an exchange: one thread starts,
// tests and waits, or several threads drive the lanes.
template <class Real>
class Faces {
 public:
  // The faces of so many fields at once travel in the same messages.
  Faces(const Layout&, const HopTable&, Strategy, FacePrecision, std::size_t fields);

  // Projects what other ranks need from `in`, the field of this number, into the send buffers: one
  // worker's share.
  void project(const kernels::OperatorTable<Real>&, const kernels::LaneTables<Real>&,
               const Real* in, std::size_t field, bool dagger, int worker, int workers);

  // Collective, once: whether projected faces are stored past the caches. Where ranks read each
  // other's memory, storing to lines that another core has read since may cost it 30 ns a line.
  void choose_stores(const Lattice&);

  // One thread calls it before each exchange, while no other uses the faces.
  void begin() noexcept {
    lanes_left_.store(lanes(), std::memory_order_relaxed);
    waited_us_ = lanes_done_us_ = 0;
  }
  void start() { halo_->start(); }
  bool test() { return halo_->test() && all_came(); }
  void wait();
  void exchange_lane(int lane) {
    halo_->exchange_lane(lane);
    if (lanes_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) lanes_done_us_ = now_us();
  }
  int lanes() const noexcept { return halo_->lanes(); }
  // Returns true when all faces of this exchange are there and may be read. The acquire pairs with
  // the releases in exchange_lane() and all_came().
  bool arrived() const noexcept { return lanes_left_.load(std::memory_order_acquire) == 0; }

  double waited_us() const noexcept { return waited_us_; }  // in wait() of this exchange
  // Returns the time at which exchange_lane() had received the last face; 0 if nobody has called
  // it. To be read after a barrier with the threads that called it.
  double lanes_done_us() const noexcept { return lanes_done_us_; }

  // Returns the place where the next exchange puts the face of a field that this leg needs.
  const void* received(int leg, std::size_t field) const noexcept {
    const void* const buffer = halo_->next_receive_buffer(receives_from(leg));
    return buffer == nullptr ? nullptr : static_cast<const char*>(buffer) + field * apart_[leg];
  }
  // Returns that of the exponents of its packets, behind these; null where packets are of Reals.
  const std::int16_t* exponents(int leg, std::size_t field) const noexcept {
    const void* const face = received(leg, field);
    if (precision_ == FacePrecision::full || face == nullptr) return nullptr;
    return reinterpret_cast<const std::int16_t*>(static_cast<const char*>(face) +
                                                 numbers_bytes_[leg]);
  }
  Strategy strategy() const noexcept { return halo_->strategy(); }
  std::size_t send_bytes() const noexcept { return halo_->send_bytes(); }

 private:
  // Directions of the halo. A forward leg gets from the rank at +, which sends towards -.
  static int receives_from(int leg) noexcept { return 2 * direction(leg) + (forward(leg) ? 0 : 1); }
  static int sends_to(int leg) noexcept { return receives_from(leg) ^ 1; }
  double rehearse(bool stream);
  bool all_came() noexcept {
    lanes_left_.store(0, std::memory_order_release);
    return true;
  }

  const HopTable& table_;
  int inner_;
  FacePrecision precision_;
  std::array<std::size_t, kernels::leg_count> numbers_bytes_{};  // of a face, without exponents
  std::array<std::size_t, kernels::leg_count>
      apart_{};  // bytes from the face of a field to the next
  std::array<bool, kernels::leg_count> pairs_{};
  std::optional<Halo> halo_;  // and the memory of the faces
  std::vector<std::size_t> sizes_;
  bool stream_ = false;
  double waited_us_ = 0;
  double lanes_done_us_ = 0;
  alignas(128) std::atomic<int> lanes_left_{0};  // whose messages of this exchange are not done
};

// Whether any dimension of this lattice is divided over ranks.
bool any_divided(const Lattice&);

}  // namespace ropewalk::lattice
