// This file intercepts calls for memory that MPI gives out, the end of a communicator, and the end
// of MPI.
#include <cstring>

#include "collectives/state.hpp"
#include "communicators.hpp"
#include "datatypes.hpp"
#include "functions.hpp"
#include "messages.hpp"
#include "mpi/library.hpp"
#include "ropewalk/memory.hpp"
#include "start.hpp"

namespace ropewalk::preload::serve {
namespace {

Word handle_at(const void* place) {
  Word handle = 0;
  if (place != nullptr) std::memcpy(&handle, place, handle_bits == ~Word{0} ? sizeof handle : 4);
  return handle;
}

}  // namespace

int Comm_free(void* comm) {
  const Word handle = handle_at(comm);
  const BeingFreed marked(handle);
  messages::begin_free(handle);
  const int code = next.Comm_free(comm);
  messages::end_free(handle);
  return code;
}

// Unlike MPI_Comm_free it waits for what is under way.
int Comm_disconnect(void* comm) {
  const Word handle = handle_at(comm);
  messages::finish_freed(handle);
  const BeingFreed marked(handle);
  messages::begin_free(handle);
  CommunicatorEntry* entry = communicators.find(handle);
  if (entry != nullptr && entry->team != nullptr) entry->team->state().worker.drain();
  const int code = next.Comm_disconnect(comm);
  messages::end_free(handle);
  return code;
}

// What is asked for with hints, or too large for the arena, is MPI's to give.
int Alloc_mem(Count bytes, Word info, void* result) {
  try {
    if (bytes > 0 && clean(info) == mpi::library().abi.info_null) {
      *static_cast<void**>(result) = Arena::process().allocate(static_cast<std::size_t>(bytes));
      return 0;
    }
  } catch (...) {  // no arena, or no room in it
  }
  return next.Alloc_mem(bytes, info, result);
}

int Free_mem(void* memory) {
  try {
    if (memory != nullptr && Arena::process().contains(memory)) {
      Arena::process().deallocate(memory);
      return 0;
    }
  } catch (...) {  // no arena
  }
  return next.Free_mem(memory);
}

int Finalize() {
  messages::begin_finalize();
  // The program has waited for its requests; their threads may still be on their way out of MPI,
  // and delete attributes of MPI_COMM_SELF.
  collectives::wait_for_workers();
  // Callbacks of MPI_COMM_SELF may call what other ranks call before MPI_Finalize.
  if (!messages::go_on()) end_serving();
  return next.Finalize();
}

}  // namespace ropewalk::preload::serve
