// Stands before src/node/flag.hpp in the model test: every access goes through the model.
#pragma once

#include <atomic>
#include <cstdint>

#include "model/model.hpp"

namespace ropewalk::node {

constexpr std::uint64_t slots_unless_modelled(std::uint64_t) noexcept { return MODEL_SLOTS; }

// Its values are in the model; the word is there for its address.
template <class T>
class Flag {
 public:
  Flag() noexcept : word_() { model::create_flag(this); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return static_cast<T>(model::load_flag(this, order));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    model::store_flag(this, static_cast<std::uint64_t>(value), order);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order order = std::memory_order_seq_cst) noexcept {
    auto found = static_cast<std::uint64_t>(expected);
    const bool done = model::exchange_flag(this, found, static_cast<std::uint64_t>(desired), order);
    expected = static_cast<T>(found);
    return done;
  }
  // Failing for no reason leads back to where it was.
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order order = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, order);
  }
  T fetch_add(T more, std::memory_order order = std::memory_order_seq_cst) noexcept {
    T found = load(std::memory_order_relaxed);
    while (!compare_exchange_strong(found, static_cast<T>(found + more), order)) {
    }
    return found;
  }

 private:
  [[maybe_unused]] T word_;
};
static_assert(sizeof(Flag<std::uint64_t>) == sizeof(std::uint64_t));

template <class T>
class Plain {
 public:
  operator T() const noexcept {  // NOLINT: stands for a T
    model::read(this, sizeof *this);
    return value_;
  }
  Plain& operator=(T value) noexcept {
    model::write(this, sizeof *this);
    value_ = value;
    return *this;
  }

 private:
  T value_;
};

template <class Ready>
bool waited_in_model(const Ready& ready) {
  model::wait([](const void* test) { return (*static_cast<const Ready*>(test))(); }, &ready);
  return true;
}

}  // namespace ropewalk::node
