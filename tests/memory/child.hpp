// Running part of a test in a child process: as another user, under limits, or to see it forked.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "os/file.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROPEWALK_TEST_SANITIZED 1
#else
#define ROPEWALK_TEST_SANITIZED 0
#endif

namespace ropewalk::test {

constexpr bool sanitized = ROPEWALK_TEST_SANITIZED != 0;

// 0: as wanted. Other codes say which check failed; 250 an exception; 1000 + n ended by signal n.
template <class Body>
pid_t start_child(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 250;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in the child: %s\n", error.what());
  }
  std::fflush(nullptr);
  _exit(code);
}

inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

template <class Body>
int in_child(Body&& body) {
  return wait_for(start_child(std::forward<Body>(body)));
}

// Called in a child: no more root. Returns false where that cannot be.
inline bool become_ordinary_user() {
  constexpr unsigned nobody = 65534;
  if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) return false;
  // Whoever changes user may not read its own /proc/self/pagemap until it says so.
  return prctl(PR_SET_DUMPABLE, 1) == 0;
}

// A pipe to make parent and child take turns.
class Turn {
 public:
  Turn() {
    int ends[2] = {-1, -1};
    if (pipe(ends) == 0) {
      read_ = os::Descriptor(ends[0]);
      write_ = os::Descriptor(ends[1]);
    }
  }
  void give() const {
    if (write(write_.get(), "x", 1) != 1) _exit(249);
  }
  void take() const {
    char byte = 0;
    while (read(read_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  os::Descriptor read_;
  os::Descriptor write_;
};

}  // namespace ropewalk::test
