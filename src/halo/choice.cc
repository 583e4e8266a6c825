#include "halo/choice.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <vector>

#include "mpi/collectively.hpp"

namespace ropewalk::halo {

namespace {

// The least of a few repetitions counts, because a disturbance only ever adds to a measurement.
constexpr std::size_t repetitions = 4;

}  // namespace

std::size_t fastest(mpi::Comm comm, std::size_t count, Warming warming,
                    const std::function<void(std::size_t)>& run) {
  std::vector<double> times;  // repetition by repetition, so that drift meets all alike
  times.reserve(repetitions * count);
  std::vector<double> best(count, std::numeric_limits<double>::max());
  const auto seconds = [&](std::size_t alternative) {
    mpi::meet(comm);  // an error of a rank, and otherwise a barrier
    const auto begin = std::chrono::steady_clock::now();
    run(alternative);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (std::size_t i = 0; warming == Warming::once && i < count; ++i) seconds(i);
  for (std::size_t r = 0; r < repetitions; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      if (warming == Warming::each_time) seconds(i);
      times.push_back(seconds(i));
    }
  }
  mpi::all_reduce(std::span<double>(times), mpi::Combine::max, comm);
  for (std::size_t i = 0; i < times.size(); ++i) {
    best[i % count] = std::min(best[i % count], times[i]);
  }
  return static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
}

}  // namespace ropewalk::halo
