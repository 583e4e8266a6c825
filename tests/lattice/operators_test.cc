// Runs the proofs of the operators with ranks as threads: on every kind of grid, and under
// sanitizers too.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "lattice/proofs.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;

constexpr Extents global{4, 4, 4, 8};
const std::vector<Extents> grids{{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1},
                                 {1, 1, 1, 2}, {1, 1, 1, 4}, {2, 1, 2, 1}, {2, 2, 1, 2}};

const Whole& whole(bool antiperiodic) {
  static const Whole periodic(global, false, 8);
  static const Whole other(global, true, 8);
  return antiperiodic ? other : periodic;
}

void with_grid(const Extents& grid, const std::function<void(const Lattice&)>& body) {
  run_ranks(ranks_of(grid), [&](int) { body(Lattice(global, Communicator::world(), grid)); });
}

// Does this machine have vectors of so many numbers, as 4 of double without AVX-512?
template <class Real>
bool has_lanes(const Lattice& lattice, int lanes) {
  try {
    const Layout layout(lattice, sizeof(Real), Vectors::space, 1, lanes);
    const HoppingTerm<Real> term(GaugeField<Real>(lattice), layout);
    return true;
  } catch (const Error&) {
    return false;
  }
}

OperatorOptions options_of(ExchangeMode exchange, Strategy strategy, bool antiperiodic = false) {
  OperatorOptions out;
  out.exchange = exchange;
  out.strategy = strategy;
  out.antiperiodic_time = antiperiodic;
  return out;
}

TEST(Operators, AloneWithoutMpi) {
  for (const bool antiperiodic : {false, true}) {
    const How how{options_of(ExchangeMode::overlap, Strategy::automatic, antiperiodic)};
    prove_wilson<double>(whole(antiperiodic), Lattice(global), how);
    prove_wilson<float>(whole(antiperiodic), Lattice(global), how);
    How two = how;
    two.options.threads = 2;
    prove_clover<double>(whole(antiperiodic), Lattice(global), two);
    prove_clover<float>(whole(antiperiodic), Lattice(global), how);
  }
}

TEST(Operators, EveryGrid) {
  for (const Extents& grid : grids) {
    const ExchangeMode exchange = grid[0] == 1 ? ExchangeMode::overlap : ExchangeMode::sequential;
    const How how{options_of(exchange, Strategy::concurrent, true)};
    with_grid(grid, [&](const Lattice& lattice) {
      prove_wilson<double>(whole(true), lattice, how);
      prove_wilson<float>(whole(true), lattice, how);
      prove_clover<double>(whole(true), lattice, how);
    });
  }
}

// Rank 1 comes late, so that rank 0 has nothing to compute but what waits for its faces; again
// until the kernel lets rank 0 see it.
TEST(Operators, CommThreadsThatWaitAreSeen) {
  run_ranks(2, [](int rank) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    OperatorOptions options = options_of(ExchangeMode::overlap, Strategy::concurrent);
    options.threads = 2;
    options.comm_threads = 1;
    WilsonOperator<double> op(GaugeField<double>(lattice), 0.1, options);
    SpinorField<double> out = op.field();
    const SpinorField<double> in = op.field();
    op.hop(out, in);
    double waited = 0;
    for (int tries = 0; waited == 0 && tries < 500; ++tries) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      op.hop(out, in);
      waited = rank == 0 ? op.times().wait_us : 0;
      EXPECT_GE(op.times().wait_us, 0);
      EXPECT_GE(op.times().interior_us, 0);
      lattice.sum(&waited, 1);
    }
    EXPECT_GT(waited, 0);
  });
}

TEST(DomainWall, AloneWithoutMpi) {
  for (const bool antiperiodic : {false, true}) {
    How how{options_of(ExchangeMode::overlap, Strategy::automatic, antiperiodic)};
    for (const Vectors vectors : {Vectors::space, Vectors::fifth}) {
      how.options.threads = 1;
      prove_domain_wall<double>(whole(antiperiodic), Lattice(global), vectors, how);
      how.options.threads = 2;
      prove_domain_wall<float>(whole(antiperiodic), Lattice(global), vectors, how);
    }
  }
}

