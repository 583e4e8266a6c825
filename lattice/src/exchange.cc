#include "exchange.hpp"

#include <algorithm>
#include <chrono>

namespace ropewalk::lattice {

using kernels::leg_count;

bool any_divided(const Lattice& lattice) {
  for (int d = 0; d < dimensions; ++d)
    if (lattice.divided(d)) return true;
  return false;
}

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

template <class Real>
Faces<Real>::Faces(const Layout& layout, const HopTable& table, Strategy strategy)
    : table_(table), inner_(layout.inner()) {
  constexpr std::size_t half_reals = 12;
  FacePackets packets{std::vector<const void*>(2 * dimensions, nullptr),
                      std::vector<void*>(2 * dimensions, nullptr),
                      std::vector<std::size_t>(2 * dimensions, 0)};
  for (int leg = 0; leg < leg_count; ++leg) {
    const int d = direction(leg);
    if (!layout.lattice().divided(d)) continue;
    pairs_[leg] = layout.blocks()[d] == 2;
    const std::size_t sites = table.face_sites[leg].size();
    const std::size_t slots = pairs_[leg] ? (sites + 1) / 2 : sites;
    const std::size_t count = slots * static_cast<std::size_t>(layout.inner()) * half_reals *
                              static_cast<std::size_t>(layout.lanes());
    send_[leg] = Buffer<Real>(count);
    receive_[leg] = Buffer<Real>(count);
    // A forward leg gets from the rank at +, which sends towards -.
    const auto plus = static_cast<std::size_t>(2 * d), minus = plus + 1;
    packets.receive[forward(leg) ? plus : minus] = receive_[leg].data();
    packets.send[forward(leg) ? minus : plus] = send_[leg].data();
    packets.bytes[forward(leg) ? plus : minus] = receive_[leg].bytes();
  }
  halo_ = std::make_unique<Halo>(layout.lattice().grid(), layout.lattice().endpoints(), packets,
                                 HaloOptions{.strategy = strategy});
}

template <class Real>
void Faces<Real>::project(const kernels::Table<Real>& kernels,
                          const kernels::LaneTables<Real>& lanes, const Real* in, bool dagger,
                          int worker, int workers) {
  for (int leg = 0; leg < leg_count; ++leg) {
    if (send_[leg].size() == 0) continue;
    kernels::FaceArguments<Real> a;
    a.sites = table_.face_sites[leg].data();
    a.count = static_cast<std::ptrdiff_t>(table_.face_sites[leg].size());
    a.in = in;
    a.out = send_[leg].data();
    a.inner = inner_;
    a.pairs = pairs_[leg];
    a.lanes = &lanes;
    const std::ptrdiff_t pairs = (a.count + 1) / 2;  // even boundaries, as `pairs` wants
    const auto part = [&](int w) { return std::min(a.count, 2 * (pairs * w / workers)); };
    kernels.face[leg][dagger ? 1 : 0](a, part(worker), part(worker + 1));
  }
}

template <class Real>
void Faces<Real>::wait() {
  const double begin = now_us();
  halo_->wait();
  waited_us_ = now_us() - begin;
  all_came();
}

template class Faces<float>;
template class Faces<double>;

}  // namespace ropewalk::lattice
