// What one rank cannot have, memory, a file or a thread, is an error on all of them: lattices,
// operators, their first hops, files and solutions. Afterwards the ranks make it, and it works.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "lattice/proofs.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "ropewalk/lattice/nersc.hpp"
#include "support/injected_failures.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::expect_joint_errors;

constexpr Extents global{2, 2, 2, 4};
constexpr Extents over_two{1, 1, 1, 2};

class LatticeFailures : public testing::TestWithParam<int> {  // the rank that fails
 protected:
  template <class Prepare, class Make, class Use>
  void expect(Prepare prepare, Make make, Use use) {
    expect_joint_errors(2, GetParam(), prepare, make, use);
  }
};
INSTANTIATE_TEST_SUITE_P(OnRank, LatticeFailures, testing::Values(0, 1),
                         testing::PrintToStringParamName());

Lattice whole(int) { return Lattice(global, Communicator::world(), over_two); }

OperatorOptions options() {
  OperatorOptions out;
  out.threads = 2;
  out.strategy = Strategy::concurrent;
  return out;
}

// Links and a source, and a place for a file.
struct Ground {
  Lattice lattice = whole(0);
  GaugeField<double> gauge = tepid_gauge(lattice, 3, 0.3);
  GaugeField<float> single_gauge{lattice};
  SpinorField<double> source{lattice};
  std::string path;
  explicit Ground(std::string file = {}) : path(std::move(file)) {
    single_gauge.import_from(gauge.data());
    source.import_from(random_spinor(lattice, 5).data());
  }
};
std::unique_ptr<Ground> ground(int) { return std::make_unique<Ground>(); }

template <class Operator>
void hop(int, Operator& op) {
  SpinorField<double> out = op.field(), in = op.field();
  op.hop(out, in);
}

TEST_P(LatticeFailures, OfLattices) {
  expect([](int) { return 0; }, [](int rank, int&) { return whole(rank); },
         [](int, Lattice& made) {
           double sum = 1;
           made.sum(&sum, 1);
           EXPECT_EQ(sum, 2);
         });
}

TEST_P(LatticeFailures, OfWilsonOperators) {
  expect(
      ground,
      [](int, std::unique_ptr<Ground>& of) {
        return WilsonOperator<double>(of->gauge, 0.1, options());
      },
      hop<WilsonOperator<double>>);
}

TEST_P(LatticeFailures, OfCloverOperators) {
  expect(
      ground,
      [](int, std::unique_ptr<Ground>& of) {
        return CloverOperator<double>(of->gauge, 0.1, 1.0, options());
      },
      hop<CloverOperator<double>>);
}

TEST_P(LatticeFailures, OfDomainWallOperators) {
  expect(
      ground,
      [](int, std::unique_ptr<Ground>& of) {
        return DomainWallOperator<double>(of->gauge, {4}, Vectors::space, options());
      },
      hop<DomainWallOperator<double>>);
}

// The first hop makes the faces and their halo.
TEST_P(LatticeFailures, OfFirstHops) {
  struct Hopping {
    Ground of;
    SpinorField<double> out{of.lattice};
    std::unique_ptr<WilsonOperator<double>> fresh() {
      return std::make_unique<WilsonOperator<double>>(of.gauge, 0.1, options());
    }
    std::unique_ptr<WilsonOperator<double>> op = fresh();
  };
  expect([](int) { return std::make_unique<Hopping>(); },
         [](int, std::unique_ptr<Hopping>& with) {
           with->op->hop(with->out, with->of.source);
           return with.get();
         },
         [](int, Hopping* with) { with->op = with->fresh(); });
}

TEST_P(LatticeFailures, OfSolutions) {
  struct Solving {
    Ground of;
    WilsonOperator<double> op{of.gauge, 1, options()};
    WilsonOperator<float> single{of.single_gauge, 1, options()};
  };
  const SolverOptions loose{.tolerance = 1e-2};
  for (const bool mixed : {false, true}) {
    expect([](int) { return std::make_unique<Solving>(); },
           [&](int, std::unique_ptr<Solving>& with) {
             SpinorField<double>& b = with->of.source;
             thread_local std::unique_ptr<SpinorField<double>> x;
             ropewalk::test::Exempt exempt;
             x = std::make_unique<SpinorField<double>>(with->op.field());
             exempt.end();
             return mixed ? solve_mixed(with->op, with->single, *x, b, loose)
                          : solve(with->op, *x, b, loose);
           },
           [&](int, Solution& found) { EXPECT_LE(found.residual, loose.tolerance); });
  }
}

// ---- files

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "failures-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return (path_ / "u").string(); }
  auto files() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

TEST_P(LatticeFailures, OfReading) {
  const Folder folder;
  {
    const Lattice alone(global);
    write_nersc(tepid_gauge(alone, 3, 0.3), folder.file());
  }
  expect([&](int) { return std::make_unique<Ground>(folder.file()); },
         [](int, std::unique_ptr<Ground>& of) { return read_nersc(of->lattice, of->path); },
         [](int, GaugeField<double>& read) { EXPECT_NEAR(link_trace(read), 0.9, 0.2); });
}

TEST_P(LatticeFailures, OfWriting) {
  const Folder folder;
  expect([&](int) { return std::make_unique<Ground>(folder.file()); },
         [](int, std::unique_ptr<Ground>& of) {
           write_nersc(of->gauge, of->path);
           return of.get();
         },
         [](int, Ground* of) { read_nersc(of->lattice, of->path); });
  EXPECT_EQ(folder.files(), 1) << "something half-written";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A file that another rank has just created may be seen a moment later, on a file system over a
// network.
TEST(Files, ThatAreSeenLateAreWaitedFor) {
  const Folder folder;
  ropewalk::test::run_ranks(2, [&](int rank) {
    const Ground of(folder.file());
    if (rank == 1) ropewalk::test::fail_open(ENOENT, 3);
    write_nersc(of.gauge, of.path);
    EXPECT_EQ(ropewalk::test::opens_that_fail(), 0);
    read_nersc(of.lattice, of.path);
  });
}
#endif

}  // namespace
}  // namespace ropewalk::lattice::test
