// Objects of static lifetime whose destructors do not run: a program may call MPI_Finalize in a
// destructor of its own, which may run after ours.
#pragma once

#include <new>

namespace ropewalk::preload {

template <class Value>
union NeverDestroyed {
  NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  Value value;
};

}  // namespace ropewalk::preload
