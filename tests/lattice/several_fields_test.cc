// Operators on several fields at once: bit for bit what they make of one after the other.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lattice/proof_tools.hpp"
#include "lattice/proofs.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;

constexpr Extents global{4, 4, 4, 8};

template <class Real>
using Fields = std::vector<SpinorField<Real>>;

template <class Real>
Fields<Real> drawn(const HoppingTerm<Real>& op, Sites sites, int fields, std::uint64_t seed) {
  Fields<Real> out;
  for (int f = 0; f < fields; ++f) {
    const Numbers plain = random_spinor(op.lattice(), seed + static_cast<std::uint64_t>(f),
                                        op.layout().fifth_extent());
    out.push_back(imported(op.field(sites), plain));
  }
  return out;
}
template <class Real>
Fields<Real> empty(const HoppingTerm<Real>& op, Sites sites, int fields) {
  Fields<Real> out;
  for (int f = 0; f < fields; ++f) out.push_back(op.field(sites));
  return out;
}

template <class Real>
void expect_same(const Fields<Real>& found, const Fields<Real>& expected, const char* what) {
  for (std::size_t f = 0; f < found.size(); ++f) {
    EXPECT_EQ(exported(found[f]), exported(expected[f])) << what << ", field " << f;
  }
}

template <class Real>
void expect_hops(HoppingTerm<Real>& op, Sites to, int fields, bool dagger) {
  const Sites from = to == Sites::all ? to : to == Sites::even ? Sites::odd : Sites::even;
  const Fields<Real> in = drawn(op, from, fields, 71), centre = drawn(op, to, fields, 91);
  Fields<Real> found = empty(op, to, fields), expected = empty(op, to, fields);
  op.hop(found, in, dagger);
  for (std::size_t f = 0; f < in.size(); ++f) op.hop(expected[f], in[f], dagger);
  expect_same(found, expected, "hop");
  op.hop_add(found, 0.75, centre, -1.5, in, dagger);
  for (std::size_t f = 0; f < in.size(); ++f) {
    op.hop_add(expected[f], 0.75, centre[f], -1.5, in[f], dagger);
  }
  expect_same(found, expected, "hop with a centre");
}

template <class Real, class Operator>
void expect_operator(Operator& op, int fields, bool dagger) {
  const Fields<Real> in = drawn<Real>(op, Sites::all, fields, 72);
  Fields<Real> found = empty<Real>(op, Sites::all, fields);
  Fields<Real> expected = empty<Real>(op, Sites::all, fields);
  op.apply(found, in, dagger);
  for (std::size_t f = 0; f < in.size(); ++f) op.apply(expected[f], in[f], dagger);
  expect_same(found, expected, "M");
  const Fields<Real> odd = drawn<Real>(op, Sites::odd, fields, 73);
  found = empty<Real>(op, Sites::odd, fields);
  expected = empty<Real>(op, Sites::odd, fields);
  op.apply_schur(found, odd, dagger);
  for (std::size_t f = 0; f < in.size(); ++f) op.apply_schur(expected[f], odd[f], dagger);
  expect_same(found, expected, "Schur's complement");
}

// What only the clover operator has.
template <class Real>
void expect_clover(CloverOperator<Real>& op, int fields) {
  const Fields<Real> even = drawn<Real>(op, Sites::even, fields, 76);
  Fields<Real> found = empty<Real>(op, Sites::odd, fields);
  Fields<Real> expected = empty<Real>(op, Sites::odd, fields);
  for (const bool dagger : {false, true}) {
    op.mult(found, even, dagger);
    for (std::size_t f = 0; f < even.size(); ++f) op.mult(expected[f], even[f], dagger);
    expect_same(found, expected, "MULT");
  }
  found = empty<Real>(op, Sites::even, fields);
  expected = empty<Real>(op, Sites::even, fields);
  op.apply_schur_by_mult(found, even);
  for (std::size_t f = 0; f < even.size(); ++f) op.apply_schur_by_mult(expected[f], even[f]);
  expect_same(found, expected, "Schur's complement by MULT");
  op.diagonal_part(found, even);
  op.diagonal_inverse(found, found);
  for (std::size_t f = 0; f < even.size(); ++f) {
    op.diagonal_part(expected[f], even[f]);
    op.diagonal_inverse(expected[f], expected[f]);
  }
  expect_same(found, expected, "A and its inverse");
}

