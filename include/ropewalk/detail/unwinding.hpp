// Whether an object is destroyed because of an exception.
#pragma once

#include <exception>

namespace ropewalk::detail {

// A member of objects that end together with those of other ranks: where an exception takes this
// rank away, their destructors must not wait for the others.
class Unwinding {
 public:
  // Returns true while an exception is on its way that was thrown after this was made.
  explicit operator bool() const noexcept { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};

}  // namespace ropewalk::detail
