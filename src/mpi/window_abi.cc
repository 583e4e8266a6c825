// The facts come from the mpi.h of each MPI, as those of abi.cc.
#include "mpi/window_abi.hpp"

namespace ropewalk::mpi {

WindowAbi window_abi_of(Family family) noexcept {
  switch (family) {
    case Family::openmpi:
      return {.lock_exclusive = 1,
              .lock_shared = 2,
              .no_check = 1,
              .create_flavor = 10,
              .flavor_allocate = 2};
    case Family::standard:
      return {.lock_exclusive = 301,
              .lock_shared = 302,
              .no_check = 1024,
              .create_flavor = 604,
              .flavor_allocate = 312};
    case Family::mpich:
      break;
  }
  return {.lock_exclusive = 234,
          .lock_shared = 235,
          .no_check = 1024,
          .create_flavor = 0x66000007,
          .flavor_allocate = 2};
}

}  // namespace ropewalk::mpi
