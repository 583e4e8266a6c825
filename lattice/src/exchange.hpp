// The faces of one kind of field: where they are projected to, and the halo that moves them.
#pragma once

#include <array>
#include <memory>

#include "kernels/kernels.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "tables.hpp"
#include "team.hpp"

namespace ropewalk::lattice {

// Half spinors: 12 of 24 numbers a site. Made collectively.
template <class Real>
class Faces {
 public:
  Faces(const Layout&, const HopTable&, Strategy);

  // Projects what other ranks need from `in` into the send buffers.
  void project(const kernels::Table<Real>&, const kernels::LaneTables<Real>&, const Real* in,
               bool dagger, Team&);
  void start() { halo_->start(); }
  bool test() { return halo_->test(); }
  void wait() { halo_->wait(); }
  const Real* received(int leg) const noexcept { return receive_[leg].data(); }
  Strategy strategy() const noexcept { return halo_->strategy(); }
  std::size_t send_bytes() const noexcept { return halo_->send_bytes(); }

 private:
  const HopTable& table_;
  int inner_;
  std::array<bool, kernels::leg_count> pairs_{};
  std::array<Buffer<Real>, kernels::leg_count> send_;     // by leg of the rank that receives it
  std::array<Buffer<Real>, kernels::leg_count> receive_;  // by leg
  std::unique_ptr<Halo> halo_;
};

// Whether any dimension of this lattice is divided over ranks.
bool any_divided(const Lattice&);

}  // namespace ropewalk::lattice
