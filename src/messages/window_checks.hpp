// What the arguments of a window's calls must be: each throws Error(argument) otherwise.
#pragma once

#include <cstddef>

#include "ropewalk/types.hpp"

namespace ropewalk::messages {

void require_rank(int rank, int size);
void require_range(std::size_t offset, std::size_t bytes, std::size_t end);
void require_buffer(const void* buffer, std::size_t bytes, const char* name);
void require_element(bool is_atomic, ElementType type, std::size_t offset);
void require_index(int index, int count);

}  // namespace ropewalk::messages
