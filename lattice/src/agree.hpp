// Makes an error of one rank, or a value that differs between ranks, an error of all ranks, so that
// none waits for a rank that has thrown.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/lattice.hpp"

namespace ropewalk::lattice {

// An error that all ranks throw together: none waits for the others any more.
class JointError : public Error {
 public:
  using Error::Error;
};

// A reference to a callable object, valid while that object lives. It allocates nothing, since an
// allocation might fail on one rank alone.
class Work {
 public:
  template <class Callable>
  Work(Callable&& callable) noexcept  // NOLINT: implicit, as std::function
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object) { (*static_cast<std::remove_reference_t<Callable>*>(object))(); }) {}
  void operator()() const { call_(object_); }

 private:
  void* object_;
  void (*call_)(void*);
};

// Collective. Runs `work` on every rank; where it throws on any, all throw what the lowest of these
// ranks has thrown. `work` may communicate, all ranks the same: through what is declared here and
// Lattice::sum, which tell each other first whether all are well; before anything else it calls
// meet(), after which nothing may fail that can fail on one rank alone.
void together(Collectives&, const Work& work);
void together(const Lattice&, const Work& work);

// Inside of together(): throws what another rank has failed with. Nothing elsewhere.
void meet(Collectives&);
void meet(const Lattice&);

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

// Error(argument) of this rank where the number is none, or not finite.
void require_finite(const char* name, double value);
// Error(argument) of this rank where `divisor`, of size 1, is 0 but for rounding: operators divide
// by it. `because` says what is 0.
void require_inverse(const char* name, double value, double divisor, const char* because);

// Collective, with the same facts by name on every rank. Error(argument) on every rank that names
// the first one that differs, and both values.
void agree(Collectives&, const std::vector<Fact>&);
void agree(const Lattice&, const std::vector<Fact>&);

// Collective. `together` only on rank 0.
void on_rank_zero(const Lattice&, const Work& work);

// Collective. The text of rank 0, on every rank.
std::string broadcast(const Lattice&, const std::string&);

}  // namespace ropewalk::lattice
