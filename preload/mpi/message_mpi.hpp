// This file has the functions of MPI that messages need beside those that the drop-in takes. It
// also reads the program's arrays of requests and statuses, whatever their layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "functions.hpp"
#include "mpi/abi.hpp"
#include "mpi/library.hpp"

namespace ropewalk::preload::messages {

struct MessageFunctions {
  int (*isend)(const void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*issend)(const void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*irecv)(void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*send)(const void*, int, Word, int, int, Word) = nullptr;
  int (*send_init)(const void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*sendrecv)(const void*, int, Word, int, int, void*, int, Word, int, int, Word,
                  void*) = nullptr;
  int (*improbe)(int, int, Word, int*, Word*, void*) = nullptr;
  int (*mrecv)(void*, int, Word, Word*, void*) = nullptr;
  int (*imrecv)(void*, int, Word, Word*, Word*) = nullptr;
  int (*test)(Word*, int*, void*) = nullptr;
  int (*wait)(Word*, void*) = nullptr;
  int (*cancel)(Word*) = nullptr;
  int (*request_free)(Word*) = nullptr;
  int (*request_get_status)(Word, int*, void*) = nullptr;
  int (*get_count)(const void*, Word, int*) = nullptr;
  int (*get_elements_x)(const void*, Word, Count*) = nullptr;
  int (*test_cancelled)(const void*, int*) = nullptr;
  int (*status_set_elements_x)(void*, Word, Count) = nullptr;
  int (*status_set_cancelled)(void*, int) = nullptr;
  int (*comm_call_errhandler)(Word, int) = nullptr;
  int (*comm_get_errhandler)(Word, Word*) = nullptr;
  int (*comm_set_errhandler)(Word, Word) = nullptr;
  int (*errhandler_free)(Word*) = nullptr;
  int (*info_get_valuelen)(Word, const char*, int* length, int* has) = nullptr;
  int (*info_dup)(Word, Word*) = nullptr;
  int (*info_delete)(Word, const char*) = nullptr;
  int (*info_free)(Word*) = nullptr;
};
// Looks up all of the functions. Returns false where MPI lacks one.
bool load_message_functions() noexcept;
// load_message_functions() fills these in.
extern MessageFunctions real;

inline const mpi::Abi& abi() noexcept { return mpi::library().abi; }
inline bool is_ignored(const void* status) noexcept {
  const auto word = mpi::address(status);
  return word == abi().status_ignore || word == abi().statuses_ignore;
}

// A ProgramRequests reads and writes an array of requests of the program.
class ProgramRequests {
 public:
  explicit ProgramRequests(void* first) noexcept : first_(static_cast<std::byte*>(first)) {}
  Word get(std::size_t at) const noexcept {
    Word handle = 0;
    std::memcpy(&handle, place(at), bytes());
    return handle;
  }
  void set(std::size_t at, Word handle) const noexcept { std::memcpy(place(at), &handle, bytes()); }
  std::byte* place(std::size_t at) const noexcept { return first_ + at * bytes(); }

 private:
  static std::size_t bytes() noexcept { return abi().int_handles ? 4 : sizeof(Word); }
  std::byte* first_;
};

inline std::byte* status_at(void* statuses, std::size_t at) noexcept {
  return static_cast<std::byte*>(statuses) + at * abi().status_bytes;
}
void set_error(void* status, int code) noexcept;
int error_of(const void* status) noexcept;
// Copies a status, but for its error, which is the program's.
void copy_status(const void* from, void* status) noexcept;

// Hands a code of MPI's to the communicator's error handler, and returns the code.
int raise_code(Word comm, int code) noexcept;
// These return MPI_ERR_IN_STATUS and MPI_ERR_TRUNCATE of the loaded MPI.
int error_in_status() noexcept;
int error_truncate() noexcept;

}  // namespace ropewalk::preload::messages
