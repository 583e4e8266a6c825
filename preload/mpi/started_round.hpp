// This file has a nonblocking collective that the ranks of one node carry out without a thread, by
// their logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rare_look.hpp"
#include "round_log.hpp"
#include "round_plan.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

class StartedRound {
 public:
  // Takes what the round needs. Throws std::bad_alloc.
  StartedRound(std::shared_ptr<RoundLog>, RoundPlan, const Watch&);
  // Begins the round, and waits for nobody.
  void begin() noexcept;
  // Returns true where nothing but complete() is left for this rank. It never waits.
  bool is_ready() noexcept;
  // Completes the round once all that this rank receives is there; returns false before. It never
  // waits. After an error, `code` is not 0.
  bool complete(int& code) noexcept;

 private:
  int receive() noexcept;
  int code_of_loss() noexcept;
  bool has_done_its_part(int rank) noexcept;
  bool all_are_near() noexcept;

  std::shared_ptr<RoundLog> log_;
  RoundPlan plan_;
  std::uint64_t round_ = 0;   // 0: this rank could not begin it
  std::vector<int> sources_;  // that this rank waits for; the first `found_` have been found
  std::size_t found_ = 0;
  int near_ = 0;                // so many ranks have been seen not to be too far behind
  std::size_t sent_bytes_ = 0;  // of the largest block
  std::size_t received_bytes_ = 0;
  std::vector<const void*> inputs_;
  RareLook look_;
  Watch watch_;
};

}  // namespace ropewalk::preload
