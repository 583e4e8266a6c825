#include "solver_checks.hpp"

#include <array>
#include <cstdio>

#include "agree.hpp"

namespace ropewalk::lattice::detail {

std::string scientific(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.2e", value);
  return out.data();
}

namespace {

void check_options(const SolverOptions& options) {
  if (!(options.tolerance > 0 && options.tolerance < 1)) {
    throw Error(ErrorCode::argument, "tolerance: found " + scientific(options.tolerance) +
                                         ", expected a number between 0 and 1; 1e-8 is usual");
  }
  if (options.max_iterations < 1) {
    throw Error(ErrorCode::argument, "max_iterations: found " +
                                         std::to_string(options.max_iterations) +
                                         ", expected at least 1; 5000 is usual");
  }
  if (options.threads < 0 || options.threads > 1024) {
    throw Error(ErrorCode::argument, "threads: found " + std::to_string(options.threads) +
                                         ", expected 0 to 1024; 0 is as many as the operator has");
  }
}

}  // namespace

void check_solver(const Lattice& lattice, const SolverOptions& options,
                  const std::function<void()>& fields) {
  collectively(lattice, [&] {
    check_options(options);
    fields();
  });
  agree(lattice, {{"tolerance", exactly(options.tolerance)},
                  {"relative_to", exactly(options.relative_to)},
                  {"max_iterations", std::to_string(options.max_iterations)},
                  {"red_black", options.red_black ? "true" : "false"},
                  {"best_effort", options.best_effort ? "true" : "false"}});
}

void give_up(const Solution& solution, const SolverOptions& options, const std::string& what,
             const std::string& remedy, const char* steps) {
  throw Error(ErrorCode::argument, what + ": |b - M x|/|b| is " + scientific(solution.residual) +
                                       " after " + std::to_string(solution.iterations) + " " +
                                       steps + ", tolerance " + scientific(options.tolerance) +
                                       "; " + remedy);
}

}  // namespace ropewalk::lattice::detail
