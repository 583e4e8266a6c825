#include "messages/atomic_elements.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.hpp"

namespace ropewalk::messages {
namespace {

// Elements combined by one call of a kernel: enough that the call costs little, few enough that
// another rank seldom changes one meanwhile.
constexpr std::size_t batch = 32;

// Calls body(Word{}) with the unsigned integer of the element's size.
template <class Body>
void with_word(ElementType type, const Body& body) {
  switch (size_of(type)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

// Computes out[i] = elements[i] op operands[i].
void combine(void* out, const void* elements, const void* operands, std::size_t count,
             kernels::ReduceFunction kernel) {
  std::array<void*, 1> outputs{out};
  std::array<const void*, 2> inputs{elements, operands};
  kernel(outputs.data(), 1, inputs.data(), 2, count, kernels::Stores::temporal);
}

template <class Word>
void exchange(std::byte* target, const std::byte* operands, std::byte* before, std::size_t count) {
  auto* elements = reinterpret_cast<Word*>(target);
  for (std::size_t i = 0; i < count; ++i) {
    Word operand;
    std::memcpy(&operand, operands + i * sizeof(Word), sizeof(Word));
    const Word was =
        std::atomic_ref<Word>(elements[i]).exchange(operand, std::memory_order_acq_rel);
    if (before != nullptr) std::memcpy(before + i * sizeof(Word), &was, sizeof(Word));
  }
}

template <class Word>
void load(std::byte* target, std::byte* before, std::size_t count) {
  auto* elements = reinterpret_cast<Word*>(target);
  for (std::size_t i = 0; i < count; ++i) {
    const Word is = std::atomic_ref<Word>(elements[i]).load(std::memory_order_acquire);
    if (before != nullptr) std::memcpy(before + i * sizeof(Word), &is, sizeof(Word));
  }
}

// Combines a batch at once; where another rank has changed an element meanwhile, that one again.
template <class Word>
void combine_batch(Word* elements, const std::byte* operands, Word* was, std::size_t count,
                   kernels::ReduceFunction kernel) {
  std::array<Word, batch> next;
  for (std::size_t i = 0; i < count; ++i) {
    was[i] = std::atomic_ref<Word>(elements[i]).load(std::memory_order_relaxed);
  }
  std::copy_n(was, count, next.begin());  // a kernel leaves the gaps inside pairs
  combine(next.data(), was, operands, count, kernel);
  for (std::size_t i = 0; i < count; ++i) {
    while (!std::atomic_ref<Word>(elements[i])
                .compare_exchange_weak(was[i], next[i], std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
      next[i] = was[i];
      combine(&next[i], &was[i], operands + i * sizeof(Word), 1, kernel);
    }
  }
}

template <class Word>
void combine_all(std::byte* target, const std::byte* operands, std::byte* before, std::size_t count,
                 kernels::ReduceFunction kernel) {
  std::array<Word, batch> was;
  for (std::size_t done = 0; done < count; done += batch) {
    const std::size_t some = std::min(batch, count - done);
    const std::size_t at = done * sizeof(Word);
    combine_batch(reinterpret_cast<Word*>(target + at), operands + at, was.data(), some, kernel);
    if (before != nullptr) std::memcpy(before + at, was.data(), some * sizeof(Word));
  }
}

}  // namespace

bool is_atomic(ElementType type) noexcept {
  const std::size_t bytes = size_of(type);
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

bool is_atomic(ElementType type, ReductionOp op) noexcept {
  if (!is_atomic(type)) return false;
  if (op == ReductionOp::replace || op == ReductionOp::no_op) return true;
  return kernels::find(type, op) != nullptr;
}

void apply(std::byte* target, const std::byte* operands, std::byte* before, std::size_t count,
           ElementType type, ReductionOp op) {
  with_word(type, [&]<class Word>(Word) {
    if (op == ReductionOp::replace) return exchange<Word>(target, operands, before, count);
    if (op == ReductionOp::no_op) return load<Word>(target, before, count);
    combine_all<Word>(target, operands, before, count, kernels::find(type, op));
  });
}

void compare_and_swap(std::byte* target, const std::byte* expected, const std::byte* desired,
                      std::byte* before, ElementType type) {
  with_word(type, [&]<class Word>(Word) {
    Word was;
    Word next;
    std::memcpy(&was, expected, sizeof(Word));
    std::memcpy(&next, desired, sizeof(Word));
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(target))
        .compare_exchange_strong(was, next, std::memory_order_acq_rel);
    std::memcpy(before, &was, sizeof(Word));
  });
}

}  // namespace ropewalk::messages
