// What a child of fork must know: which threads and connections belong to its parent.
#pragma once

namespace ropewalk::os {

// Rises in every child of a fork: threads made under an earlier number are not there any more. It
// is at least 1.
unsigned fork_generation() noexcept;

// Remembers the process in which an object was made.
class ForkCheck {
 public:
  // Returns false in a child of fork, to which the object's threads did not come along.
  bool same_process() const noexcept { return generation_ == fork_generation(); }

 private:
  unsigned generation_ = fork_generation();
};

}  // namespace ropewalk::os
