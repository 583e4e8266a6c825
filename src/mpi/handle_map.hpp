// From a predefined handle to what it is, in one or two probes: the hot path of a collective asks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace ropewalk::mpi {

// Open addressing; at most a quarter of the slots are used. 0 is no handle in any MPI.
template <class Value>
class HandleMap {
 public:
  void insert(std::uintptr_t handle, Value value) {
    if (handle == 0) return;
    std::size_t slot = first_slot(handle);
    while (slots_[slot].handle != 0) {
      if (slots_[slot].handle == handle) return;  // two names of one handle: the first stays
      slot = (slot + 1) % slots_.size();
    }
    slots_[slot] = {handle, value};
  }

  std::optional<Value> find(std::uintptr_t handle) const noexcept {
    for (std::size_t slot = first_slot(handle); slots_[slot].handle != 0;
         slot = (slot + 1) % slots_.size()) {
      if (slots_[slot].handle == handle) return slots_[slot].value;
    }
    return std::nullopt;
  }

 private:
  struct Slot {
    std::uintptr_t handle = 0;
    Value value{};
  };
  // This is Fibonacci hashing: the top 9 bits of handle * 2^64 / golden ratio.
  static std::size_t first_slot(std::uintptr_t handle) noexcept {
    return static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> 55);
  }
  std::array<Slot, 512> slots_{};
};

}  // namespace ropewalk::mpi
