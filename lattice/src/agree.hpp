// Errors that one rank meets and all ranks throw.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "ropewalk/error.hpp"
#include "ropewalk/lattice/lattice.hpp"

namespace ropewalk::lattice {

// Collective. Runs `work` on every rank; where it throws on any, all throw what the lowest of these
// ranks has thrown.
void together(const Lattice&, const std::function<void()>& work);

// Collective. The same only on rank 0, then everywhere.
void on_rank_zero(const Lattice&, const std::function<void()>& work);

// Collective. The text of rank 0, on every rank.
std::string broadcast(const Lattice&, const std::string&);

}  // namespace ropewalk::lattice
