// A kernel with more NUMA nodes than this machine: mbind, get_mempolicy and move_pages of this
// thread are answered from a record of what was asked. Programs that use it compile fake_numa.cc
// in, which replaces libc's `syscall` and passes all other calls on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/numa_nodes.hpp"

namespace ropewalk::test {

// Lives as long as the calling thread is to see these nodes.
class FakeNuma {
 public:
  explicit FakeNuma(std::vector<topology::NumaNode> nodes);
  ~FakeNuma();
  FakeNuma(const FakeNuma&) = delete;
  FakeNuma& operator=(const FakeNuma&) = delete;

  // One call of mbind.
  struct Binding {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    int mode = 0;
    std::vector<int> nodes;
    bool move = false;
    bool untouched = false;  // no page of the range was there yet
  };
  std::vector<Binding> bindings;

  std::vector<int> allowed;         // by the cpuset; at first all nodes
  int error = 0;                    // what mbind fails with
  bool tells_places = true;         // move_pages is allowed
  std::optional<int> full_goes_to;  // pages that are bound go to this node instead
  bool movable = true;              // until MPOL_MF_MOVE takes them where they belong

  long bind(const Binding&);
  int node_of(std::uintptr_t page) const;

 private:
  std::vector<topology::NumaNode> nodes_;
  const std::vector<topology::NumaNode>* before_;
};

}  // namespace ropewalk::test
