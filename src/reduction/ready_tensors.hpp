// Which tensors of a plan are ready in the round under way, and so which buckets can be started: a
// bucket follows the one before it.
#pragma once

#include <cstddef>
#include <vector>

#include "reduction/plan_tensors.hpp"

namespace ropewalk::reduction {

class ReadyTensors {
 public:
  explicit ReadyTensors(const PlanTensors& tensors);

  // Throws Error(argument) where it is ready already.
  void add(int tensor);
  // Returns the bucket that can be started next, for all its tensors are ready; -1 for none.
  int startable() const noexcept;
  void start_next() noexcept { ++next_; }
  // Returns where start() of all that is left begins.
  int first_left() const noexcept { return count_ > 0 ? next_ : 0; }
  void start_all() noexcept;
  // Whether no bucket is left to be started in this round, or no tensor has become ready in it.
  bool complete() const noexcept;
  // Throws Error(argument), which names a tensor that is not ready, unless complete().
  void check_complete() const;
  void begin_round() noexcept;

 private:
  const PlanTensors& tensors_;
  std::vector<bool> ready_;           // one a tensor
  std::vector<std::size_t> missing_;  // one a bucket: its tensors that are not ready
  int next_ = 0;                      // buckets before it have been started in this round
  int count_ = 0;                     // of tensors that are ready
};

}  // namespace ropewalk::reduction
