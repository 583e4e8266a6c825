// A thread of ropewalk's own, as every room above starts one.
//
// It has a name, takes no signals of the host program, may call MPI as the thread that starts it
// may, and runs on given cores. A child of fork does not have the thread: there, the handle does
// not wait for it.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ropewalk::threads {

struct ThreadOptions {
  std::string name = {};        // at most 15 bytes, the kernel's limit; longer ones are cut
  std::vector<int> cores = {};  // on which it may run; empty: where its starter may
  std::size_t stack_bytes = 0;  // 0, or where the system finds it too small: the system's default
  // An error says so where there is no thread to be had: "OWNER cannot be started (...); raise
  // `ulimit -u` or REMEDY".
  std::string owner = "a thread";
  std::string remedy = "ask for fewer threads";
};

class Thread {
 public:
  Thread() = default;
  // Runs `body`, which must not throw. Throws Error(system) where the system cannot start another
  // thread.
  Thread(const ThreadOptions& options, std::function<void()> body);
  ~Thread() { join(); }
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Tells whether there is a thread to join; also true in a child of fork, until join() or
  // detach().
  bool joinable() const noexcept { return generation_ != 0; }
  // Returns false in a child of fork.
  bool is_here() const noexcept;
  bool is_current() const noexcept;
  // Returns at once where there is none, and in a child of fork.
  void join() noexcept;
  void detach() noexcept;

 private:
  pthread_t thread_{};
  unsigned generation_ = 0;  // os::fork_generation() of its start; 0: no thread
};

}  // namespace ropewalk::threads
