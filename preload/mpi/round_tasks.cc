#include "round_tasks.hpp"

#include <algorithm>
#include <new>

#include "collectives/state.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::preload {
namespace {

// A task takes a few microseconds, and a rank may have to wait for one that another has claimed.
// With 16 KiB, rounds of 64 KiB to 1 MiB take 5 to 10 % longer (bench/dropin/persistent.py).
constexpr std::size_t least_piece_bytes = std::size_t{64} << 10;
constexpr std::size_t most_pieces = 1024;  // about: longer data are cut into larger pieces
// The description of a block with more would be read slower than the block is packed, as in calls
// that block (typed_parts.cc).
constexpr std::size_t most_strided_blocks = 256;

bool is_mapped(const void* data, std::size_t bytes) noexcept {
  return bytes == 0 || Arena::process().contains(data, bytes);
}
bool is_mapped(const collectives::TypedPart& part) noexcept {
  if (part.bytes() == 0) return true;
  return part.pattern->known && part.pattern->blocks.size() <= most_strided_blocks &&
         Arena::process().contains(part.lowest(), part.span());
}
bool are_mapped(std::span<const collectives::TypedPart> parts) noexcept {
  return std::ranges::all_of(parts, [](const auto& part) { return is_mapped(part); });
}

std::size_t bytes_in(std::span<const ReceivedBlock> received) {
  std::size_t bytes = 0;
  for (const ReceivedBlock& block : received) bytes += block.bytes;
  return bytes;
}

std::size_t task_bytes(const RoundWork& work) {
  return work.reduction != nullptr ? work.reduction->bytes : bytes_in(work.received);
}

// Whole elements, which end where lines of the cache do.
std::size_t piece_of(const RoundWork& work) {
  const std::size_t wanted = std::max(least_piece_bytes, task_bytes(work) / most_pieces);
  const bool combines = work.reduction != nullptr && work.reduction->operation;
  const std::size_t grain =
      combines ? work.reduction->operation->slice_grain() * work.reduction->operation->element_bytes
               : node::flag_stride;
  return (wanted + grain - 1) / grain * grain;
}

std::size_t pieces_in(std::size_t bytes, std::size_t piece) { return (bytes + piece - 1) / piece; }

std::size_t tasks_of(const RoundWork& work) {
  if (work.typed) return work.received.size();
  const std::size_t piece = piece_of(work);
  if (work.reduction != nullptr) return pieces_in(work.reduction->bytes, piece);
  std::size_t tasks = 0;
  for (const ReceivedBlock& block : work.received) tasks += pieces_in(block.bytes, piece);
  return tasks;
}

std::uint64_t place_of(const void* data, std::size_t bytes) noexcept {
  return bytes == 0 ? 0 : Arena::process().offset(data);
}

}  // namespace

bool RoundWork::is_mapped() const noexcept {
  if (reduction != nullptr) {
    return preload::is_mapped(reduction->send, reduction->send_bytes) &&
           preload::is_mapped(reduction->receive, reduction->receive_bytes);
  }
  if (typed) return are_mapped(sent_parts) && are_mapped(received_parts);
  const auto reached = [](const void* data, std::size_t bytes) {
    return preload::is_mapped(data, bytes);
  };
  return std::ranges::all_of(sent, [&](const SentBlock& b) { return reached(b.from, b.bytes); }) &&
         std::ranges::all_of(received,
                             [&](const ReceivedBlock& b) { return reached(b.to, b.bytes); });
}

std::size_t RoundWork::bytes() const noexcept {
  if (reduction != nullptr) return std::max(reduction->send_bytes, reduction->receive_bytes);
  std::size_t sends = 0;
  for (const SentBlock& block : sent) sends += block.bytes;
  return std::max(sends, bytes_in(received));
}

std::size_t RoundTasks::bytes_for(const RoundWork& work) {
  std::size_t bytes =
      sizeof(Board) + work.sent.size() * sizeof(PlacedBlock) + tasks_of(work) * sizeof(Task);
  for (const auto parts : {work.sent_parts, work.received_parts}) {
    for (const collectives::TypedPart& part : parts) {
      const std::size_t blocks = part.bytes() == 0 ? 0 : part.pattern->blocks.size();
      bytes += sizeof(Description) + blocks * sizeof(mpi::StridedBlock);
    }
  }
  return bytes;
}

RoundTasks::RoundTasks(Collectives& team, const RoundWork& work)
    : piece_(piece_of(work)),
      typed_(work.typed),
      stores_(team.state().backend->engine()->stores(work.bytes())),
      memory_(team, bytes_for(work)) {
  const auto size = static_cast<std::size_t>(team.size());
  if (work.reduction != nullptr) operation_ = work.reduction->operation;
  if (work.reduction != nullptr) root_ = work.reduction->root;
  arenas_.resize(size);
  sent_.resize(size);
  received_.resize(size);
  inputs_.resize(size);
  outputs_.resize(size);
  describe(work);
}

void RoundTasks::describe(const RoundWork& work) noexcept {
  const int own = memory_.rank();
  new (memory_.own()) Board;
  board(own).blocks = work.sent.size();
  board(own).tasks = tasks_of(work);
  if (typed_) describe_parts(work);
  for (std::size_t i = 0; i < work.sent.size(); ++i) {
    if (typed_) {
      blocks(own)[i] = {i, work.sent[i].bytes};
      continue;
    }
    blocks(own)[i] = {place_of(work.sent[i].from, work.sent[i].bytes), work.sent[i].bytes};
  }
  if (work.reduction == nullptr) return;
  board(own).send = place_of(work.reduction->send, work.reduction->send_bytes);
  board(own).receive = place_of(work.reduction->receive, work.reduction->receive_bytes);
  board(own).target = work.reduction->target;
  add_parts(*work.reduction);
}

