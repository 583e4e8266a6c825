#include "collectives/nodes/buffers.hpp"

#include <cstring>

#include "ropewalk/memory.hpp"

namespace ropewalk::collectives::nodes {

Landing::Landing(Engine& engine, void* data, std::size_t bytes)
    : data_(static_cast<std::byte*>(data)),
      place_(data_),
      reference_(engine.memory().reachable(data, bytes)) {
  if (bytes == 0 || !reference_.is_none()) return;
  place_ = engine.scratch().take(bytes);
  reference_ = channel::PeerMemory::in_arena(place_);
}

void Landing::take(std::size_t offset, std::size_t bytes) const {
  if (place_ == data_ || bytes == 0) return;
  kernels::copy(data_ + offset, place_ + offset, bytes, kernels::Stores::temporal);
}

std::size_t* show_table(Engine& engine, node::Slot& own, std::size_t numbers) {
  auto* table =
      reinterpret_cast<std::size_t*>(engine.scratch().take(numbers * sizeof(std::size_t)));
  const Reference reference = channel::PeerMemory::in_arena(table);
  std::memcpy(own.payload + sizeof(Shown), &reference, sizeof reference);
  return table;
}

const std::size_t* table_of(Engine& engine, int place) {
  node::Team& team = engine.team();
  const node::Slot& slot =
      place == engine.rank() ? team.slots().claimed() : team.slots().arrival(place);
  Reference reference;
  std::memcpy(&reference, slot.payload + sizeof(Shown), sizeof reference);
  return reinterpret_cast<const std::size_t*>(team.base(place) + reference.place());
}

void NodeBuffers::read(int place, std::size_t offset, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (place == engine_.rank()) {
    if (to != send_ + offset) kernels::copy(to, send_ + offset, bytes, stores_);
  } else if (!engine_.copies().read(to, place, shown_[static_cast<std::size_t>(place)], offset,
                                    bytes, stores_)) {
    engine_.duties().throw_unreadable();
  }
}

const std::byte* NodeBuffers::seen(int place, std::size_t offset, std::size_t bytes) {
  if (place == engine_.rank()) return send_ + offset;
  const Shown& shown = shown_[static_cast<std::size_t>(place)];
  if (!shown.send.is_visible()) return nullptr;
  return engine_.memory().resolve(place, shown.send + offset, bytes);
}

void NodeBuffers::write(int place, std::size_t offset, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (place == engine_.rank()) {
    if (receive_ + offset != from) kernels::copy(receive_ + offset, from, bytes, stores_);
  } else if (!engine_.memory().write(place,
                                     shown_[static_cast<std::size_t>(place)].receive + offset, from,
                                     bytes, stores_)) {
    engine_.duties().throw_unreadable();
  }
}

// Each leader begins with another rank, so that not all write into one rank's memory at once.
void NodeBuffers::write_all(std::size_t offset, const void* from, std::size_t bytes) {
  for (int step = 0; step < engine_.size(); ++step) {
    write((engine_.rank() + step) % engine_.size(), offset, from, bytes);
  }
}

}  // namespace ropewalk::collectives::nodes
