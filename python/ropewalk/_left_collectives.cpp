#include "_left_collectives.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "_core.hpp"

namespace ropewalk::python {
namespace {

struct Left : OfProcess {
  Left(CollectiveRequest its_request, std::shared_ptr<Completion> its_end, Buffers its)
      : buffers(std::move(its)), end(std::move(its_end)), request(std::move(its_request)) {}
  // In a child of fork, what was under way stays so: its thread is the parent's.
  bool is_over() const { return is_own() && end->done(); }

  Buffers buffers;
  std::shared_ptr<Completion> end;
  CollectiveRequest request;  // ends first, and waits for the last steps of its thread
};

// Guarded by the GIL. Never destroyed: at the end of the process there is no Python any more.
std::vector<Left>& all_left() {
  static auto* const list = new std::vector<Left>;
  return *list;
}

}  // namespace

void keep_until_complete(CollectiveRequest request, std::shared_ptr<Completion> end,
                         Buffers buffers) {
  all_left().emplace_back(std::move(request), std::move(end), std::move(buffers));
}

void tidy_left_collectives() {
  std::vector<Left>& list = all_left();
  if (list.empty() || abandoned()) return;
  const auto over = std::stable_partition(list.begin(), list.end(),
                                          [](const Left& each) { return !each.is_over(); });
  // They end behind the list, since the end of an array may run code that comes here.
  const std::vector<Left> ending(std::make_move_iterator(over),
                                 std::make_move_iterator(list.end()));
  list.erase(over, list.end());
}

}  // namespace ropewalk::python
