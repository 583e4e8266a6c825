#include "ropewalk/communicator.hpp"

#include <string>

#include "mpi/collectively.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk {

Communicator Communicator::world() { return Communicator(mpi::comm_world().value); }
int Communicator::rank() const { return mpi::rank(mpi::usable({handle_})); }
int Communicator::size() const { return mpi::size(mpi::usable({handle_})); }

void collectively(Communicator communicator, const Work& work) {
  mpi::collectively({communicator.handle()}, work);
}

SplitCommunicator::SplitCommunicator(Communicator parent, std::optional<int> color, int key)
    : split_(parent) {
  mpi::collectively({parent.handle()}, [&] {
    if (color.value_or(0) >= 0) return;
    throw Error(ErrorCode::argument,
                "color: " + std::to_string(*color) + ", expected 0 or more, or none");
  });
  mpi::Comm made;
  if (!mpi::try_split({parent.handle()}, color.value_or(mpi::undefined()), key, made)) {
    throw Error(ErrorCode::mpi, "split: MPI has no communicators left; free some");
  }
  member_ = made != mpi::comm_null();
  split_ = Communicator(made.value);
}

// After MPI_Finalize there is nothing left to free.
SplitCommunicator::~SplitCommunicator() {
  if (!member_ || mpi::finalized()) return;
  try {
    mpi::Comm own{split_.handle()};
    mpi::free(own);
  } catch (const Error&) {  // an MPI that has failed keeps it
  }
}

}  // namespace ropewalk
