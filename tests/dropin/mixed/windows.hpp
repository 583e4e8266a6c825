// A window and what is done to it: the part of windows.cc that calls MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actions.hpp"

namespace mixed {

struct Access {
  enum What { put, get, add, fetch, swap };
  What what = get;
  int origin = 0;          // of MPI_COMM_WORLD
  std::size_t target = 0;  // any number: its remainder is a rank of the group
  std::size_t offset = 0, bytes = 0, counter = 0;
  std::uint64_t key = 0;
  std::int64_t value = 0;
  bool exclusive = false, flush = false;
  int target_of(const Group& group) const {
    return static_cast<int>(target % static_cast<std::size_t>(group.size()));
  }
};

struct Epoch {
  std::vector<Access> accesses;
};

class Window {
 public:
  const Comm* comm = nullptr;
  int mode = 0;
  bool allocated = false;
  std::size_t room = 0;  // bytes of all puts
  std::uint64_t key_of_window = 0;
  std::vector<Epoch> epochs;

  void create();
  void run(const Epoch&);
  void run_locked(const Epoch&);
  void fence();
  void post(const std::vector<int>& origins);
  void start(int target, const Epoch&);
  void complete();
  void wait(bool tested);
  void lock_all();
  void flush_all();
  void unlock_all();
  void end();

 private:
  struct Got {
    Buffer* buffer;
    std::uint64_t key;
  };
  std::uint64_t key(int rank) const { return mix(key_of_window + static_cast<unsigned>(rank)); }
  void access(const Access&);
  void completed();

  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t bytes_ = 0;
  char* memory_ = nullptr;
  std::vector<char> storage_;
  std::vector<std::unique_ptr<Buffer>> held_;  // until the epoch is over
  std::vector<Got> got_;
  std::int64_t fetched_[16] = {}, never_ = -1;
};

}  // namespace mixed
