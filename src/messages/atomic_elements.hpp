// Atomic operations on elements of any type of at most 8 bytes, wherever they are mapped.
#pragma once

#include <cstddef>

#include "ropewalk/types.hpp"

namespace ropewalk::messages {

// Whether elements of the type can be operated on so. compare_and_swap needs no operation.
bool is_atomic(ElementType) noexcept;
bool is_atomic(ElementType, ReductionOp) noexcept;

// `target` and `operands` are `count` elements each; `before`, which may be null, gets what the
// targets were.
void apply(std::byte* target, const std::byte* operands, std::byte* before, std::size_t count,
           ElementType, ReductionOp);
void compare_and_swap(std::byte* target, const std::byte* expected, const std::byte* desired,
                      std::byte* before, ElementType);

}  // namespace ropewalk::messages
