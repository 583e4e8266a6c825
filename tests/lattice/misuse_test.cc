// What is wrong on one rank alone is an error on all of them, and nobody is left waiting:
// arguments, fields, files, and exceptions that take a rank away.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "lattice/proofs.hpp"
#include "os/relax.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "ropewalk/lattice/nersc.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;
using Words = std::vector<std::string>;

constexpr Extents global{4, 4, 4, 8};
constexpr Extents two{1, 1, 1, 2};

Lattice over_two() { return Lattice(global, Communicator::world(), two); }

void expect_words(const Words& words, const std::string& text) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
  }
}

// Runs the body on one rank alone.
template <class Body>
void expect_error(const Words& words, Body body) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    expect_words(words, error.what());
  }
}

// body(rank) throws the same on every rank. A rank left waiting for one that has thrown is found by
// the test's MPI.
template <class Body>
void expect_joint_error(const Words& words, Body body) {
  std::vector<std::string> texts(2);
  run_ranks(2, [&](int rank) {
    try {
      body(rank);
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  EXPECT_FALSE(texts[0].empty()) << "no error on rank 0";
  EXPECT_EQ(texts[0], texts[1]);
  expect_words(words, texts[0]);
}

OperatorOptions concurrent() {
  OperatorOptions out;
  out.strategy = Strategy::concurrent;
  return out;
}

WilsonOperator<double> wilson(const Lattice& lattice) {
  return WilsonOperator<double>(random_gauge(lattice, 3), 0.1, concurrent());
}

// ---- what all ranks must pass alike

TEST(Misuse, LatticesThatDiffer) {
  expect_joint_error({"rank_grid: found 1.1.2.1 on rank 1 and 1.1.1.2 on rank 0"}, [](int rank) {
    const Lattice made(global, Communicator::world(), rank == 0 ? two : Extents{1, 1, 2, 1});
  });
  expect_joint_error({"global: found 4.4.4.4 on rank 1"}, [](int rank) {
    const Lattice made({4, 4, 4, rank == 0 ? 8 : 4}, Communicator::world(), two);
  });
  expect_joint_error({"rank_grid: found 1.1.1.3", "product of 2"}, [](int rank) {
    const Lattice made(global, Communicator::world(), {1, 1, 1, rank == 0 ? 2 : 3});
  });
  expect_joint_error({"exchange_with_self"}, [](int rank) {
    LatticeOptions options;
    options.exchange_with_self[0] = rank == 1;
    const Lattice made(global, Communicator::world(), two, options);
  });
}

TEST(Misuse, OperatorsThatDiffer) {
  const auto expect = [](const Words& words,
                         const std::function<void(int, OperatorOptions&)>& set) {
    expect_joint_error(words, [&](int rank) {
      const Lattice lattice = over_two();
      OperatorOptions options = concurrent();
      set(rank, options);
      const WilsonOperator<double> op(GaugeField<double>(lattice), 0.1, options);
    });
  };
  expect({"threads: found 0"}, [](int rank, OperatorOptions& o) { o.threads = rank; });
  expect({"exchange: found sequential on rank 1 and overlap on rank 0"},
         [](int rank, OperatorOptions& o) {
           if (rank == 1) o.exchange = ExchangeMode::sequential;
         });
  expect({"strategy: found"}, [](int rank, OperatorOptions& o) {
    if (rank == 1) o.strategy = Strategy::sequential;
  });
  expect({"antiperiodic_time"},
         [](int rank, OperatorOptions& o) { o.antiperiodic_time = rank > 0; });
}

TEST(Misuse, OperatorsThatDivideByZero) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto wall = [](const Words& words, double mass, double height) {
    expect_joint_error(words, [&](int) {
      const Lattice lattice = over_two();
      const DomainWallOperator<double> op(GaugeField<double>(lattice), {8, mass, height},
                                          Vectors::space, concurrent());
    });
  };
  wall({"height: found 5, ", "the diagonal 5 - height is 0"}, 0.1, 5);
  wall({"mass: found -1, ", "1 + mass (5 - height)^-fifth_extent is 0"}, -1, 4);
  wall({"mass: found nan, expected a finite number"}, nan, 1.8);
  wall({"height: found inf, expected a finite number"}, 0.1, HUGE_VAL);
  const auto wilson_of = [](const Words& words, double mass) {
    expect_joint_error(words, [&](int) {
      const Lattice lattice = over_two();
      const WilsonOperator<double> op(GaugeField<double>(lattice), mass, concurrent());
    });
  };
  wilson_of({"mass: found -4, ", "the diagonal 4 + mass is 0"}, -4);
  wilson_of({"mass: found nan, expected a finite number"}, nan);
}

TEST(Misuse, ParametersOfOperatorsThatDiffer) {
  expect_joint_error({"mass: found", "on rank 1"}, [](int rank) {
    const Lattice lattice = over_two();
    const WilsonOperator<double> op(GaugeField<double>(lattice), 0.1 * rank, concurrent());
  });
  expect_joint_error({"precision: found double on rank 1 and single on rank 0"}, [](int rank) {
    const Lattice lattice = over_two();
    if (rank == 0)
      const WilsonOperator<float> op(GaugeField<float>(lattice), 0.1, concurrent());
    else
      const WilsonOperator<double> op(GaugeField<double>(lattice), 0.1, concurrent());
  });
  expect_joint_error({"fifth_extent: found 1,"}, [](int rank) {
    const Lattice lattice = over_two();
    const DomainWall wall{rank == 1 ? 1 : 8};
    const DomainWallOperator<double> op(GaugeField<double>(lattice), wall, Vectors::space,
                                        concurrent());
  });
  expect_joint_error({"fifth_extent: found 4 on rank 1 and 8 on rank 0"}, [](int rank) {
    const Lattice lattice = over_two();
    const DomainWall wall{rank == 1 ? 4 : 8};
    const DomainWallOperator<double> op(GaugeField<double>(lattice), wall, Vectors::space,
                                        concurrent());
  });
  expect_joint_error({"two_rows", "away from what the others give"}, [](int rank) {
    GaugeField<double> gauge(over_two());
    if (rank == 1) gauge.data()[0] = 2;
    OperatorOptions options = concurrent();
    options.links = Links::two_rows;
    const WilsonOperator<double> op(gauge, 0.1, options);
  });
}

TEST(Misuse, TheFirstHopIsCheckedOnAllRanks) {
  expect_joint_error({"in: a field on all sites"}, [](int rank) {
    auto op = wilson(over_two());
    SpinorField<double> out = op.field(Sites::even);
    op.hop(out, op.field(rank == 1 ? Sites::all : Sites::odd));
  });
}

TEST(Misuse, SolversThatDiffer) {
  const auto expect = [](const Words& words, const std::function<void(int, SolverOptions&)>& set) {
    expect_joint_error(words, [&](int rank) {
      auto op = wilson(over_two());
      SpinorField<double> x = op.field(), b = op.field();
      b.data()[0] = 1;
      SolverOptions options;
      set(rank, options);
      solve(op, x, b, options);
    });
  };
  expect({"tolerance: found 0.01"}, [](int rank, SolverOptions& o) {
    if (rank == 1) o.tolerance = 0.01;
  });
  expect({"max_iterations: found -1"}, [](int rank, SolverOptions& o) {
    if (rank == 1) o.max_iterations = -1;
  });
  expect({"red_black"}, [](int rank, SolverOptions& o) { o.red_black = rank == 1; });
}

// ---- fields that do not fit

TEST(Misuse, FieldsOfOtherLayouts) {
  const Lattice lattice(global), smaller({4, 4, 4, 4});
  auto op = wilson(lattice);
  SpinorField<double> x = op.field();
  const SpinorField<double> other(smaller), half = op.field(Sites::even);
  SolverOptions options;
  options.red_black = false;
  expect_error({"layout", "field()"}, [&] { solve(op, x, other, options); });
  expect_error({"all and even sites"}, [&] { solve(op, x, half, options); });
  expect_error({"layout", "field()"}, [&] { op.exchange_only(other); });
  expect_error({"layout", "field()"}, [&] { op.exchange_beside(other, [] {}); });
  expect_error({"layout", "field()"}, [&] { op.apply(x, other); });
  expect_error({"layout: of the lattice 4.4.4.4", "gauge.lattice()"}, [&] {
    const HoppingTerm<double> wrong(GaugeField<double>(lattice), Layout(smaller, sizeof(double)));
  });
  SpinorField<double> empty = op.field();
  const SpinorField<double> taken(std::move(empty));
  expect_error({"layout"}, [&] { op.apply(x, empty); });  // NOLINT: that is the misuse
}

// The lattice is the same and all extents are alike, but dimensions that are divided come last in
// memory.
TEST(Misuse, FieldsInAnotherOrder) {
  constexpr Extents cube{4, 4, 4, 4}, one{1, 1, 1, 1};
  run_ranks(1, [&](int) {
    LatticeOptions options;
    options.exchange_with_self[3] = true;
    const Lattice plain(cube, Communicator::world(), one, options);
    options.exchange_with_self[0] = true;
    const Lattice circular(cube, Communicator::world(), one, options);
    const Layout there(plain, sizeof(double), Vectors::fifth, 8);
    const Layout here(circular, sizeof(double), Vectors::fifth, 8);
    EXPECT_EQ(there.blocks(), here.blocks());
    EXPECT_NE(there.order(), here.order());
    EXPECT_FALSE(there == here);
  });
}

TEST(Misuse, FacesOfOtherLayoutsAreRefusedOnAllRanks) {
  const auto expect = [](const auto& exchange) {
    expect_joint_error({"layout", "field()"}, [&](int rank) {
      const Lattice lattice = over_two(), longer({4, 4, 4, 16}, Communicator::world(), two);
      auto op = wilson(lattice);
      const SpinorField<double> in = op.field(), other(longer);
      exchange(op, rank == 1 ? other : in);
    });
  };
  expect([](auto& op, const auto& in) { op.exchange_only(in); });
  expect([](auto& op, const auto& in) { op.exchange_beside(in, [] {}); });
}

// The exchange that it throws beside is ended, and another can begin.
TEST(Misuse, WorkBesideAnExchangeThatThrows) {
  std::atomic<bool> thrown{false};
  run_ranks(2, [&](int rank) {
    auto op = wilson(over_two());
    const SpinorField<double> in = op.field();
    op.exchange_only(in);
    const auto work = [&] {
      thrown = true;
      throw std::runtime_error("of the user");
    };
    if (rank == 0) {
      EXPECT_THROW(op.exchange_beside(in, work), std::runtime_error);
    } else {
      while (!thrown) os::relax();  // there would be nothing left to do beside
      op.exchange_beside(in, [] {});
    }
    op.exchange_only(in);
    op.exchange_beside(in, [] {});
  });
}

TEST(Misuse, ArraysThatDoNotFit) {
  const Lattice lattice(global);
  SpinorField<double> field(lattice);
  GaugeField<double> gauge(lattice);
  expect_error({"plain: null"}, [&] { field.import_from(nullptr); });
  expect_error({"plain: null"}, [&] { gauge.export_to(nullptr); });
  expect_error({"transformation: found 9 numbers"}, [&] { transform_gauge(gauge, Numbers(9)); });
  expect_error({"transformation: found 0"}, [&] { transform_spinor(Numbers(24), {}); });
  expect_error({"psi: found 25"}, [&] { transform_spinor(Numbers(25), Numbers(18)); });
  expect_error({"ls: found 0"}, [&] { random_spinor(lattice, 1, 0); });
}

TEST(Misuse, SourcesThatAreNotNumbers) {
  const Lattice lattice(global);
  const GaugeField<double> links = random_gauge(lattice, 3);
  GaugeField<float> links_single(lattice);
  links_single.import_from(links.data());
  WilsonOperator<double> op(links, 0.1);
  WilsonOperator<float> single(links_single, 0.1);
  SpinorField<double> x = op.field(), b = op.field();
  x.data()[0] = 1;
  EXPECT_EQ(solve_mixed(op, single, x, b).iterations, 0);
  EXPECT_EQ(x.data()[0], 0) << "the solution for no source";
  b.data()[0] = std::numeric_limits<double>::quiet_NaN();
  expect_error({"not finite"}, [&] { solve_mixed(op, single, x, b); });
  SolverOptions options;
  options.tolerance = 0;
  b.data()[0] = 1;
  expect_error({"tolerance: found"}, [&] { solve_mixed(op, single, x, b, options); });
}

// ---- files that differ

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("ropewalk-misuse-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

TEST(Misuse, FilesThatDiffer) {
  const Folder folder;
  const Lattice alone(global);
  write_nersc(random_gauge(alone, 1), folder / "one");
  write_nersc(random_gauge(alone, 2), folder / "other");
  std::filesystem::copy_file(folder / "one", folder / "short");
  std::filesystem::resize_file(folder / "short", 100000);
  const auto expect = [&](const Words& words, const char* name) {
    expect_joint_error(
        words, [&](int rank) { read_nersc(over_two(), folder / (rank == 0 ? "one" : name)); });
  };
  expect({"CHECKSUM: found", "on rank 1", "same file"}, "other");
  expect({"cut short"}, "short");
  expect({"cannot be opened"}, "missing");
  expect_joint_error({"data: found 4D_SU3_GAUGE on rank 1"}, [&](int rank) {
    NerscOptions options;
    if (rank == 1) options.data = NerscData::two_rows;
    write_nersc(GaugeField<double>(over_two()), folder / "new", options);
  });
}

// ---- an exception takes one rank away

// The others work until they are told; each must be, in an error that names rank 0.
template <class Work>
void expect_to_be_told(int ranks, const Extents& grid, Work work) {
  std::atomic<int> told{0};
  run_ranks(ranks, [&](int rank) {
    try {
      const Lattice lattice(global, Communicator::world(), grid);
      auto op = wilson(lattice);
      SpinorField<double> out = op.field();
      const SpinorField<double> in = op.field();
      op.hop(out, in);
      if (rank == 0) throw std::runtime_error("of the user");
      for (;;) work(lattice, op, out, in);
    } catch (const Error& error) {
      told += std::string(error.what()).find("exception") != std::string::npos ? 1 : 0;
    } catch (const std::runtime_error&) {
      EXPECT_EQ(rank, 0);
    }
  });
  EXPECT_EQ(told, ranks - 1);
}

TEST(Misuse, WhoWaitsForFacesIsTold) {
  expect_to_be_told(2, two,
                    [](const Lattice&, auto& op, auto& out, const auto& in) { op.hop(out, in); });
}

TEST(Misuse, WhoWaitsForASumIsTold) {
  expect_to_be_told(2, two, [](const Lattice& lattice, auto&, auto&, const auto&) {
    double one = 1;
    lattice.sum(&one, 1);
  });
}

// Neighbours of rank 0 wait for faces, others for the sum: nobody for ever.
TEST(Misuse, WhoWaitsForSomebodyElseIsTold) {
  expect_to_be_told(4, {1, 1, 1, 4},
                    [](const Lattice& lattice, auto& op, auto& out, const auto& in) {
                      op.hop(out, in);
                      double one = 1;
                      lattice.sum(&one, 1);
                    });
}

// ---- lives

TEST(Misuse, OperatorsOutliveTheirLattice) {
  run_ranks(2, [](int) {
    std::unique_ptr<WilsonOperator<double>> op;
    {
      const Lattice lattice = over_two();
      op = std::make_unique<WilsonOperator<double>>(random_gauge(lattice, 3), 0.1, concurrent());
    }
    SpinorField<double> out = op->field();
    EXPECT_NO_THROW(op->apply(out, op->field()));
  });
}

}  // namespace
}  // namespace ropewalk::lattice::test
