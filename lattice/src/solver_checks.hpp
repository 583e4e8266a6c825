// What the solvers ask of their arguments, before they change or communicate anything.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "ropewalk/error.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"

namespace ropewalk::lattice::detail {

std::string scientific(double value);  // with three digits, as 1.23e-08

// Collective. Options in range and alike on all ranks, which else would end after different numbers
// of iterations; `fields` is a check of the caller's.
void check_solver(const Lattice&, const SolverOptions&, const std::function<void()>& fields);

// Ends a solution with what it has reached, and with what. `steps` is what it counts.
[[noreturn]] void give_up(const Solution&, const SolverOptions&, const std::string& what,
                          const std::string& remedy, const char* steps = "iterations");

inline constexpr const char* more_iterations =
    "allow more of them, raise the tolerance, or take a heavier quark";

// Returns the room for the residuals of as many iterations as most solutions take, taken
// beforehand: a rank that has none later would leave the others in the iteration.
inline std::size_t history_room(const SolverOptions& options) {
  constexpr int most = 1 << 16;
  return static_cast<std::size_t>(options.max_iterations < most ? options.max_iterations : most);
}

// Raw numbers of one are added to those of another.
template <class Real>
void check_alike(const SpinorField<Real>& x, const SpinorField<Real>& b) {
  if (!(x.layout() == b.layout())) {
    throw Error(ErrorCode::argument,
                "x, b: fields of different layouts, expected those of one operator; make both with "
                "its field()");
  }
  if (x.sites() != b.sites()) {
    throw Error(ErrorCode::argument, std::string("x, b: fields on ") + name(x.sites()) + " and " +
                                         name(b.sites()) +
                                         " sites, expected the same; make them alike");
  }
}

}  // namespace ropewalk::lattice::detail
