// The steps of one transfer from the memory of the next rank, with and without a registration
// cache.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/ranks.hpp"

namespace ropewalk::bench {

// Microseconds of the steps, in this order.
enum class AttachStep : std::size_t { make, attach, touch, copy, detach };
inline constexpr std::size_t attach_steps = 5;
const std::vector<std::string>& attach_step_names();  // in the order of AttachStep
using AttachTimes = std::array<double, attach_steps>;
double total(const AttachTimes& times);

// A way into the memory of the next rank. All functions but name() are collective.
class AttachWay {
 public:
  virtual ~AttachWay() = default;
  virtual std::string name() const = 0;
  // Throws the error of any rank on all ranks.
  virtual AttachTimes fresh(std::size_t bytes) = 0;  // nothing is known of the memory before
  // The means of `count` transfers from memory that the cache knows.
  virtual AttachTimes cached(std::size_t bytes, int count) = 0;
  // Tells whether every byte has come on this rank, so far.
  bool verified() const noexcept { return verified_; }

 protected:
  bool verified_ = true;
};

// All ways that this machine has.
class AttachWays {
 public:
  // Collective. `largest`: bytes of a transfer.
  AttachWays(const Ranks& ranks, std::size_t largest);
  ~AttachWays();

  const std::vector<std::unique_ptr<AttachWay>>& all() const noexcept { return ways_; }
  // Why xpmem is none of them.
  const std::string& xpmem_reason() const noexcept { return xpmem_reason_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::vector<std::unique_ptr<AttachWay>> ways_;
  std::string xpmem_reason_;
};

}  // namespace ropewalk::bench
