// The carriers that a request may be given, while it is not decided which it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "halo/carrier.hpp"
#include "halo/facts.hpp"
#include "halo/request.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::halo {

// The faces of HaloBuffers that a candidate needs in memory that others do not need: those with
// places of their own do not.
enum class OwnFaces : std::uint8_t { none, leaving, all };  // leaving: those to other nodes

// A candidate is one strategy for one request. Its calls are made in the order in which they stand
// here, by all ranks for the same candidates.
class Candidate {
 public:
  Candidate() = default;
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  virtual ~Candidate() = default;

  virtual OwnFaces own_faces() const noexcept { return OwnFaces::all; }
  // Whether its carrier needs the tags of the facts.
  virtual bool sends_messages() const noexcept { return false; }
  // Takes the memory that neighbours must know of, and appends to this rank's row of the table
  // where it is. Where `automatic` can do without this candidate, missing memory is a fact
  // (no_memory).
  virtual void show(const HaloRequest&, HaloFacts&) {}
  // Why it cannot be had: from the gathered table, so the same on all ranks.
  virtual std::optional<Error> refusal(const HaloRequest&, const HaloFacts&) const { return {}; }
  // Returns a carrier that does the same as that of make() and does not write to the caller's
  // memory.
  virtual std::unique_ptr<Carrier> rehearsal(const HaloRequest&, const HaloFacts&) = 0;
  // To be called once. `places` are set by carriers that do not copy faces.
  virtual std::unique_ptr<Carrier> make(const HaloRequest&, const HaloFacts&, Places& places) = 0;
};

using Candidates = std::vector<std::unique_ptr<Candidate>>;

// A kind is a carrier class, with the function that makes its candidates.
struct CarrierKind {
  bool (*serves)(Strategy, Form);  // the wanted strategy asks for it
  Wants wants;
  void (*add)(const HaloRequest&, const HaloFacts&, Candidates&);
};
// Returns the kinds that serve a request. `automatic` prefers the first that can be had where it
// cannot measure.
std::vector<CarrierKind> carrier_kinds(Strategy, Form);

// Each of these is in the file of its carrier.
void add_put(const HaloRequest&, const HaloFacts&, Candidates&);
void add_direct(const HaloRequest&, const HaloFacts&, Candidates&);
void add_plans(const HaloRequest&, const HaloFacts&, Candidates&);

// Returns a candidate for the links to other nodes, by messages.
std::unique_ptr<Candidate> make_far_plan(Strategy);
// Appends a candidate that serves the links inside the node. Where there are several nodes, it is
// joined by messages to the others (mixed.cc).
void add_for_node(const HaloFacts&, std::unique_ptr<Candidate> near, Candidates&);

// This is for candidates. It runs `take`, and returns false where that finds no memory and
// `automatic` may do without.
template <class Take>
bool take_memory(const HaloRequest& request, Take&& take) {
  try {
    take();
    return true;
  } catch (const Error& error) {
    if (!request.automatic() || error.code() != ErrorCode::memory) throw;
    return false;
  }
}
// This is for candidates that map the memory of neighbours, and says why they cannot.
std::optional<Error> refuse_without_team(const HaloFacts&, Strategy);

}  // namespace ropewalk::halo
