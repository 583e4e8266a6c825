// Random numbers that belong to sites: any rank, in any order and on any grid of ranks, draws the
// same numbers for the same global site.
#pragma once

#include <array>
#include <cstdint>

namespace ropewalk::lattice {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four
// random words, a function of counter and key alone.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// The sequence of one site. `stream` tells apart fields that are drawn from one seed.
class SiteRandom {
 public:
  SiteRandom(std::uint64_t seed, std::uint64_t global_site, std::uint32_t stream) noexcept
      : seed_(seed), site_(global_site), stream_(stream) {}

  double uniform();  // in (0, 1): never 0
  double normal();   // mean 0, variance 1 (Box and Muller)

 private:
  std::uint64_t word();

  std::uint64_t seed_;
  std::uint64_t site_;
  std::uint32_t stream_;
  std::uint32_t draws_ = 0;
  std::array<std::uint64_t, 2> words_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace ropewalk::lattice