template <class Real>
void expect_all(const Lattice& lattice, const OperatorOptions& options, int fields) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  WilsonOperator<Real> wilson(gauge, 0.1, options);
  CloverOperator<Real> clover(gauge, 1, 1, options);
  expect_clover(clover, fields);
  for (const bool dagger : {false, true}) {
    for (const Sites to : {Sites::all, Sites::even, Sites::odd}) {
      expect_hops(wilson, to, fields, dagger);
    }
    expect_operator<Real>(wilson, fields, dagger);
    expect_operator<Real>(clover, fields, dagger);
    for (const Vectors vectors : {Vectors::space, Vectors::fifth}) {
      DomainWallOperator<Real> walls(gauge, {16, 0.05, 1.8}, vectors, options);
      expect_operator<Real>(walls, fields, dagger);
    }
  }
}

TEST(SeveralFields, Alone) {
  const Lattice lattice(global);
  for (const Links links : {Links::full, Links::two_rows}) {
    OperatorOptions options;
    options.links = links;
    for (const int fields : {1, 3}) {
      expect_all<double>(lattice, options, fields);
      expect_all<float>(lattice, options, fields);
    }
  }
}

TEST(SeveralFields, OverRanks) {
  for (const Extents& grid : {Extents{2, 1, 1, 1}, Extents{1, 1, 2, 2}}) {
    run_ranks(ranks_of(grid), [&](int) {
      const Lattice lattice(global, Communicator::world(), grid);
      OperatorOptions options;
      options.strategy = Strategy::put;
      options.antiperiodic_time = true;
      expect_all<float>(lattice, options, 2);
      options.strategy = Strategy::concurrent;
      options.face_precision = FacePrecision::half;
      options.threads = 2;
      expect_all<double>(lattice, options, 3);
      options.exchange = ExchangeMode::sequential;
      expect_all<float>(lattice, options, 2);
    });
  }
}

// Beyond the caches, where links and neighbours are fetched ahead.
TEST(SeveralFields, FromMemory) {
  const Lattice lattice({16, 16, 8, 16});
  for (const Links links : {Links::full, Links::two_rows}) {
    OperatorOptions options;
    options.links = links;
    WilsonOperator<float> op(as<float>(random_gauge(lattice, 74)), 0.1, options);
    expect_hops(op, Sites::even, 4, false);
  }
}

// The same words on every rank, and all ranks can go on.
TEST(SeveralFields, Refusals) {
  run_ranks(2, [](int rank) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    OperatorOptions options;
    options.strategy = Strategy::concurrent;
    WilsonOperator<double> op(GaugeField<double>(lattice), 0.1, options);
    Fields<double> out = empty(op, Sites::all, 2);
    const Fields<double> in = drawn(op, Sites::all, 3, 75);
    const auto refused = [&](const std::string& words, auto call) {
      try {
        call();
        FAIL() << "no error, expected: " << words;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    };
    // Rank 1 alone has one field more.
    refused("2 and 3 fields", [&] { op.hop(out, std::span(in).first(rank == 1 ? 3 : 2)); });
    refused("0 and 0 fields", [&] { op.hop({}, {}); });
    CloverOperator<double> clover(GaugeField<double>(lattice), 1, 1, options);
    refused("2 and 3 fields", [&] { clover.apply(out, in); });
    refused("2 and 3 fields", [&] { clover.apply_schur(out, in); });
    refused("different sites", [&] {
      Fields<double> odd_ones = empty(clover, Sites::odd, 2);
      clover.diagonal_part(odd_ones, std::span(in).first(2));
    });
    Fields<double> three = empty(op, Sites::all, 3);
    refused("given twice", [&] { op.hop(std::span(three).first(2), std::span(three).last(2)); });
    refused("field 1 is field 0",
            [&] { clover.diagonal_part(std::span(three).first(2), std::span(three).last(2)); });
    Fields<double> odd = empty(clover, Sites::odd, 2);
    refused("the same field as in", [&] { clover.apply_schur_by_mult(odd, odd); });
    op.hop(out, std::span(in).first(2));
  });
}

}  // namespace
}  // namespace ropewalk::lattice::test
