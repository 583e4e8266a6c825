// Interleaved, verified samples of whole steps; see steps.hpp.
#include "comms/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "common/pattern.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

HaloBuffers sizes_of(const LocalLattice& lattice, const CartesianGrid& grid) {
  HaloBuffers out;
  for (int d = 0; d < grid.dimensions(); ++d) {
    out.bytes.insert(out.bytes.end(), 2, grid.extents()[d] > 1 ? face_bytes(lattice, d) : 0);
  }
  return out;
}

// Reads whole lines, as the faces of half spinors are.
std::uint64_t read_face(const void* face, std::size_t bytes) {
  std::array<std::uint64_t, 4> sums{};
  std::array<std::uint64_t, 4> words;
  const auto* from = static_cast<const char*>(face);
  for (std::size_t at = 0; at + sizeof words <= bytes; at += sizeof words) {
    std::memcpy(words.data(), from + at, sizeof words);
    for (std::size_t i = 0; i < words.size(); ++i) sums[i] += words[i];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// One way to pass faces on, and its memory.
class Stepping {
 public:
  Stepping(const CartesianGrid& grid, const HaloBuffers& sizes) : grid_(grid), sizes_(sizes) {
    std::size_t sum = 0;
    for (const std::size_t bytes : sizes.bytes) sum += bytes;
    field_ = Buffer<std::byte>(sum);
    own_ = Buffer<std::byte>(2 * sum);
  }
  Stepping(const CartesianGrid& grid, EndpointSet& endpoints, const HaloBuffers& sizes,
           Strategy strategy)
      : grid_(grid), sizes_(sizes) {
    halo_.emplace(grid, endpoints, sizes, HaloOptions{strategy, Corners::no});
    std::size_t sum = 0;
    for (const std::size_t bytes : sizes.bytes) sum += bytes;
    field_ = Buffer<std::byte>(sum);
  }

  void step(CopyWay stores) {
    const std::byte* from = field_.data();
    for (std::size_t i = 0; i < sizes_.bytes.size(); from += sizes_.bytes[i++]) {
      if (sizes_.bytes[i] > 0) copy_bytes(send(i), from, sizes_.bytes[i], stores);
    }
    if (halo_) halo_->exchange();
    ++steps_;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sizes_.bytes.size(); ++i) {
      if (sizes_.bytes[i] > 0) sum += read_face(received(i), sizes_.bytes[i]);
    }
    read_ = sum;
  }
  double time(CopyWay stores, int iterations) {
    const double begin = now_us();
    for (int i = 0; i < iterations; ++i) step(stores);
    return (now_us() - begin) / iterations;
  }

  void fill(std::uint64_t serial) {
    std::byte* to = field_.data();
    for (std::size_t i = 0; i < sizes_.bytes.size(); to += sizes_.bytes[i++]) {
      fill_pattern(to, sizes_.bytes[i], key(grid_.rank(), i, serial));
    }
  }
  // This checks after two steps or more.
  std::string check(std::uint64_t serial) const {
    for (std::size_t i = 0; i < sizes_.bytes.size(); ++i) {
      if (sizes_.bytes[i] == 0) continue;
      const int there = grid_.neighbour(static_cast<int>(i / 2), i % 2 == 0 ? 1 : -1);
      const std::uint64_t wanted =
          halo_ ? key(there, i ^ 1U, serial) : key(grid_.rank(), i, serial);
      const std::size_t right = check_pattern(received(i), sizes_.bytes[i], wanted);
      if (right == sizes_.bytes[i]) continue;
      return fmt::format("rank {}: step by {}: face {} is wrong at byte {} of {}", grid_.rank(),
                         halo_ ? name(halo_->strategy()) : "limit", i, right, sizes_.bytes[i]);
    }
    return "";
  }

 private:
  static std::uint64_t key(int rank, std::size_t direction, std::uint64_t serial) {
    return pattern_key(static_cast<std::uint64_t>(rank), direction, 0, serial);
  }
  std::byte* own(std::size_t direction, std::size_t turn) const {
    std::byte* at = own_.data() + turn * field_.size();
    for (std::size_t i = 0; i < direction; ++i) at += sizes_.bytes[i];
    return at;
  }
  void* send(std::size_t i) const {
    return halo_ ? halo_->send_buffer(static_cast<int>(i)) : own(i, steps_ % 2);
  }
  const void* received(std::size_t i) const {
    return halo_ ? halo_->receive_buffer(static_cast<int>(i)) : own(i, steps_ % 2);
  }

  const CartesianGrid& grid_;
  const HaloBuffers& sizes_;
  std::optional<Halo> halo_;
  Buffer<std::byte> field_;
  Buffer<std::byte> own_;  // of the limit: two turns
  std::size_t steps_ = 0;
  volatile std::uint64_t read_ = 0;
};

struct Case {
  Case(std::string name, std::unique_ptr<Stepping> made) : stepping(std::move(made)) {
    column.name = std::move(name);
  }
  StepColumn column;
  std::unique_ptr<Stepping> stepping;
  std::vector<double> us{};
  int iterations = 1;
};

double sample(Case& one, const Ranks& ranks, CopyWay stores, int iterations) {
  one.stepping->step(stores);  // what another column has put out of the caches
  ranks.barrier();
  return ranks.max(one.stepping->time(stores, iterations));
}

// The faster stores, and how often to step; the same on all ranks.
void calibrate(Case& one, const Ranks& ranks, const StepOptions& options) {
  double best = 0;
  for (const CopyWay stores : {CopyWay::library, CopyWay::streaming}) {
    double least = sample(one, ranks, stores, 2);
    for (int again = 0; again < 3; ++again) {
      least = std::min(least, sample(one, ranks, stores, 4));
    }
    if (best > 0 && least >= best) continue;
    best = least;
    one.column.stores = stores;
  }
  one.iterations = std::clamp(static_cast<int>(options.sample_us / best), 1, 2000);
}

std::vector<Case> cases(const Ranks& ranks, const CartesianGrid& grid, EndpointSet& endpoints,
                        const HaloBuffers& sizes) {
  std::vector<Case> out;
  ranks.collectively([&] { out.emplace_back("limit", std::make_unique<Stepping>(grid, sizes)); });
  for (const Strategy strategy : {Strategy::concurrent, Strategy::direct, Strategy::put}) {
    const bool plain = strategy == Strategy::concurrent;
    try {
      out.emplace_back(plain ? "plain" : name(strategy),
                       std::make_unique<Stepping>(grid, endpoints, sizes, strategy));
    } catch (const Error& error) {  // the same on all ranks
      if (plain || error.code() != ErrorCode::unsupported) throw;
    }
  }
  return out;
}

}  // namespace

