// This file has the entry points that open and close epochs on windows, and the end of a window.
#include <atomic>
#include <cstring>

#include "onesided.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace onesided;

std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

bool refuse(const char* text) { throw Error(ErrorCode::argument, text); }

// Whether all are ranks of the window; MPI must judge a group of others.
bool are_ranks(const ServedWindow& window, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    if (!window.is_rank(rank)) return false;
  }
  return true;
}

// What this rank has stored is there for others, and what others have stored is read anew.
template <class Pass>
int flush(Word word, int rank, bool all, Pass pass) {
  return on_window(
      Function::win_flush, 0, word,
      [&](ServedWindow& window) {
        if (!all && window.is_nobody(rank)) return true;
        const bool held = all ? window.epochs().holds_any()
                              : window.is_rank(rank) && window.epochs().holds(index(rank));
        if (!held) return false;
        window.epochs().flush();
        return true;
      },
      pass);
}

bool lock(ServedWindow& window, int type, int rank, bool check) {
  const mpi::WindowAbi& abi = window_abi();
  if (window.is_nobody(rank)) return true;
  if (!window.is_rank(rank) || (type != abi.lock_exclusive && type != abi.lock_shared)) {
    return false;
  }
  return window.epochs().lock(index(rank), type == abi.lock_exclusive, check) ||
         refuse("MPI_Win_lock: this rank holds a lock of that rank; unlock it first");
}

bool checks(int assertion) { return (assertion & window_abi().no_check) == 0; }

}  // namespace

int Win_fence(int assertion, Word word) {
  return on_window(
      Function::win_fence, 0, word,
      [&](ServedWindow& window) {
        window.epochs().fence();
        return true;
      },
      [&] { return next.Win_fence(assertion, word); });
}

int Win_lock(int type, int rank, int assertion, Word word) {
  return on_window(
      Function::win_lock, 0, word,
      [&](ServedWindow& window) { return lock(window, type, rank, checks(assertion)); },
      [&] { return next.Win_lock(type, rank, assertion, word); });
}

int Win_unlock(int rank, Word word) {
  return on_window(
      Function::win_unlock, 0, word,
      [&](ServedWindow& window) {
        if (window.is_nobody(rank)) return true;
        if (!window.is_rank(rank) || !window.epochs().unlock(index(rank))) return false;
        window.epochs().breathe();
        return true;
      },
      [&] { return next.Win_unlock(rank, word); });
}

int Win_lock_all(int assertion, Word word) {
  return on_window(
      Function::win_lock, 0, word,
      [&](ServedWindow& window) {
        window.epochs().breathe();
        return window.epochs().lock_all(checks(assertion)) ||
               refuse("MPI_Win_lock_all: this rank holds a lock of the window; unlock it first");
      },
      [&] { return next.Win_lock_all(assertion, word); });
}

int Win_unlock_all(Word word) {
  return on_window(
      Function::win_unlock, 0, word,
      [&](ServedWindow& window) { return window.epochs().unlock_all(); },
      [&] { return next.Win_unlock_all(word); });
}

int Win_flush(int rank, Word word) {
  return flush(word, rank, false, [&] { return next.Win_flush(rank, word); });
}
int Win_flush_local(int rank, Word word) {
  return flush(word, rank, false, [&] { return next.Win_flush_local(rank, word); });
}
int Win_flush_all(Word word) {
  return flush(word, 0, true, [&] { return next.Win_flush_all(word); });
}
int Win_flush_local_all(Word word) {
  return flush(word, 0, true, [&] { return next.Win_flush_local_all(word); });
}

int Win_sync(Word word) {
  ServedWindow* window = find(clean(word));
  if (window == nullptr) return next.Win_sync(word);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  window->epochs().breathe();  // the program may call this until something has changed
  return 0;
}

int Win_post(Word group, int assertion, Word word) {
  return on_window(
      Function::win_post, 0, word,
      [&](ServedWindow& window) {
        std::vector<int> ranks = ranks_in_window(group, word);
        if (!are_ranks(window, ranks)) return false;
        return window.epochs().post(std::move(ranks)) ||
               refuse("MPI_Win_post: the window is exposed; call MPI_Win_wait first");
      },
      [&] { return next.Win_post(group, assertion, word); });
}

int Win_start(Word group, int assertion, Word word) {
  return on_window(
      Function::win_start, 0, word,
      [&](ServedWindow& window) {
        std::vector<int> ranks = ranks_in_window(group, word);
        if (!are_ranks(window, ranks)) return false;
        return window.epochs().start(std::move(ranks)) ||
               refuse("MPI_Win_start: an epoch is open; call MPI_Win_complete first");
      },
      [&] { return next.Win_start(group, assertion, word); });
}

int Win_complete(Word word) {
  return on_window(
      Function::win_complete, 0, word,
      [&](ServedWindow& window) { return window.epochs().complete(); },
      [&] { return next.Win_complete(word); });
}

int Win_wait(Word word) {
  return on_window(
      Function::win_wait, 0, word, [&](ServedWindow& window) { return window.epochs().wait(); },
      [&] { return next.Win_wait(word); });
}

int Win_test(Word word, int* flag) {
  return on_window(
      Function::win_wait, 0, word,
      [&](ServedWindow& window) {
        bool exposed = false;
        const bool over = window.epochs().test(exposed);
        if (!exposed) return false;
        *flag = over ? 1 : 0;
        return true;
      },
      [&] { return next.Win_test(word, flag); });
}

// The flavor is what the program has asked for, not what MPI has made of it.
int Win_get_attr(Word word, int key, void* value, int* flag) {
  const ServedWindow* window = find(clean(word));
  const bool asked_otherwise = window != nullptr && window->kind() == WindowKind::allocate;
  if (!asked_otherwise || key != window_abi().create_flavor) {
    return next.Win_get_attr(word, key, value, flag);
  }
  static int flavor = window_abi().flavor_allocate;
  *static_cast<int**>(value) = &flavor;
  *flag = 1;
  return 0;
}

// MPI's window goes first: that waits for all ranks, of which none looks at the board after it.
int Win_free(void* place) {
  Word word = 0;
  std::memcpy(&word, place, handle_bits == ~Word{0} ? sizeof word : 4);
  const ServedWindow* served = find(word);
  if (served != nullptr && served->epochs().is_open()) {
    return raise_on_window(word, "MPI_Win_free: an epoch of the window is open; close it first");
  }
  std::unique_ptr<ServedWindow> window = forget(word);
  const int code = next.Win_free(place);
  if (window == nullptr) return code;
  if (code != 0) put_back(std::move(window));  // as where a callback of the program's refuses
  return code;
}

}  // namespace ropewalk::preload::serve
