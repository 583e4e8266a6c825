// Threads that compute one hop together, again and again. They spin between runs, for a hop may
// take 20 us, and sleep when none comes for a while.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace ropewalk::lattice {

class Team {
 public:
  explicit Team(int threads);  // the caller is thread 0
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const noexcept { return static_cast<int>(threads_.size()) + 1; }
  // Runs action(thread) on all threads; returns when all are done. It must not throw.
  void run(const std::function<void(int)>& action);

 private:
  void work(int thread);

  const std::function<void(int)>* action_ = nullptr;  // null: the threads end
  // Raised for each run after action_ is set (release); a thread that sees it acquires action_.
  alignas(128) std::atomic<unsigned> started_{0};
  // Threads done in this run, counted up for ever; release by each thread, acquired by the caller.
  alignas(128) std::atomic<unsigned> finished_{0};
  std::vector<std::thread> threads_;
};

}  // namespace ropewalk::lattice
