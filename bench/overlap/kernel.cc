// The loop of kernel.hpp. This file is compiled with -O3, once for each instruction set.
#include "overlap/kernel.hpp"

#include <algorithm>
#include <cmath>

namespace ropewalk::bench {
namespace {

constexpr std::size_t spinor = 24;  // reals
constexpr std::size_t half = 12;
constexpr std::size_t link = 18;
constexpr std::size_t clover = 72;
constexpr std::size_t width = lanes_a_vector;

struct Place {
  const float* in[8];
  const float* links;
  const float* clover;
  float* out;
};

// acc += U h and acc' += s U h, over the lanes: h are two spins of three colours.
[[gnu::always_inline]] inline void hop(float (&acc)[spinor][width], const float* in, const float* u,
                                       float sign) {
  float h[half][width];
  for (std::size_t i = 0; i < half; ++i) {
    for (std::size_t l = 0; l < width; ++l) {
      h[i][l] = in[i * width + l] + sign * in[(i + half) * width + l];
    }
  }
  for (std::size_t spin = 0; spin < 2; ++spin) {
    for (std::size_t row = 0; row < 3; ++row) {
      float re[width] = {};
      float im[width] = {};
      for (std::size_t column = 0; column < 3; ++column) {
        const float* a = u + (row * 3 + column) * 2 * width;
        const float* x = h[(spin * 3 + column) * 2];
        const float* y = h[(spin * 3 + column) * 2 + 1];
        for (std::size_t l = 0; l < width; ++l) {
          re[l] += a[l] * x[l] - a[width + l] * y[l];
          im[l] += a[l] * y[l] + a[width + l] * x[l];
        }
      }
      const std::size_t to = (spin * 3 + row) * 2;
      for (std::size_t l = 0; l < width; ++l) {
        acc[to][l] += re[l];
        acc[to + 1][l] += im[l];
        acc[to + half][l] += sign * re[l];
        acc[to + half + 1][l] += sign * im[l];
      }
    }
  }
}

// Two Hermitian 6x6 blocks: 36 reals each, the diagonal first.
[[gnu::always_inline]] inline void apply_clover(float* out, float (&in)[spinor][width],
                                                const float* blocks) {
  for (std::size_t block = 0; block < 2; ++block) {
    const float* a = blocks + block * 36 * width;
    const std::size_t first = block * half;
    for (std::size_t row = 0; row < 6; ++row) {
      float re[width];
      float im[width];
      for (std::size_t l = 0; l < width; ++l) {
        re[l] = a[row * width + l] * in[first + 2 * row][l];
        im[l] = a[row * width + l] * in[first + 2 * row + 1][l];
      }
      for (std::size_t column = 0; column < 6; ++column) {
        if (column == row) continue;
        const std::size_t low = std::min(row, column);
        const std::size_t high = std::max(row, column);
        const float* c = a + (6 + (high * (high - 1) / 2 + low) * 2) * width;
        const float sign = column < row ? 1.0F : -1.0F;
        const float* x = in[first + 2 * column];
        const float* y = in[first + 2 * column + 1];
        for (std::size_t l = 0; l < width; ++l) {
          re[l] += c[l] * x[l] - sign * c[width + l] * y[l];
          im[l] += c[l] * y[l] + sign * c[width + l] * x[l];
        }
      }
      for (std::size_t l = 0; l < width; ++l) {
        out[(first + 2 * row) * width + l] = re[l];
        out[(first + 2 * row + 1) * width + l] = im[l];
      }
    }
  }
}

[[gnu::always_inline]] inline void site(const Place& at) {
  float acc[spinor][width] = {};
  for (std::size_t leg = 0; leg < 8; ++leg) {
    hop(acc, at.in[leg], at.links + leg * link * width, leg % 2 == 0 ? 1.0F : -1.0F);
  }
  apply_clover(at.out, acc, at.clover);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void site_avx512(
    const Place& at) {
  site(at);
}
[[gnu::target("avx2,fma")]] void site_avx2(const Place& at) { site(at); }
#endif
void site_baseline(const Place& at) { site(at); }

using Site = void (*)(const Place&);
Site fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return site_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return site_avx2;
#endif
  return site_baseline;
}

void fill(Buffer<float>& numbers, float scale) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = scale * static_cast<float>(i * 2654435761U % 1021) / 1021.0F;
  }
}

}  // namespace

Mult::Mult(std::size_t vectors)
    : vectors_(std::max<std::size_t>(vectors, 1)),
      in_(vectors_ * spinor * width),
      links_(vectors_ * 8 * link * width),
      clover_(vectors_ * clover * width),
      out_(vectors_ * spinor * width) {
  // As if the row were folded into four dimensions of one extent.
  const auto extent = static_cast<std::size_t>(
      std::max(1.0, std::floor(std::pow(static_cast<double>(vectors_), 0.25))));
  for (std::size_t d = 0, step = 1; d < 4; ++d, step *= extent) step_[d] = step % vectors_;
  fill(in_, 1.0F);
  fill(links_, 0.3F);
  fill(clover_, 0.1F);
}

std::size_t Mult::bytes() const noexcept {
  return (in_.size() + links_.size() + clover_.size() + out_.size()) * sizeof(float);
}

void Mult::compute(std::size_t begin, std::size_t end) noexcept {
  static const Site one = fastest();
  for (std::size_t v = begin; v < end; ++v) {
    Place at{};
    for (std::size_t d = 0; d < 4; ++d) {
      const std::size_t up = v + step_[d] < vectors_ ? v + step_[d] : v + step_[d] - vectors_;
      const std::size_t down = v >= step_[d] ? v - step_[d] : v + vectors_ - step_[d];
      at.in[2 * d] = &in_[up * spinor * width];
      at.in[2 * d + 1] = &in_[down * spinor * width];
    }
    at.links = &links_[v * 8 * link * width];
    at.clover = &clover_[v * clover * width];
    at.out = &out_[v * spinor * width];
    one(at);
  }
}

void Mult::clear() noexcept { std::fill(out_.begin(), out_.end(), 0.0F); }

bool Mult::right() {
  double sum = 0;
  for (std::size_t i = 0; i < out_.size(); ++i) sum += out_[i] * static_cast<double>(i % 31 + 1);
  if (!known_) expected_ = sum;
  known_ = true;
  return sum == expected_ && sum != 0;
}

}  // namespace ropewalk::bench
