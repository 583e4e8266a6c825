#include "ropewalk/lattice/random.hpp"

#include <cmath>

namespace ropewalk::lattice {
namespace {

constexpr double two_pi = 6.283185307179586476925;

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  // The multipliers and Weyl increments are those of the paper, table 2 and section 3.3.
  constexpr std::uint64_t multiplier0 = 0xD2511F53;
  constexpr std::uint64_t multiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl0 = 0x9E3779B9;
  constexpr std::uint32_t weyl1 = 0xBB67AE85;
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t a = multiplier0 * counter[0];
    const std::uint64_t b = multiplier1 * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + weyl0, key[1] + weyl1};
  }
  return counter;
}

std::uint64_t SiteRandom::word() {
  if (draws_ % 2 == 0) {
    const auto four =
        philox({static_cast<std::uint32_t>(site_), static_cast<std::uint32_t>(site_ >> 32),
                draws_ / 2, stream_},
               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    words_ = {(std::uint64_t{four[0]} << 32) | four[1], (std::uint64_t{four[2]} << 32) | four[3]};
  }
  return words_[draws_++ % 2];
}

double SiteRandom::uniform() {
  constexpr int bits = 52;  // with the half that keeps 0 out, the 53 of a double
  return std::ldexp(static_cast<double>(word() >> (64 - bits)) + 0.5, -bits);
}

double SiteRandom::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(uniform()));
  const double angle = two_pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace ropewalk::lattice
