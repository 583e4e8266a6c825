#include "collectives/nodes/buffers.hpp"

#include <cstring>

#include "ropewalk/memory.hpp"

namespace ropewalk::collectives::nodes {

Landing::Landing(Engine& engine, void* data, std::size_t bytes)
    : data_(static_cast<std::byte*>(data)),
      place_(data_),
      reference_(engine.reference(data, bytes)),
      address_(engine.address_for_cma(data, bytes, reference_)) {
  if (bytes == 0 || reference_ != private_reference || address_ != 0) return;
  place_ = engine.scratch(bytes);
  reference_ = Arena::process().offset(place_);
}

void Landing::take(std::size_t offset, std::size_t bytes) const {
  if (place_ == data_ || bytes == 0) return;
  kernels::copy(data_ + offset, place_ + offset, bytes, kernels::Stores::temporal);
}

std::size_t* show_table(Engine& engine, node::Slot& own, std::size_t numbers) {
  auto* table = reinterpret_cast<std::size_t*>(engine.scratch(numbers * sizeof(std::size_t)));
  const Reference reference = Arena::process().offset(table);
  std::memcpy(own.payload + sizeof(Shown), &reference, sizeof reference);
  return table;
}

const std::size_t* table_of(Engine& engine, int place) {
  node::Team& team = engine.team();
  const node::Slot& slot = place == engine.rank() ? team.claimed() : team.arrival(place);
  Reference reference = 0;
  std::memcpy(&reference, slot.payload + sizeof(Shown), sizeof reference);
  return reinterpret_cast<const std::size_t*>(team.base(place) + reference);
}

void Buffers::read(int place, std::size_t offset, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (place == engine_.rank()) {
    if (to != send_ + offset) kernels::copy(to, send_ + offset, bytes, stores_);
  } else if (!engine_.read(to, place, shown_[static_cast<std::size_t>(place)], offset, bytes,
                           stores_)) {
    engine_.throw_unreadable();
  }
}

const std::byte* Buffers::seen(int place, std::size_t offset, std::size_t bytes) {
  if (place == engine_.rank()) return send_ + offset;
  const Shown& shown = shown_[static_cast<std::size_t>(place)];
  if (shown.send == private_reference) return nullptr;
  return engine_.try_resolve(place, shown.send + offset, bytes);
}

void Buffers::write(int place, std::size_t offset, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (place == engine_.rank()) {
    if (receive_ + offset != from) kernels::copy(receive_ + offset, from, bytes, stores_);
  } else if (!engine_.write(place, shown_[static_cast<std::size_t>(place)], offset, from, bytes,
                            stores_)) {
    engine_.throw_unreadable();
  }
}

// Each owner begins with another rank, so that not all write into one rank's memory at once.
void Buffers::write_all(std::size_t offset, const void* from, std::size_t bytes) {
  for (int step = 0; step < engine_.size(); ++step) {
    write((engine_.rank() + step) % engine_.size(), offset, from, bytes);
  }
}

}  // namespace ropewalk::collectives::nodes
