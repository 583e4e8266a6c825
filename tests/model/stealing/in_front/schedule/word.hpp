// Stands before src/schedule/word.hpp in the model test: every access goes through the search.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::model::stealing {

// Values are in the search; a word knows its number there.
int create_word() noexcept;
std::uint64_t load(int word) noexcept;
void store(int word, std::uint64_t value) noexcept;
bool exchange(int word, std::uint64_t& expected, std::uint64_t desired) noexcept;

}  // namespace ropewalk::model::stealing

namespace ropewalk::schedule {

class Word {
 public:
  Word() noexcept : number_(model::stealing::create_word()) {}
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  std::uint64_t load(std::memory_order) const noexcept { return model::stealing::load(number_); }
  void store(std::uint64_t value, std::memory_order) noexcept {
    model::stealing::store(number_, value);
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired,
                               std::memory_order) noexcept {
    return model::stealing::exchange(number_, expected, desired);
  }
  // Failing for no reason leads back to where it was.
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired,
                             std::memory_order order) noexcept {
    return compare_exchange_strong(expected, desired, order);
  }

 private:
  int number_;
};

}  // namespace ropewalk::schedule