TEST(DomainWall, EveryGrid) {
  for (const Extents& grid : grids) {
    const ExchangeMode exchange = grid[0] == 1 ? ExchangeMode::overlap : ExchangeMode::sequential;
    const How how{options_of(exchange, Strategy::concurrent, true)};
    with_grid(grid, [&](const Lattice& lattice) {
      prove_domain_wall<double>(whole(true), lattice, Vectors::space, how);
      prove_domain_wall<float>(whole(true), lattice, Vectors::fifth, how);
    });
  }
}

TEST(DomainWall, Identities) {
  with_grid(grids[4], [&](const Lattice& lattice) {
    const How how{options_of(ExchangeMode::overlap, Strategy::concurrent)};
    prove_domain_wall_identities<double>(lattice, how);
    prove_domain_wall_identities<float>(lattice, how);
  });
}

// (5 - height)^-fifth_extent, 1e512 here, is no number of double precision.
TEST(DomainWall, TheDiagonalMayBeSmall) {
  const Lattice lattice({2, 2, 2, 2});
  for (const double height : {4.99, 5.01}) {
    DomainWallOperator<double> op(random_gauge(lattice, 7), {256, 0.1, height}, Vectors::fifth);
    const Numbers source = random_spinor(lattice, 9, 256);
    SpinorField<double> in = imported(op.field(), source);
    SpinorField<double> out = op.field();
    op.diagonal_inverse(out, in);
    op.diagonal_part(in, out);
    require_close(exported(in), source, 1e-12, "M_ee times its inverse");
  }
}

TEST(DomainWall, EveryWayTheSameBits) {
  with_grid(grids[1], [&](const Lattice& lattice) {
    std::vector<OperatorOptions> ways{options_of(ExchangeMode::sequential, Strategy::concurrent),
                                      options_of(ExchangeMode::overlap, Strategy::direct),
                                      options_of(ExchangeMode::overlap, Strategy::put)};
    ways.back().threads = 2;
    prove_domain_wall_ways_equal<double>(lattice, ways);
  });
}

TEST(Operators, EveryNumberOfLanes) {
  const Lattice alone(global);
  for (const int lanes : {1, 2, 4, 8, 16}) {
    for (const Links links : {Links::full, Links::two_rows}) {
      How how{options_of(ExchangeMode::overlap, Strategy::concurrent, true), lanes};
      how.options.links = links;
      if (has_lanes<double>(alone, lanes)) prove_wilson<double>(whole(true), alone, how);
      if (has_lanes<float>(alone, lanes)) prove_wilson<float>(whole(true), alone, how);
    }
  }
}

TEST(Operators, Identities) {
  for (const Extents& grid : {grids[0], grids[6]}) {
    with_grid(grid, [&](const Lattice& lattice) {
      const How how{options_of(ExchangeMode::overlap, Strategy::concurrent)};
      prove_identities<double>(lattice, how);
      prove_identities<float>(lattice, how);
      prove_free_field<double>(lattice, how);
      prove_free_field<float>(lattice, how);
    });
  }
}

TEST(Operators, EveryWayTheSameBits) {
  for (const Extents& grid : {grids[1], grids[7]}) {
    with_grid(grid, [&](const Lattice& lattice) {
      std::vector<OperatorOptions> ways;
      for (const ExchangeMode exchange : {ExchangeMode::sequential, ExchangeMode::overlap}) {
        for (const Strategy strategy :
             {Strategy::concurrent, Strategy::sequential, Strategy::direct, Strategy::put}) {
          ways.push_back(options_of(exchange, strategy));
        }
      }
      ways.push_back(ways.back());
      ways.back().threads = 2;
      for (const int communicating : {0, 1, 3}) {
        ways.push_back(options_of(ExchangeMode::overlap, Strategy::concurrent));
        ways.back().threads = 3;
        ways.back().comm_threads = communicating;
      }
      prove_ways_equal<double>(lattice, ways);
    });
  }
}

