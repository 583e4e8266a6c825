#include "halo/making.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "halo/candidate.hpp"
#include "halo/checks.hpp"
#include "halo/choice.hpp"
#include "halo/facts.hpp"
#include "halo/own_faces.hpp"
#include "halo/shown_memory.hpp"
#include "mpi/collectively.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::halo {

namespace {

Wants wants(const HaloRequest& request) {
  Wants out;
  for (const CarrierKind& kind : carrier_kinds(request.options.strategy, request.form)) {
    out.messages = out.messages || kind.wants.messages;
    out.team = out.team || kind.wants.team;
  }
  return out;
}

// This is memory for HaloBuffers that several candidates use.
struct BufferMemory {
  Buffer<std::byte> faces;  // for those that copy
  Buffer<std::byte> field;  // what `automatic` gathers faces from while it measures
};

// A column of the table says whether a rank has memory of this kind.
template <class Take>
std::size_t show_memory(const HaloRequest& request, HaloFacts& facts, Take&& take) {
  return facts.table.append(take_memory(request, take) ? 0 : no_memory);
}

class Maker {
 public:
  explicit Maker(HaloRequest& request)
      : request_(request), facts_(agree_on_setup(request, wants(request))) {
    refuse_parts_between_nodes();
    // Nothing crosses from rank to rank, so there is nothing to measure.
    if (request_.rehearses() && facts_.links.directions == 0) {
      request_.options.strategy = Strategy::concurrent;
    }
    for (const CarrierKind& kind : carrier_kinds(request_.options.strategy, request_.form)) {
      kind.add(request_, facts_, candidates_);
    }
  }

  HaloParts make() {
    show();
    facts_.table.gather(request_.comm(), request_.grid.size());
    check_neighbours(request_, facts_);
    drop_refused();
    const bool buffers = request_.form == Form::buffers;
    Choice choice = buffers ? fastest_made() : Choice{rehearsed(), {}};
    if (!buffers) choice.parts = made(*choice.candidate);
    if (choice.candidate->sends_messages()) choice.parts.tags = std::move(facts_.tags);
    if (choice.candidate->own_faces() != OwnFaces::none) {
      choice.parts.faces = std::move(memory_.faces);
    }
    return std::move(choice.parts);
  }

 private:
  struct Choice {
    Candidate* candidate;
    HaloParts parts;
  };

  void refuse_parts_between_nodes() const;
  void show();
  void take_own_faces();
  std::optional<Error> refusal(const Candidate&) const;
  void drop_refused();
  HaloParts made(Candidate&);
  Candidate* rehearsed();
  Choice fastest_made();

  HaloRequest& request_;
  HaloFacts facts_;
  Candidates candidates_;
  BufferMemory memory_;
  bool faces_shown_ = false;
  std::size_t faces_column_ = 0;
  std::size_t field_column_ = 0;
};

// Whether there are several nodes is the same fact on all ranks.
void Maker::refuse_parts_between_nodes() const {
  if (request_.options.parts == 0 || !facts_.several) return;
  throw Error(ErrorCode::unsupported,
              "parts: " + std::to_string(request_.options.parts) +
                  " on a grid over several nodes, expected ranks of one node; pass parts = 0");
}

// Preferred candidates take their memory first, on all ranks before any rank goes on: ranks of a
// node share what there is.
void Maker::show() {
  const bool buffers = request_.form == Form::buffers;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    if (buffers && candidate->own_faces() != OwnFaces::none && !faces_shown_) take_own_faces();
    candidate->show(request_, facts_);
  }
  if (!buffers || !request_.automatic()) return;
  field_column_ = show_memory(request_, facts_, [this] {
    const std::vector<std::size_t>& bytes = request_.faces.bytes;
    const std::size_t most = *std::max_element(bytes.begin(), bytes.end());
    if (most > 0) memory_.field = Buffer<std::byte>(most);
  });
}

void Maker::take_own_faces() {
  if (request_.automatic()) mpi::meet(request_.comm());
  faces_shown_ = true;
  const bool all = std::ranges::any_of(candidates_, [](const std::unique_ptr<Candidate>& one) {
    return one->own_faces() == OwnFaces::all;
  });
  const Links& links = all ? facts_.links : facts_.far;
  faces_column_ =
      show_memory(request_, facts_, [&] { memory_.faces = make_own_faces(links, request_.faces); });
}

