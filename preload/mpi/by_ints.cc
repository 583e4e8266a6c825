#include "by_ints.hpp"

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "never_destroyed.hpp"

namespace ropewalk::preload {
namespace {

struct Kept {
  std::mutex mutex;
  std::set<std::vector<int>> arrays;
};
NeverDestroyed<Kept> the_kept;

}  // namespace

const int* kept_ints(const Count* array, std::size_t length) {
  std::vector<int> made;
  for (std::size_t i = 0; i < length; ++i) {
    if (!fits_int(array[i])) return nullptr;
    made.push_back(static_cast<int>(array[i]));
  }
  made.push_back(0);  // so that an array of nothing has an address, too
  Kept& kept = the_kept.value;
  const std::lock_guard lock(kept.mutex);
  return kept.arrays.insert(std::move(made)).first->data();
}

}  // namespace ropewalk::preload
