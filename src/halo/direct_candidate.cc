// How a DirectCarrier is made: what ranks tell each other about their memory, and what follows.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "halo/candidate.hpp"
#include "halo/direct.hpp"
#include "halo/direct_copies.hpp"
#include "halo/shown_memory.hpp"
#include "halo/staged_faces.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

namespace {

void divide(FaceCopies& face, int workers) {
  for (std::vector<kernels::StridedCopy>& copies : face.plain) copies = divided(copies, workers);
  face.by_kernel = divided(face.by_kernel, workers);
}

class DirectCandidate final : public Candidate {
 public:
  void show(const HaloRequest& request, HaloFacts& facts) override;
  std::optional<Error> refusal(const HaloRequest& request, const HaloFacts& facts) const override;
  std::unique_ptr<Carrier> rehearsal(const HaloRequest& request, const HaloFacts& facts) override {
    return carrier(request, facts, rehearsed_, &scratch_);
  }
  std::unique_ptr<Carrier> make(const HaloRequest& request, const HaloFacts& facts,
                                Places&) override {
    scratch_ = {};
    return carrier(request, facts, real_, nullptr);
  }

 private:
  // These are the flags of one carrier, and the column of the table that says where they lie.
  struct ShownFlags {
    FlagBlock block;
    std::size_t column = 0;
    bool there = false;  // there was memory for them
  };

  void show_flags(const HaloRequest&, HaloFacts&, ShownFlags&, std::size_t face_bytes,
                  std::size_t scratch_bytes);
  void show_buffers(const HaloRequest&, HaloFacts&);
  void show_staged(HaloFacts&, const StagedFaces&);
  std::unique_ptr<Carrier> carrier(const HaloRequest&, const HaloFacts&, ShownFlags&,
                                   Buffer<std::byte>* scratch) const;

  ShownFlags real_;  // with the places of staged faces, which a rehearsal uses before
  ShownFlags rehearsed_;
  Buffer<std::byte> scratch_;  // what a rehearsal receives
  DirectColumns columns_;
};

void DirectCandidate::show(const HaloRequest& request, HaloFacts& facts) {
  if (facts.team == nullptr) return;
  const StagedFaces staged = staged_faces(request, facts);
  show_flags(request, facts, real_, staged.bytes, 0);
  if (request.rehearses()) {
    std::size_t bytes = 0;
    for (const Link& link : facts.near.present) {
      if (!link.to_itself) bytes += link_bytes(request, link);
    }
    show_flags(request, facts, rehearsed_, 0, bytes);
  }
  show_buffers(request, facts);
  if (facts.reach != Reach::mapped) show_staged(facts, staged);
}

void DirectCandidate::show_flags(const HaloRequest& request, HaloFacts& facts, ShownFlags& flags,
                                 std::size_t face_bytes, std::size_t scratch_bytes) {
  flags.there = take_memory(request, [&] {
    flags.block = FlagBlock(facts.links.directions, face_bytes);
    if (scratch_bytes > 0) scratch_ = Buffer<std::byte>(scratch_bytes);
  });
  flags.column = facts.table.append(flags.there ? flags.block.offset() : no_memory);
}

void DirectCandidate::show_buffers(const HaloRequest& request, HaloFacts& facts) {
  columns_.buffers = facts.table.columns();
  for (const ShownMemory& memory : shown_memory(request, facts.near)) {
    channel::Reference reference;
    if (memory.data != nullptr) reference = facts.memory->reachable(memory.data, memory.bytes);
    facts.table.append(std::bit_cast<std::uint64_t>(reference));
  }
}

void DirectCandidate::show_staged(HaloFacts& facts, const StagedFaces& staged) {
  columns_.staged = facts.table.columns();
  for (const std::size_t at : staged.at) {
    const bool is_staged = at != StagedFaces::none && real_.there;
    facts.table.append(is_staged ? Arena::process().offset(real_.block.faces() + at) : no_memory);
  }
}

std::optional<Error> DirectCandidate::refusal(const HaloRequest& request,
                                              const HaloFacts& facts) const {
  if (facts.links.directions == 0) return {};
  if (facts.team == nullptr) return refuse_without_team(facts, Strategy::direct);
  for (const ShownFlags* flags : {&real_, &rehearsed_}) {
    if (flags == &rehearsed_ && !request.rehearses()) continue;
    if (const int rank = facts.table.find(flags->column, no_memory); rank >= 0) {
      return Error(ErrorCode::memory,
                   "strategy: direct, but the arena of rank " + std::to_string(rank) +
                       " is full, expected room for its flags, and for faces in private memory "
                       "twice; free memory there, or choose another strategy");
    }
  }
  return {};
}

std::unique_ptr<Carrier> DirectCandidate::carrier(const HaloRequest& request,
                                                  const HaloFacts& facts, ShownFlags& flags,
                                                  Buffer<std::byte>* scratch) const {
  Transfers all;
  std::byte* next = scratch == nullptr ? nullptr : scratch->data();
  for (const Link& link : facts.near.present) {
    if (link.to_itself) continue;
    LinkCopies copies = link_copies(request, facts, columns_, link, next);
    if (copies.in.empty()) continue;
    for (FaceCopies* face : {&copies.in, &copies.out}) divide(*face, facts.workers->sharing());
    if (next != nullptr) next += link_bytes(request, link);
    std::byte* block = facts.base(link.peer) + facts.table.at(link.peer, flags.column);
    const FlagLine* started = &FlagBlock::started_of(block);
    // What this rank sends at `offset` the neighbour receives in the opposite direction.
    all.incoming.push_back({link.peer, facts.place(link.peer), started,
                            &flags.block.claim(link.towards), &flags.block.copied(link.towards),
                            link.towards, std::move(copies.in)});
    if (copies.packs[0].empty()) {
      all.outgoing.push_back(
          {link.peer, facts.place(link.peer), started, &FlagBlock::claim_of(block, link.from),
           &FlagBlock::copied_of(block, link.from), link.from, std::move(copies.out)});
    }
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const std::vector<kernels::StridedCopy>& packs = copies.packs[odd];
      all.packs[odd].insert(all.packs[odd].end(), packs.begin(), packs.end());
    }
    all.left.push_back(&FlagBlock::left_of(block, link.from));
    flags.block.expect(link.towards);
  }
  // A rank helps with those first that their receivers take last.
  std::sort(all.outgoing.begin(), all.outgoing.end(),
            [](const FaceTransfer& a, const FaceTransfer& b) { return a.direction > b.direction; });
  for (std::vector<kernels::StridedCopy>& packs : all.packs) {
    packs = divided(packs, facts.workers->sharing());
  }
  all.flags = std::move(flags.block);
  all.memory = facts.memory;
  all.workers = facts.workers;
  return std::make_unique<DirectCarrier>(facts.lane_set, facts.team, std::move(all));
}

}  // namespace

void add_direct(const HaloRequest&, const HaloFacts& facts, Candidates& candidates) {
  add_for_node(facts, std::make_unique<DirectCandidate>(), candidates);
}

}  // namespace ropewalk::halo
