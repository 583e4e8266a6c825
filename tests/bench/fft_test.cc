// Tests the parts of the benchmark of Fourier transforms that need no ranks: the lines against the
// definition of the transform, how grids are divided, and the command line.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "bench/command_line.hpp"
#include "fft/lines.hpp"
#include "fft/options.hpp"

namespace ropewalk::bench {
namespace {

std::vector<Complex> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<Complex> out(count);
  for (Complex& one : out) one = {distribution(engine), distribution(engine)};
  return out;
}

// The sum that defines the transform, of every line along one axis.
std::vector<Complex> by_definition(const std::vector<Complex>& array, const Triple& extents,
                                   std::size_t axis) {
  std::vector<Complex> out(array.size());
  const std::size_t n = static_cast<std::size_t>(extents[axis]);
  std::size_t stride = 1;
  for (std::size_t other = axis + 1; other < 3; ++other) {
    stride *= static_cast<std::size_t>(extents[other]);
  }
  for (std::size_t place = 0; place < array.size(); ++place) {
    const std::size_t k = place / stride % n;
    for (std::size_t j = 0; j < n; ++j) {
      const double turn = static_cast<double>(j * k % n) / static_cast<double>(n);
      out[place] +=
          array[place - k * stride + j * stride] * std::polar(1.0, -2 * std::numbers::pi * turn);
    }
  }
  return out;
}

double largest_difference(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(Fft, LinesAlongEachAxisAreTransformedAsDefined) {
  for (const int threads : {1, 3}) {
    ThreadTeam team({.threads = threads});
    for (const Triple& extents : {Triple{5, 12, 9}, Triple{16, 1, 11}, Triple{7, 8, 1}}) {
      for (int axis = 0; axis < 3; ++axis) {
        const std::vector<Complex> numbers = random_numbers(volume(extents), 1);
        std::vector<Complex> found = numbers;
        AxisTransform lines(LineLibrary(), team, extents, axis);
        lines.forward(found.data());
        const auto wanted = by_definition(numbers, extents, static_cast<std::size_t>(axis));
        EXPECT_LT(largest_difference(found, wanted), 1e-12) << axis;
        lines.backward(found.data());
        EXPECT_LT(largest_difference(found, numbers), 1e-14) << axis;
      }
    }
  }
}

TEST(Fft, RealLinesHaveHalfOfTheCoefficients) {
  ThreadTeam team({.threads = 2});
  for (const int length : {1, 2, 9, 12}) {
    for (const int lines : {1, 4, 7}) {
      const auto n = static_cast<std::size_t>(length);
      const std::size_t half = n / 2 + 1;
      std::vector<Complex> numbers = random_numbers(static_cast<std::size_t>(lines) * n, 2);
      std::vector<double> values;
      for (Complex& one : numbers) values.push_back((one = one.real()).real());
      std::vector<Complex> found(static_cast<std::size_t>(lines) * half);
      RealTransform transform(LineLibrary(), team, static_cast<std::size_t>(lines), length);
      transform.forward(values.data(), found.data());
      const std::vector<Complex> wanted = by_definition(numbers, {1, lines, length}, 2);
      for (std::size_t at = 0; at < found.size(); ++at) {
        EXPECT_LT(std::abs(found[at] - wanted[at / half * n + at % half]), 1e-13) << length;
      }
      std::vector<double> back(values.size());
      transform.backward(found.data(), back.data());
      for (std::size_t at = 0; at < back.size(); ++at) EXPECT_NEAR(back[at], values[at], 1e-14);
    }
  }
}

TEST(Fft, LibrariesWithoutTheInterfaceAreRefused) {
  for (const char* wrong : {"libno-such-library.so", "libc.so.6"}) {
    const std::string refusal = refusal_of([&] { LineLibrary library{wrong}; });
    EXPECT_NE(refusal.find("--library: \"" + std::string(wrong)), std::string::npos) << refusal;
  }
}

TEST(Fft, SharesCoverAnAxisInOrder) {
  int next = 0;
  for (int part = 0; part < 5; ++part) {
    const AxisShare share = axis_share(17, 5, part);
    EXPECT_EQ(share.first, next);
    EXPECT_EQ(share.count, part < 2 ? 4 : 3);
    next += share.count;
  }
  EXPECT_EQ(next, 17);
}

// Both ranks of a pair must agree on what goes from one to the other.
TEST(Fft, WhatOneRankSendsTheOtherReceives) {
  const std::array<int, 2> ranks{3, 2};
  const auto shape_of = [&](int rank, int from, int to) {
    return transpose_shape({{7, 5, 9}, ranks, {rank / 2, rank % 2}}, from, to);
  };
  for (const auto& [from, to] : {std::array{2, 1}, {1, 0}, {0, 1}, {1, 2}}) {
    const int dimension = exchanging_dimension(from, to);
    for (int rank = 0; rank < 6; ++rank) {
      const int own = dimension == 0 ? rank / 2 : rank % 2;
      const TransposeShape mine = shape_of(rank, from, to);
      std::size_t sent = 0;
      for (int part = 0; part < ranks[static_cast<std::size_t>(dimension)]; ++part) {
        const int peer = dimension == 0 ? part * 2 + rank % 2 : rank / 2 * 2 + part;
        const GridBox& box = mine.sent[static_cast<std::size_t>(part)];
        EXPECT_EQ(box.count,
                  shape_of(peer, from, to).received[static_cast<std::size_t>(own)].count);
        sent += volume(box.count);
      }
      EXPECT_EQ(sent, volume(mine.from));
    }
  }
}

FftOptions options_of(const std::vector<std::string>& words) {
  return parse_words<FftOptions>("ropewalk-bench-fft", words);
}

TEST(Fft, GridsAreCubesOrHaveThreeExtents) {
  const FftOptions options = options_of({"--grids", "8,4.5.6"});
  EXPECT_EQ(options.grid_list, (std::vector<Triple>{{8, 8, 8}, {4, 5, 6}}));
  for (const char* wrong : {"8.8", "0", "x", "5000", "2048.2048.2048"}) {
    const std::string refusal = refusal_of([&] { options_of({"--grids", wrong}); });
    EXPECT_NE(refusal.find("--grids"), std::string::npos) << wrong << ": " << refusal;
  }
}

TEST(Fft, PencilsAreAsSquareAsTheRanksAllow) {
  const FftOptions options = options_of({"--grids", "6"});
  EXPECT_EQ(fft_rank_grid(options, "pencil", 6), (std::array<int, 2>{2, 3}));
  EXPECT_EQ(fft_rank_grid(options, "slab", 6), (std::array<int, 2>{6, 1}));
  EXPECT_EQ(fft_cases(options, 6).size(), 4U);
  const std::string refusal = refusal_of([&] { fft_cases(options, 7); });
  EXPECT_NE(refusal.find("--grids: 6.6.6 cannot be divided among 7.1 ranks"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk::bench
