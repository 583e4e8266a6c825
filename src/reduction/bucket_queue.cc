#include "reduction/bucket_queue.hpp"

#include <algorithm>

namespace ropewalk::reduction {

BucketQueue::BucketQueue(int buckets)
    : progress_(static_cast<std::size_t>(buckets)),
      queue_(static_cast<std::size_t>(std::max(1, buckets))) {}

void BucketQueue::push(int bucket) noexcept {
  progress(bucket).error = nullptr;
  ++progress(bucket).started;
  const std::uint64_t tail = pushed();
  queue_[tail % queue_.size()] = bucket;
  // Release: pairs with the acquire in reduce_next().
  tail_.store(tail + 1, std::memory_order_release);
}

void BucketQueue::complete(int bucket) noexcept {
  progress(bucket).finished.fetch_add(1, std::memory_order_release);
  completions_.advance();
}

bool BucketQueue::any_under_way() const noexcept {
  for (int bucket = 0; bucket < static_cast<int>(progress_.size()); ++bucket) {
    if (under_way(bucket)) return true;
  }
  return false;
}

void BucketQueue::sleep_until_complete(int bucket, std::int64_t longest_ns) noexcept {
  const std::uint32_t before = completions_.value();
  if (under_way(bucket)) completions_.sleep(before, longest_ns);
}

void BucketQueue::rethrow(int bucket) {
  if (const std::exception_ptr error = std::exchange(progress(bucket).error, nullptr)) {
    std::rethrow_exception(error);
  }
}

}  // namespace ropewalk::reduction