const StepColumn& StepResult::best() const {
  return *std::min_element(
      columns.begin() + (columns.size() > 2 ? 2 : 1), columns.end(),
      [](const StepColumn& a, const StepColumn& b) { return a.us.median < b.us.median; });
}

StepResult measure_steps(const StepOptions& options, const Ranks& ranks, const CartesianGrid& grid,
                         EndpointSet& endpoints, const LocalLattice& lattice) {
  const HaloBuffers sizes = sizes_of(lattice, grid);
  std::vector<Case> all = cases(ranks, grid, endpoints, sizes);
  StepResult result;
  double longest = 0;
  for (Case& one : all) {
    calibrate(one, ranks, options);
    longest = std::max(longest, sample(one, ranks, one.column.stores, 1) * one.iterations);
  }
  const int samples =
      std::clamp(static_cast<int>(options.budget_us / longest), 5, std::max(5, options.samples));
  std::uint64_t serial = 0;
  for (int round = 0; round < samples; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Case& one = all[(i + static_cast<std::size_t>(round)) % all.size()];
      one.stepping->fill(++serial);
      one.us.push_back(sample(one, ranks, one.column.stores, one.iterations));
      if (result.wrong.empty()) result.wrong = one.stepping->check(serial);
    }
  }
  for (Case& one : all) {
    one.column.us = summarize(one.us);
    one.column.verified = ranks.all(result.wrong.empty());
    result.columns.push_back(one.column);
  }
  return result;
}

}  // namespace ropewalk::bench
