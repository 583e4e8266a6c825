// This file serves the functions of MPI 4.1 that look at several requests without completing them.
// A program finds them here even where MPI has none; then they look at one after the other.
#include <vector>

#include "message_mpi.hpp"
#include "pending.hpp"

namespace ropewalk::preload {
namespace {

using namespace messages;

// The program's requests without those that are pending here, of which MPI does not know enough.
class OtherRequests {
 public:
  OtherRequests(int count, void* requests) : given_(requests) {
    handles_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    const ProgramRequests copies(handles_.data());
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      const bool ours = pending.find(given_.get(i)) != nullptr;
      has_ours_ = has_ours_ || ours;
      copies.set(i, ours ? abi().request_null : given_.get(i));
    }
  }
  void* first() noexcept { return handles_.data(); }
  bool has_ours() const noexcept { return has_ours_; }
  std::size_t size() const noexcept { return handles_.size(); }
  // Whether a request is pending here, and nothing is left to wait for.
  bool is_settled(std::size_t at) const noexcept {
    Pending* entry = pending.find(given_.get(at));
    return entry != nullptr && pending.settle(given_.get(at), *entry);
  }
  Word handle(std::size_t at) const noexcept { return given_.get(at); }

 private:
  ProgramRequests given_;
  std::vector<Word> handles_;  // with room for handles of any size
  bool has_ours_ = false;
};

void* place_in(void* statuses, std::size_t at) noexcept {
  return is_ignored(statuses) ? reinterpret_cast<void*>(abi().status_ignore)
                              : status_at(statuses, at);
}

// Looks at the requests one after the other, and calls found(place) for each that is complete,
// until that returns false. Returns MPI's code; `active` counts the requests that are not null.
template <class Found>
int look_at_each(int count, void* requests, void* statuses, int& active, Found found) {
  const ProgramRequests given(requests);
  active = 0;
  std::size_t filled = 0;
  for (int i = 0; i < count; ++i) {
    const Word handle = given.get(static_cast<std::size_t>(i));
    if (handle == abi().request_null) continue;
    ++active;
    int flag = 0;
    const int code = serve::Request_get_status(handle, &flag, place_in(statuses, filled));
    if (code != 0) return code;
    if (flag == 0) continue;
    ++filled;
    if (!found(i)) return 0;
  }
  return 0;
}

int any_of_each(int count, void* requests, int* index, int* flag, void* status) {
  int active = 0;
  *index = mpi::undefined();
  const int code = look_at_each(count, requests, status, active, [&](int i) {
    *index = i;
    return false;
  });
  if (code != 0) return code;
  *flag = active == 0 || *index != mpi::undefined() ? 1 : 0;
  if (active != 0) return 0;
  int empty = 0;
  if (!is_ignored(status)) set_error(status, 0);
  return serve::Request_get_status(abi().request_null, &empty, status);
}

int some_of_each(int count, void* requests, int* number, int* indices, void* statuses) {
  int active = 0;
  *number = 0;
  const int code = look_at_each(count, requests, statuses, active, [&](int i) {
    indices[(*number)++] = i;
    return true;
  });
  if (active == 0) *number = mpi::undefined();
  return code;
}

}  // namespace

namespace serve {

int Request_get_status_all(int count, void* requests, int* flag, void* statuses) {
  if (pending.empty() && next.Request_get_status_all != nullptr) {
    return next.Request_get_status_all(count, requests, flag, statuses);
  }
  const ProgramRequests given(requests);
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    int one = 0;
    const int code = Request_get_status(given.get(at), &one, place_in(statuses, at));
    if (code != 0) return code;
    if (one == 0) *flag = 0;
  }
  return 0;
}

int Request_get_status_any(int count, void* requests, int* index, int* flag, void* status) {
  if (next.Request_get_status_any == nullptr) {
    return any_of_each(count, requests, index, flag, status);
  }
  MessageLock lock = MessageLock::after_others();
  OtherRequests others(count, requests);
  if (!others.has_ours()) {
    lock.end();
    return next.Request_get_status_any(count, requests, index, flag, status);
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!others.is_settled(i)) continue;
    *index = static_cast<int>(i);
    return get_status(others.handle(i), flag, status);
  }
  const int code = next.Request_get_status_any(count, others.first(), index, flag, status);
  if (*flag != 0 && *index < 0 && others.has_ours()) *flag = 0;
  return code;
}

int Request_get_status_some(int count, void* requests, int* number, int* indices, void* statuses) {
  if (next.Request_get_status_some == nullptr) {
    return some_of_each(count, requests, number, indices, statuses);
  }
  MessageLock lock = MessageLock::after_others();
  OtherRequests others(count, requests);
  if (!others.has_ours()) {
    lock.end();
    return next.Request_get_status_some(count, requests, number, indices, statuses);
  }
  *number = 0;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!others.is_settled(i)) continue;
    int flag = 0;
    const auto filled = static_cast<std::size_t>(*number);
    const int code = get_status(others.handle(i), &flag, place_in(statuses, filled));
    if (code != 0) return code;
    indices[(*number)++] = static_cast<int>(i);
  }
  if (*number > 0) return 0;
  const int code = next.Request_get_status_some(count, others.first(), number, indices, statuses);
  if (*number < 0 && others.has_ours()) *number = 0;
  return code;
}

}  // namespace serve
}  // namespace ropewalk::preload