void RoundTasks::add_parts(const SharedReduction& reduction) noexcept {
  Task* task = tasks(memory_.rank());
  for (std::size_t at = 0; at < reduction.bytes; at += piece_) {
    *task++ = {reduction.from + at, reduction.to + at, std::min(piece_, reduction.bytes - at), 0};
  }
}

void RoundTasks::describe_parts(const RoundWork& work) noexcept {
  const int own = memory_.rank();
  const auto base = reinterpret_cast<std::intptr_t>(memory_.arena(own));
  board(own).described = work.sent_parts.size() + work.received_parts.size();
  Description* description = descriptions(own);
  std::uint64_t first = 0;
  for (const auto parts : {work.sent_parts, work.received_parts}) {
    for (const collectives::TypedPart& part : parts) {
      const collectives::StridedElements elements =
          part.bytes() == 0 ? collectives::StridedElements() : part.elements();
      *description++ = {static_cast<std::int64_t>(elements.address) - base, elements.count,
                        elements.extent, first, elements.blocks.size()};
      std::ranges::copy(elements.blocks, strided(own) + first);
      first += elements.blocks.size();
    }
  }
}

collectives::StridedElements RoundTasks::elements(int rank, std::uint64_t number) const noexcept {
  const Description& one = descriptions(rank)[number];
  const auto base = reinterpret_cast<std::intptr_t>(memory_.arena(rank));
  return {static_cast<std::uintptr_t>(base + one.at),
          std::span<const mpi::StridedBlock>(strided(rank) + one.first, one.blocks), one.count,
          one.extent};
}

// Returns null where the sender does not send what is received.
const RoundTasks::PlacedBlock* RoundTasks::sent_to(const ReceivedBlock& block) const noexcept {
  if (block.number >= board(block.from).blocks) return nullptr;
  const PlacedBlock& sent = blocks(block.from)[block.number];
  return sent.bytes == block.bytes ? &sent : nullptr;
}

bool RoundTasks::add_copies(std::span<const ReceivedBlock> received) noexcept {
  Task* task = tasks(memory_.rank());
  for (const ReceivedBlock& block : received) {
    const PlacedBlock* sent = sent_to(block);
    if (sent == nullptr) return false;
    const std::uint64_t to = place_of(block.to, block.bytes);
    for (std::size_t at = 0; at < block.bytes; at += piece_) {
      *task++ = {sent->at + at, to + at, std::min(piece_, block.bytes - at), block.from};
    }
  }
  return true;
}

// A block is one task.
bool RoundTasks::add_typed_copies(std::span<const ReceivedBlock> received) noexcept {
  const std::uint64_t sends = board(memory_.rank()).blocks;
  for (std::size_t i = 0; i < received.size(); ++i) {
    const PlacedBlock* sent = sent_to(received[i]);
    if (sent == nullptr) return false;
    tasks(memory_.rank())[i] = {sent->at, sends + i, received[i].bytes, received[i].from};
  }
  return true;
}

bool RoundTasks::connect(const RoundWork& work) {
  for (int rank = 0; rank < memory_.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    arenas_[at] = memory_.arena(rank);
    sent_[at] = arenas_[at] + board(rank).send;
    received_[at] = arenas_[at] + board(rank).receive;
  }
  claims_.emplace(memory_.rank(), parts());
  if (work.reduction != nullptr) {
    return std::ranges::all_of(work.received, [&](const ReceivedBlock& block) {
      return root_ < 0 || sent_to(block) != nullptr;
    });
  }
  return typed_ ? add_typed_copies(work.received) : add_copies(work.received);
}

std::vector<RoundClaims::Part> RoundTasks::parts() const {
  std::vector<RoundClaims::Part> parts;
  parts.reserve(sent_.size());
  for (int rank = 0; rank < memory_.size(); ++rank) {
    parts.push_back({&board(rank).flags, board(rank).tasks});
  }
  return parts;
}

bool RoundTasks::advance(bool at_once) {
  return claims_->advance([this](int rank, std::uint64_t number) { run(rank, number); }, at_once);
}

void RoundTasks::run(int rank, std::uint64_t number) {
  const Task& task = tasks(rank)[number];
  if (operation_) return combine(task, static_cast<int>(board(rank).target));
  if (root_ >= 0) return push(task);
  if (typed_) {
    return collectives::copy_elements(elements(static_cast<int>(task.source), task.from),
                                      elements(rank, task.to), task.bytes, stores_);
  }
  kernels::copy(arenas_[static_cast<std::size_t>(rank)] + task.to,
                arenas_[static_cast<std::size_t>(task.source)] + task.from, task.bytes, stores_);
}

// Every rank copies a slice to all others, so that the lines of a slice stay in its caches.
void RoundTasks::push(const Task& task) {
  const std::size_t size = sent_.size();
  for (std::size_t step = 0; step < size; ++step) {
    const std::size_t to = (static_cast<std::size_t>(memory_.rank()) + step) % size;
    if (static_cast<int>(to) == root_) continue;
    kernels::copy(received_[to] + task.to, sent_[static_cast<std::size_t>(root_)] + task.from,
                  task.bytes, stores_);
  }
}

// A rank whose elements and result are the same is no exception: a piece is read before it is
// written.
void RoundTasks::combine(const Task& task, int target) {
  std::size_t outputs = 0;
  for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
    inputs_[rank] = sent_[rank] + task.from;
    const bool gets = target == SharedReduction::everybody || target == static_cast<int>(rank);
    if (gets) outputs_[outputs++] = received_[rank] + task.to;
  }
  operation_->combine(std::span(outputs_).first(outputs), inputs_,
                      task.bytes / operation_->element_bytes, stores_);
}

}  // namespace ropewalk::preload
