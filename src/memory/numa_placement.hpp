// On which NUMA nodes pages are to lie: the options resolved against the nodes of this machine, the
// kernel told before the pages are touched, and asked afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

class NumaPlacement {
 public:
  NumaPlacement() = default;  // wherever the kernel puts them
  // `argument` names what holds the options in an error; null: the members themselves. Throws
  // Error(argument) where no node is what they say, with those that there are, and Error(memory)
  // where this process may not use it.
  explicit NumaPlacement(const MemoryOptions& options, const char* argument = nullptr);

  bool anywhere() const noexcept { return nodes_.empty(); }

  // Both return why not, or an empty text, and do nothing where pages may lie anywhere.

  // To be called before a page is touched.
  std::string bind(void* address, std::size_t bytes) const;
  // Looks where the pages of the range lie, and tries once to move those that lie elsewhere.
  std::string verify(void* address, std::size_t bytes) const;

 private:
  std::vector<int> nodes_;
  std::string name_;  // "NUMA node 1" or "hbm, NUMA nodes 2, 3"
};

}  // namespace ropewalk::memory
