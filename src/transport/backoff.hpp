// Backoff: how a thread that polls makes room for others, ever more the longer it waits.
#pragma once

#include <cstdint>

namespace ropewalk::transport {

// Polls at full speed first, then yields its core, and sleeps between polls once nothing has come
// for so long that the peer is clearly not running. Ranks may outnumber cores: what a waiting
// thread waits for may need the very core it polls on.
class Backoff {
 public:
  void pause() noexcept;
  void reset() noexcept { *this = Backoff{}; }
  // Whether it has come to sleeping: the caller may then sleep on something better.
  bool patient() const noexcept { return nap_ns_ != 0; }

 private:
  unsigned rounds_ = 0;
  std::int64_t since_ns_ = 0;
  std::int64_t nap_ns_ = 0;
};

}  // namespace ropewalk::transport
