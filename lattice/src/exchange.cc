#include "exchange.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "agree.hpp"
#include "shared.hpp"

namespace ropewalk::lattice {

using kernels::leg_count;

namespace {

// How often each kind of stores is measured. Medians are compared, since on some machines the same
// stores take 5 or 30 ns a line from one moment to the next.
constexpr std::size_t rehearsals = 9;
// Stores around the caches are chosen when they take at most 1 / 0.7 of the time of plain ones:
// they cost little where they are not needed, and plain ones up to five times as much where they
// are.
constexpr double preference = 0.7;

// Faces of several fields begin with a line each, as vectors and stores past the caches want it.
constexpr std::size_t line_bytes = 64;

// Writes a buffer whole, in the way that faces are stored.
void write_all(void* to, std::size_t bytes, bool stream) {
  char* const begin = static_cast<char*>(to);
#if defined(__x86_64__)
  const __m128i zero = _mm_setzero_si128();
  for (std::size_t i = 0; i + sizeof(zero) <= bytes; i += sizeof(zero)) {
    auto* const at = reinterpret_cast<__m128i*>(begin + i);
    stream ? _mm_stream_si128(at, zero) : _mm_store_si128(at, zero);
  }
  if (stream) _mm_sfence();
#else
  if (!stream) std::fill_n(begin, bytes, 0);
#endif
}

}  // namespace

bool any_divided(const Lattice& lattice) {
  for (int d = 0; d < dimensions; ++d) {
    if (lattice.divided(d)) return true;
  }
  return false;
}

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

template <class Real>
Faces<Real>::Faces(const Layout& layout, const HopTable& table, Strategy strategy,
                   FacePrecision precision, std::size_t fields)
    : table_(table), inner_(layout.inner()), precision_(precision) {
  constexpr std::size_t half_reals = 12;
  HaloBuffers sizes{std::vector<std::size_t>(std::size_t{2} * dimensions, 0)};
  for (int leg = 0; leg < leg_count; ++leg) {
    const int d = direction(leg);
    if (!layout.lattice().divided(d)) continue;
    pairs_[leg] = layout.blocks()[d] == 2;
    const std::size_t sites = table.face_sites[leg].size();
    const std::size_t slots = pairs_[leg] ? (sites + 1) / 2 : sites;
    const std::size_t packets = slots * static_cast<std::size_t>(layout.inner());
    const std::size_t numbers = packets * half_reals * static_cast<std::size_t>(layout.lanes());
    const bool full = precision == FacePrecision::full;
    numbers_bytes_[leg] = numbers * (full ? sizeof(Real) : sizeof(std::uint16_t));
    const std::size_t face = numbers_bytes_[leg] + (full ? 0 : packets * sizeof(std::int16_t));
    apart_[leg] = (face + line_bytes - 1) / line_bytes * line_bytes;
    sizes.bytes[static_cast<std::size_t>(receives_from(leg))] = apart_[leg] * (fields - 1) + face;
  }
  detail::Shared& shared = detail::shared(layout.lattice());
  const std::size_t bytes = std::reduce(sizes.bytes.begin(), sizes.bytes.end());
  if (strategy == Strategy::automatic) strategy = shared.strategy(bytes);
  const bool measure = strategy == Strategy::automatic;
  EndpointSet& endpoints = layout.lattice().endpoints();
  meet(layout.lattice());
  halo_.emplace(layout.lattice().grid(), endpoints, sizes, HaloOptions{.strategy = strategy});
  if (measure) shared.keep(bytes, halo_->strategy());
  sizes_ = sizes.bytes;
}

template <class Real>
void Faces<Real>::project(const kernels::OperatorTable<Real>& kernels,
                          const kernels::LaneTables<Real>& lanes, const Real* in, std::size_t field,
                          bool dagger, int worker, int workers) {
  for (int leg = 0; leg < leg_count; ++leg) {
    void* const buffer = halo_->send_buffer(sends_to(leg));
    if (buffer == nullptr) continue;
    char* const out = static_cast<char*>(buffer) + field * apart_[leg];
    kernels::FaceArguments<Real> a;
    a.sites = table_.face_sites[leg].data();
    a.count = static_cast<std::ptrdiff_t>(table_.face_sites[leg].size());
    a.in = in;
    a.out = out;
    if (precision_ == FacePrecision::half) {
      a.exponents = reinterpret_cast<std::int16_t*>(out + numbers_bytes_[leg]);
    }
    a.inner = inner_;
    a.pairs = pairs_[leg];
    a.stream = stream_;
    a.lanes = &lanes;
    const std::ptrdiff_t pairs = (a.count + 1) / 2;  // even boundaries, as `pairs` wants
    const auto part = [&](int w) { return std::min(a.count, 2 * (pairs * w / workers)); };
    kernels.face[leg][dagger ? 1 : 0](a, part(worker), part(worker + 1));
  }
}

// Measures the microseconds of writing all faces, exchanging and reading them.
template <class Real>
double Faces<Real>::rehearse(bool stream) {
  const double begin = now_us();
  for (int i = 0; i < 2 * dimensions; ++i) {
    write_all(halo_->send_buffer(i), sizes_[static_cast<std::size_t>(i)], stream);
  }
  halo_->exchange();
  volatile char last = 0;  // a read of each line is all that tells one way from the other
  for (int i = 0; i < 2 * dimensions; ++i) {
    const auto* face = static_cast<const char*>(halo_->receive_buffer(i));
    for (std::size_t at = 0; at < sizes_[static_cast<std::size_t>(i)]; at += 64) last = face[at];
  }
  static_cast<void>(last);
  return now_us() - begin;
}

template <class Real>
void Faces<Real>::choose_stores(const Lattice& lattice) {
  if (!uses_shared_memory(strategy())) return;  // MPI copies what was projected by itself
  meet(lattice);
  double typical[2];
  for (int way = 0; way < 2; ++way) {  // not in turn: what one leaves in the caches helps the other
    std::array<double, rehearsals> times{};
    for (double& time : times) time = rehearse(way == 1);
    const auto middle = times.begin() + rehearsals / 2;
    std::nth_element(times.begin(), middle, times.end());
    typical[way] = *middle;
  }
  lattice.sum(typical, 2);
  stream_ = preference * typical[1] < typical[0];
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
