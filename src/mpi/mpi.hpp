// The MPI functions ropewalk calls, on whatever MPI the process has loaded.
//
// This room alone knows MPI's binary interfaces. Nothing here includes mpi.h: `library.hpp` finds
// the loaded library and fills a table of function pointers; `abi.hpp` holds the facts in which the
// three binary interfaces (MPICH family, Open MPI, MPI-5 standard) differ. Every call goes to
// PMPI_*.
//
// A handle is one machine word. MPICH's are ints: they travel in the low half of the word and
// compare by it. All functions throw Error(ErrorCode::mpi, "MPI_X: <MPI's own error string>")
// unless they are marked noexcept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace ropewalk::mpi {

enum class Family { mpich, openmpi, standard };

// The types are distinct, so that a datatype is never passed for a communicator.
template <class Tag>
struct Handle {
  std::uintptr_t value = 0;
  friend bool operator==(Handle, Handle) = default;
};
using Comm = Handle<struct CommTag>;
using Datatype = Handle<struct DatatypeTag>;
using Op = Handle<struct OpTag>;
using Request = Handle<struct RequestTag>;
using Group = Handle<struct GroupTag>;
using Info = Handle<struct InfoTag>;

struct Status {
  int source = 0;
  int tag = 0;
  int error = 0;
  std::int64_t bytes = 0;  // received, counted in bytes; -1 when it was not asked for
};

enum class ThreadLevel : int { single = 0, funneled = 1, serialized = 2, multiple = 3 };

// ---- the library itself -------------------------------------------------------------------------
bool loaded() noexcept;         // an MPI library is in this process (or could be opened)
Family family();                // throws Error(mpi) with a remedy where none is loaded
std::string library_version();  // first line of MPI_Get_library_version
// Returns false for ranks without an MPI: data must go by ropewalk's own collectives then.
bool has_collectives();
bool initialized();
bool finalized();
ThreadLevel init(ThreadLevel wanted);  // MPI_Init_thread; returns what is provided
ThreadLevel thread_level();            // MPI_Query_thread
void finalize();
// Throws Error(mpi) unless MPI runs, between MPI_Init and MPI_Finalize: MPI itself would end the
// program. The remedy says what to do there.
void require_running(const char* remedy);
[[noreturn]] void abort(int code) noexcept;
double wtime() noexcept;

// ---- predefined handles and sentinels (from the ABI table) --------------------------------------
Comm comm_world();
Comm comm_self();
Comm comm_null();
Request request_null();
Datatype byte_type();  // MPI_BYTE
Op null_op();
int any_source();
int any_tag();
int proc_null();
int undefined();
void* in_place() noexcept;  // MPI_IN_PLACE

// ---- communicators ------------------------------------------------------------------------------
// Returns `comm`; throws Error where MPI is not there for it, or it is MPI_COMM_NULL. Communicators
// of a session need no MPI_Init.
Comm usable(Comm comm);
int rank(Comm);
int size(Comm);
bool is_inter(Comm);  // an intercommunicator: two groups of ranks
Comm dup(Comm);
Comm split(Comm, int color, int key);  // color undefined() gives comm_null()
// Collective, with the same answer on all ranks. Returns false where MPI has no communicator left,
// whatever the program's error handler would make of that. `made` may be comm_null(), as above.
bool try_split(Comm, int color, int key, Comm& made);
Comm split_shared(Comm);   // MPI_COMM_TYPE_SHARED
void free(Comm&);          // collective; sets it to comm_null()
void return_errors(Comm);  // MPI_ERRORS_RETURN on this communicator

// ---- point to point; byte counts up to 2^63, chunked or MPI_*_c as the library allows
void send(const void* data, std::size_t bytes, int destination, int tag, Comm);
Status receive(void* data, std::size_t bytes, int source, int tag, Comm);
Request isend(const void* data, std::size_t bytes, int destination, int tag, Comm);
Request ireceive(void* data, std::size_t bytes, int source, int tag, Comm);
bool test(Request&);  // sets it to request_null() when complete
void wait(Request&);
bool test_all(std::span<Request>);
// Does the same by a call for each request. An error then goes to the handler of the request's own
// communicator; MPICH takes that of MPI_COMM_SELF for MPI_Testall, which ends the program.
bool test_each(std::span<Request>);
void wait_all(std::span<Request>);
void cancel(Request&) noexcept;  // cancels a receive and waits for it
// Does the same where ranks may be dead: a receive that is half done cannot be cancelled, and will
// never be complete. Returns false where it is not over in time: MPI keeps it, and its buffer must
// stay.
bool withdraw(Request&, std::int64_t patience_ns = 500'000'000) noexcept;
bool receives_left() noexcept;           // true once withdraw() has failed, or anything was left to
                                         // MPI (waiter.hpp), in this process
bool iprobe(int source, int tag, Comm);  // to progress MPI, see progress.hpp
bool iprobe(int source, int tag, Comm, Status& found);

// ---- collectives ropewalk itself needs (bytes, or ints and longs) -------------------------------
void barrier(Comm);
void broadcast(void* data, std::size_t bytes, int root, Comm);
void all_gather(const void* send, void* receive, std::size_t bytes_each, Comm);
enum class Combine { sum, min, max };
void all_reduce(std::span<std::int64_t> values, Combine, Comm);  // in place
void all_reduce(std::span<double> values, Combine, Comm);

// ---- ranks as threads, in the tests; nothing on a real MPI

// A thread that a rank starts must take on that rank before it calls MPI: the parent asks for one
// identity for each thread, and the thread adopts it first of all.
std::uintptr_t thread_identity() noexcept;
void adopt_thread_identity(std::uintptr_t) noexcept;

// Turns a communicator given by a C or C++ caller as its MPI_Comm (int or pointer) into one word.
template <class MpiComm>
Comm comm_of(MpiComm comm) noexcept {
  if constexpr (std::is_pointer_v<MpiComm>) {
    return {reinterpret_cast<std::uintptr_t>(comm)};
  } else {
    return {static_cast<std::uintptr_t>(static_cast<std::uint32_t>(comm))};
  }
}

}  // namespace ropewalk::mpi
