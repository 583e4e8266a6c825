#include "reduction/ready_tensors.hpp"

#include <algorithm>
#include <string>

namespace ropewalk::reduction {

ReadyTensors::ReadyTensors(const PlanTensors& tensors)
    : tensors_(tensors), ready_(static_cast<std::size_t>(tensors.size())) {
  for (int bucket = 0; bucket < tensors.buckets(); ++bucket) {
    missing_.push_back(tensors.bucket(bucket).pieces.size());
  }
}

void ReadyTensors::add(int tensor) {
  const auto bucket = static_cast<std::size_t>(tensors_.bucket_of(tensor));
  if (ready_[static_cast<std::size_t>(tensor)]) {
    throw Error(ErrorCode::argument, "tensor: " + std::to_string(tensor) +
                                         " is ready already; call wait() to end the round");
  }
  ready_[static_cast<std::size_t>(tensor)] = true;
  ++count_;
  --missing_[bucket];
}

int ReadyTensors::startable() const noexcept {
  const bool ready = next_ < tensors_.buckets() && missing_[static_cast<std::size_t>(next_)] == 0;
  return ready ? next_ : -1;
}

void ReadyTensors::start_all() noexcept { next_ = tensors_.buckets(); }

bool ReadyTensors::complete() const noexcept { return count_ == 0 || next_ == tensors_.buckets(); }

void ReadyTensors::check_complete() const {
  if (complete()) return;
  int late = 0;
  while (ready_[static_cast<std::size_t>(late)] || tensors_.bucket_of(late) < next_) ++late;
  throw Error(ErrorCode::argument,
              "wait: bucket " + std::to_string(next_) + " was not started, since tensor " +
                  std::to_string(late) +
                  " is not ready; call ready() for it, or start() for what is left");
}

void ReadyTensors::begin_round() noexcept {
  next_ = 0;
  if (count_ == 0) return;
  count_ = 0;
  std::fill(ready_.begin(), ready_.end(), false);
  for (int bucket = 0; bucket < tensors_.buckets(); ++bucket) {
    missing_[static_cast<std::size_t>(bucket)] = tensors_.bucket(bucket).pieces.size();
  }
}

}  // namespace ropewalk::reduction
