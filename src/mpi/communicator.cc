#include "ropewalk/communicator.hpp"

#include "mpi/mpi.hpp"

namespace ropewalk {

Communicator Communicator::world() { return Communicator(mpi::comm_world().value); }
int Communicator::rank() const { return mpi::rank({handle_}); }
int Communicator::size() const { return mpi::size({handle_}); }

}  // namespace ropewalk