std::optional<Error> Maker::refusal(const Candidate& candidate) const {
  const bool needs_faces =
      request_.form == Form::buffers && candidate.own_faces() != OwnFaces::none;
  const int rank = needs_faces ? facts_.table.find(faces_column_, no_memory) : -1;
  if (rank < 0) return candidate.refusal(request_, facts_);
  return Error(ErrorCode::memory, "faces.bytes: the arena of rank " + std::to_string(rank) +
                                      " has no room for twice its faces; send less at a time, or "
                                      "raise ROPEWALK_ARENA_BYTES");
}

// All ranks come to the same, since refusals follow from the table.
void Maker::drop_refused() {
  std::optional<Error> last;
  std::erase_if(candidates_, [&](const std::unique_ptr<Candidate>& candidate) {
    std::optional<Error> refused = refusal(*candidate);
    if (refused) last.emplace(std::move(*refused));
    return refused.has_value();
  });
  if (candidates_.empty()) throw Error(*last);
}

HaloParts Maker::made(Candidate& candidate) {
  HaloParts out;
  out.carrier = candidate.make(request_, facts_, out.places);
  for (const Link& link : facts_.far.present) out.wire_bytes += link_bytes(request_, link);
  if (request_.form == Form::fields) {
    out.own_copies = own_copies(facts_.links, request_.fields);
  } else if (candidate.own_faces() == OwnFaces::all) {
    out.own_copies = own_copies(facts_.links, request_.faces);
    if (request_.form == Form::buffers) out.places = places_of(request_.faces);
  }
  out.workers = facts_.workers;
  out.own_copies = divided(out.own_copies, out.workers->sharing());
  return out;
}

// Returns the candidate whose rehearsal is fastest. Collective where there is more than one.
Candidate* Maker::rehearsed() {
  if (candidates_.size() == 1) return candidates_.front().get();
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (const std::unique_ptr<Candidate>& candidate : candidates_) {
    carriers.push_back(candidate->rehearsal(request_, facts_));
  }
  const auto exchange = [&](std::size_t i) {
    carriers[i]->start();
    carriers[i]->wait();
  };
  const MeasuringWorkers helping(*facts_.workers);
  return candidates_[fastest(request_.comm(), carriers.size(), Warming::once, exchange)].get();
}

// Returns the candidate that was fastest when made for good, which may be done because only memory
// of the halo's own is written. Steps of an application are measured, since `put` saves copies that
// others make there. Collective where there is more than one candidate.
Maker::Choice Maker::fastest_made() {
  std::vector<HaloParts> all;
  all.reserve(candidates_.size());
  for (const std::unique_ptr<Candidate>& candidate : candidates_) all.push_back(made(*candidate));
  if (all.size() == 1 || facts_.table.find(field_column_, no_memory) >= 0) {
    return {candidates_.front().get(), std::move(all.front())};
  }
  mpi::meet(request_.comm());
  for (const HaloParts& parts : all) parts.carrier->settle();
  const std::vector<std::size_t>& bytes = request_.faces.bytes;
  const std::size_t streaming = tuning::halo_limits().streaming_bytes;
  const auto step = [&](std::size_t i) {
    gather_faces(*all[i].carrier, all[i].places, bytes, memory_.field, streaming);
    all[i].start();
    all[i].carrier->wait();
    volatile std::uint64_t sum = read_faces(*all[i].carrier, all[i].places, bytes);
    static_cast<void>(sum);
  };
  const MeasuringWorkers helping(*facts_.workers);
  const std::size_t best = fastest(request_.comm(), all.size(), Warming::each_time, step);
  return {candidates_[best].get(), std::move(all[best])};
}

}  // namespace

HaloParts make_parts(HaloRequest request) {
  check_request(request);
  if (request.options.parts > 0) request.options.strategy = Strategy::put;  // none else has parts
  return Maker(request).make();
}

}  // namespace ropewalk::halo
