#include "node/remains.hpp"

#include <mutex>
#include <vector>

#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

struct Graveyard {
  std::mutex mutex;
  std::vector<Remains> remains;
};

// Never destroyed: teams may be freed after static destructors have run.
Graveyard& graveyard() {
  static auto* instance = new Graveyard;
  return *instance;
}

bool all_left(const Remains& one) {
  // Pairs with the release in Team::~Team() of the others.
  return one.others == 0 || one.control->left.load(std::memory_order_acquire) >= one.others;
}

void give_back(const Remains& one) {
  Arena& arena = Arena::process();
  for (void* area : one.areas) arena.deallocate(area);
  arena.deallocate(one.control);
}

}  // namespace

void leave_behind(const Remains& one) noexcept {
  if (one.control == nullptr) return;
  {
    Graveyard& yard = graveyard();
    const std::lock_guard lock(yard.mutex);
    yard.remains.push_back(one);
  }
  sweep_remains();
}

void sweep_remains() noexcept {
  Graveyard& yard = graveyard();
  const std::lock_guard lock(yard.mutex);
  std::erase_if(yard.remains, [](const Remains& one) {
    if (!all_left(one)) return false;
    give_back(one);
    return true;
  });
}

}  // namespace ropewalk::node
