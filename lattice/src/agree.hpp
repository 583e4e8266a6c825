// What goes wrong on one rank, or is not the same on all, as an error of all ranks: nobody is left
// waiting for a rank that has thrown.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/lattice.hpp"

namespace ropewalk::lattice {

// Collective. Runs `work` on every rank; where it throws on any, all throw what the lowest of these
// ranks has thrown. `work` itself must not communicate.
void together(NodeCommunicator&, const std::function<void()>& work);
void together(const Lattice&, const std::function<void()>& work);

// Collective. What `make` makes on this rank, if it makes it on all.
template <class Make>
auto made_together(const Lattice& lattice, Make make) {
  std::optional<decltype(make())> made;
  together(lattice, [&] { made.emplace(make()); });
  return *std::move(made);
}

// Something that all ranks must have passed alike.
struct Fact {
  std::string name;
  std::string value;
  std::string remedy = "pass the same on every rank";
};
std::string exactly(double);  // with all digits

// Collective, with the same facts by name on every rank. Error(argument) on every rank that names
// the first one that differs, and both values.
void agree(NodeCommunicator&, const std::vector<Fact>&);
void agree(const Lattice&, const std::vector<Fact>&);

// Collective. `together` only on rank 0.
void on_rank_zero(const Lattice&, const std::function<void()>& work);

// Collective. The text of rank 0, on every rank.
std::string broadcast(const Lattice&, const std::string&);

}  // namespace ropewalk::lattice
