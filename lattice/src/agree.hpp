// Makes an error of one rank, or a value that differs between ranks, an error of all ranks, so that
// none waits for a rank that has thrown.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ropewalk/collectively.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/lattice/lattice.hpp"

namespace ropewalk::lattice {

// As ropewalk::collectively() and meet(), which it uses: `work` may communicate through what is
// declared here and Lattice::sum, which call meet() first. One rank alone has nobody to tell.
void collectively(const Lattice&, const Work& work);
void meet(const Lattice&);

// Collective. What `make` makes on this rank, if it makes it on all.
template <class Make>
auto made_collectively(const Lattice& lattice, Make make) {
  std::optional<decltype(make())> made;
  collectively(lattice, [&] { made.emplace(make()); });
  return *std::move(made);
}

// Something that all ranks must have passed alike.
struct AgreedFact {
  std::string name;
  std::string value;
  std::string remedy = "pass the same on every rank";
};
std::string exactly(double);  // with all digits

// Throws Error(argument) on this rank where the number is none, or not finite.
void require_finite(const char* name, double value);
// Throws Error(argument) on this rank where `divisor`, of size 1, is 0 but for rounding: operators
// divide by it. `because` says what is 0.
void require_inverse(const char* name, double value, double divisor, const char* because);

// Collective, with the same facts by name on every rank. Throws Error(argument) on every rank that
// names the first one that differs, and both values.
void agree(Collectives&, const std::vector<AgreedFact>&);
void agree(const Lattice&, const std::vector<AgreedFact>&);

// Collective. Runs `work` as collectively() does, but on rank 0 alone.
void on_rank_zero(const Lattice&, const Work& work);

// Collective. The text of rank 0, on every rank.
std::string broadcast(const Lattice&, const std::string&);

}  // namespace ropewalk::lattice