// Threads that begin and end with each phase, as those of a parallel region of OpenMP.
TEST(Operators, RegionsTheSameBits) {
  const ParallelRegion region = [](const std::function<void(int)>& work) {
    std::thread other(work, 1);
    work(0);
    other.join();
  };
  for (const Extents& grid : {grids[0], grids[4], grids[7]}) {
    with_grid(grid, [&](const Lattice& lattice) {
      OperatorOptions options = options_of(ExchangeMode::overlap, Strategy::concurrent);
      options.threads = 2;
      WilsonOperator<double> op(random_gauge(lattice, 45), 0.1, options);
      const SpinorField<double> in = imported(op.field(), random_spinor(lattice, 46));
      SpinorField<double> expected = op.field(), found = op.field();
      op.hop(expected, in);
      for (int time = 0; time < 3; ++time) {
        op.hop_in_regions(found, in, region);
        EXPECT_EQ(exported(found), exported(expected)) << text(grid);
      }
    });
  }
}

// As many lanes as the machine has are cut out of dimensions that are divided, too: faces come in
// pairs that share a vector of the message.
TEST(Operators, CutWhereDivided) {
  run_ranks(4, [&](int) {
    const Lattice lattice({8, 8, 4, 4}, Communicator::world(), {2, 2, 1, 1});
    const How how{options_of(ExchangeMode::overlap, Strategy::concurrent)};
    prove_identities<double>(lattice, how);
    prove_identities<float>(lattice, how);
  });
}

// Short dimensions lie fastest in memory, divided ones behind others that are as long.
TEST(Layout, Order) {
  const auto order = [](const Lattice& lattice) {
    const Layout layout(lattice, sizeof(double), Vectors::fifth, 8, 8);
    const auto after = [&](std::size_t v) { return layout.sub_lattice_site(v); };
    const int fastest = layout.order()[0];
    EXPECT_EQ(after(1)[fastest] + after(2)[fastest], 2 + 4);  // even sites: 0, 2, 4 of an even row
    return layout.order();
  };
  EXPECT_EQ(order(Lattice({8, 8, 8, 8})), (Extents{0, 1, 2, 3}));
  EXPECT_EQ(order(Lattice({16, 8, 12, 6})), (Extents{3, 1, 2, 0}));
  run_ranks(2, [&](int) {
    const Lattice lattice({16, 8, 8, 8}, Communicator::world(), {2, 1, 1, 1});
    EXPECT_EQ(order(lattice), (Extents{1, 2, 3, 0}));
  });
}

// Fields beyond the caches are fetched ahead and written past them: slice for slice the bits of a
// hop on that slice alone, which the caches hold.
template <class Real>
void slices_as_alone(Sites sites, Links links) {
  constexpr int ls = sizeof(Real) == 4 ? 48 : 24;
  const Lattice lattice({8, 8, 8, 8});
  const GaugeField<double> drawn = random_gauge(lattice, 43);
  GaugeField<Real> gauge(lattice);
  gauge.import_from(drawn.data());
  OperatorOptions options;
  options.links = links;
  HoppingTerm<Real> all(gauge, Layout(lattice, sizeof(Real), Vectors::space, ls), options);
  HoppingTerm<Real> one(gauge, Layout(lattice, sizeof(Real)), options);
  const Sites from = sites == Sites::all ? sites : Sites::odd;
  const SpinorField<Real> slice = imported(one.field(from), random_spinor(lattice, 44));
  SpinorField<Real> in = all.field(from), expected = one.field(sites), out = all.field(sites);
  const std::size_t numbers = 24 * static_cast<std::size_t>(one.layout().lanes());
  // Each slice has another power of two, which rounding does not see.
  const auto power = [&](std::size_t n) {
    return static_cast<Real>(1u << (n / numbers % ls % 16));
  };
  for (std::size_t n = 0; n < in.size(); ++n)
    in.data()[n] = power(n) * slice.data()[n / numbers / ls * numbers + n % numbers];
  one.hop(expected, slice);
  all.hop(out, in);
  for (std::size_t n = 0; n < out.size(); ++n)
    ASSERT_EQ(out.data()[n], power(n) * expected.data()[n / numbers / ls * numbers + n % numbers])
        << n;
}

TEST(Operators, BeyondTheCachesTheSameBits) {
  for (const Sites sites : {Sites::all, Sites::even}) {
    for (const Links links : {Links::full, Links::two_rows}) {
      slices_as_alone<float>(sites, links);
      slices_as_alone<double>(sites, links);
    }
  }
}

}  // namespace
}  // namespace ropewalk::lattice::test
