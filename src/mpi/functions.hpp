// The table of MPI functions that ropewalk calls, as plain function pointers.
//
// Every handle is passed by value as one word, whatever its C type is. Where handles are ints
// (MPICH) the callee reads the low half only: x86-64 (System V) and AArch64 (AAPCS64) leave the
// upper half of a register that holds an int undefined, and give each stack argument a slot of 8
// bytes whose first four, on a little-endian machine, are the int. An int handle that the callee
// stores through a pointer fills the low half of a word that was zero before. Other architectures
// (RISC-V, POWER) want ints sign-extended, so they are refused here.
#pragma once

#include <bit>
#include <cstdint>

namespace ropewalk::mpi {

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "mpi: handles as words are proved for x86-64 and AArch64 only"
#endif
static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8);

using Word = std::uintptr_t;  // a handle, or the address of a status that may be a sentinel
using Count = std::int64_t;   // MPI_Count and MPI_Aint on every supported machine

using CopyAttribute = int(Word comm, int keyval, void* extra, void* value, void* out, int* flag);
using DeleteAttribute = int(Word comm, int keyval, void* value, void* extra);

// These are the callbacks of a generalised request.
using QueryRequest = int(void* extra, Word status);
using FreeRequest = int(void* extra);
using CancelRequest = int(void* extra, int complete);

// This is the nonblocking form of a collective: it has the same arguments, and the place of its
// request.
template <class Function>
struct NonblockingForm;
template <class... Arguments>
struct NonblockingForm<int (*)(Arguments...)> {
  using type = int (*)(Arguments..., Word* request);
};
template <class Function>
using Nonblocking = typename NonblockingForm<Function>::type;

struct Functions {
  // environment
  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*initialized)(int*) = nullptr;
  int (*finalized)(int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*query_thread)(int*) = nullptr;
  int (*abort)(Word, int) = nullptr;
  int (*error_string)(int, char*, int*) = nullptr;
  int (*get_library_version)(char*, int*) = nullptr;
  double (*wtime)() = nullptr;

  // communicators
  int (*comm_rank)(Word, int*) = nullptr;
  int (*comm_size)(Word, int*) = nullptr;
  int (*comm_dup)(Word, Word*) = nullptr;
  int (*comm_split)(Word, int, int, Word*) = nullptr;
  int (*comm_split_type)(Word, int, int, Word, Word*) = nullptr;
  int (*comm_free)(Word*) = nullptr;
  int (*comm_test_inter)(Word, int*) = nullptr;
  int (*comm_set_errhandler)(Word, Word) = nullptr;
  int (*comm_get_errhandler)(Word, Word*) = nullptr;  // null in the tests' own MPI, as the next
  int (*errhandler_free)(Word*) = nullptr;
  int (*comm_create_keyval)(CopyAttribute*, DeleteAttribute*, int*, void*) = nullptr;
  int (*comm_free_keyval)(int*) = nullptr;
  int (*comm_set_attr)(Word, int, void*) = nullptr;
  int (*comm_get_attr)(Word, int, void*, int*) = nullptr;
  int (*comm_delete_attr)(Word, int) = nullptr;
  int (*comm_set_info)(Word, Word) = nullptr;  // MPI 3, as far as an MPI has it
  int (*info_create)(Word*) = nullptr;
  int (*info_set)(Word, const char*, const char*) = nullptr;
  int (*info_free)(Word*) = nullptr;

  // point to point
  int (*send)(const void*, int, Word, int, int, Word) = nullptr;
  int (*recv)(void*, int, Word, int, int, Word, Word) = nullptr;
  int (*isend)(const void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*irecv)(void*, int, Word, int, int, Word, Word*) = nullptr;
  int (*test)(Word*, int*, Word) = nullptr;
  int (*wait)(Word*, Word) = nullptr;
  int (*testall)(int, Word*, int*, Word) = nullptr;
  int (*waitall)(int, Word*, Word) = nullptr;
  int (*cancel)(Word*) = nullptr;
  int (*iprobe)(int, int, Word, int*, Word) = nullptr;
  int (*grequest_start)(QueryRequest*, FreeRequest*, CancelRequest*, void* extra, Word*) = nullptr;
  int (*grequest_complete)(Word) = nullptr;
  int (*get_elements_x)(Word, Word, Count*) = nullptr;

  // datatypes and operations
  int (*type_size_x)(Word, Count*) = nullptr;
  int (*type_get_extent)(Word, Count*, Count*) = nullptr;
  int (*type_get_true_extent)(Word, Count*, Count*) = nullptr;
  int (*type_contiguous)(int, Word, Word*) = nullptr;
  int (*type_create_struct)(int, const int*, const Count*, const Word*, Word*) = nullptr;
  int (*type_create_resized)(Word, Count, Count, Word*) = nullptr;
  int (*type_commit)(Word*) = nullptr;
  int (*type_free)(Word*) = nullptr;
  int (*type_get_envelope)(Word, int*, int*, int*, int*) = nullptr;
  int (*type_get_contents)(Word, int, int, int, int*, Count*, Word*) = nullptr;
  int (*pack)(const void*, int, Word, void*, int, int*, Word) = nullptr;
  int (*unpack)(const void*, int, int*, void*, int, Word, Word) = nullptr;
  int (*op_commutative)(Word, int*) = nullptr;
  int (*reduce_local)(const void*, void*, int, Word, Word) = nullptr;

  // collectives
  int (*barrier)(Word) = nullptr;
  int (*bcast)(void*, int, Word, int, Word) = nullptr;
  int (*allgather)(const void*, int, Word, void*, int, Word, Word) = nullptr;
  int (*allgatherv)(const void*, int, Word, void*, const int*, const int*, Word, Word) = nullptr;
  int (*gather)(const void*, int, Word, void*, int, Word, int, Word) = nullptr;
  int (*gatherv)(const void*, int, Word, void*, const int*, const int*, Word, int, Word) = nullptr;
  int (*scatter)(const void*, int, Word, void*, int, Word, int, Word) = nullptr;
  int (*scatterv)(const void*, const int*, const int*, Word, void*, int, Word, int, Word) = nullptr;
  int (*alltoall)(const void*, int, Word, void*, int, Word, Word) = nullptr;
  int (*alltoallv)(const void*, const int*, const int*, Word, void*, const int*, const int*, Word,
                   Word) = nullptr;
  int (*reduce)(const void*, void*, int, Word, Word, int, Word) = nullptr;
  int (*allreduce)(const void*, void*, int, Word, Word, Word) = nullptr;
  int (*reduce_scatter)(const void*, void*, const int*, Word, Word, Word) = nullptr;
  int (*reduce_scatter_block)(const void*, void*, int, Word, Word, Word) = nullptr;
  int (*scan)(const void*, void*, int, Word, Word, Word) = nullptr;
  int (*exscan)(const void*, void*, int, Word, Word, Word) = nullptr;

  Nonblocking<decltype(barrier)> ibarrier = nullptr;
  Nonblocking<decltype(bcast)> ibcast = nullptr;
  Nonblocking<decltype(allgather)> iallgather = nullptr;
  Nonblocking<decltype(allgatherv)> iallgatherv = nullptr;
  Nonblocking<decltype(gather)> igather = nullptr;
  Nonblocking<decltype(gatherv)> igatherv = nullptr;
  Nonblocking<decltype(scatter)> iscatter = nullptr;
  Nonblocking<decltype(scatterv)> iscatterv = nullptr;
  Nonblocking<decltype(alltoall)> ialltoall = nullptr;
  Nonblocking<decltype(alltoallv)> ialltoallv = nullptr;
  Nonblocking<decltype(reduce)> ireduce = nullptr;
  Nonblocking<decltype(allreduce)> iallreduce = nullptr;
  Nonblocking<decltype(reduce_scatter)> ireduce_scatter = nullptr;
  Nonblocking<decltype(reduce_scatter_block)> ireduce_scatter_block = nullptr;
  Nonblocking<decltype(scan)> iscan = nullptr;
  Nonblocking<decltype(exscan)> iexscan = nullptr;

  // The same with 64-bit counts, of MPI 4; null where the library is older (Open MPI 4 and 5).
  int (*send_c)(const void*, Count, Word, int, int, Word) = nullptr;
  int (*recv_c)(void*, Count, Word, int, int, Word, Word) = nullptr;
  int (*isend_c)(const void*, Count, Word, int, int, Word, Word*) = nullptr;
  int (*irecv_c)(void*, Count, Word, int, int, Word, Word*) = nullptr;
  int (*type_get_envelope_c)(Word, Count*, Count*, Count*, Count*, int*) = nullptr;
  int (*type_get_contents_c)(Word, Count, Count, Count, Count, int*, Count*, Count*,
                             Word*) = nullptr;
  int (*pack_c)(const void*, Count, Word, void*, Count, Count*, Word) = nullptr;
  int (*unpack_c)(const void*, Count, Count*, void*, Count, Word, Word) = nullptr;
  int (*reduce_local_c)(const void*, void*, Count, Word, Word) = nullptr;
  int (*bcast_c)(void*, Count, Word, int, Word) = nullptr;
  int (*allgather_c)(const void*, Count, Word, void*, Count, Word, Word) = nullptr;
  int (*allgatherv_c)(const void*, Count, Word, void*, const Count*, const Count*, Word,
                      Word) = nullptr;
  int (*gather_c)(const void*, Count, Word, void*, Count, Word, int, Word) = nullptr;
  int (*gatherv_c)(const void*, Count, Word, void*, const Count*, const Count*, Word, int,
                   Word) = nullptr;
  int (*scatter_c)(const void*, Count, Word, void*, Count, Word, int, Word) = nullptr;
  int (*scatterv_c)(const void*, const Count*, const Count*, Word, void*, Count, Word, int,
                    Word) = nullptr;
  int (*alltoall_c)(const void*, Count, Word, void*, Count, Word, Word) = nullptr;
  int (*alltoallv_c)(const void*, const Count*, const Count*, Word, void*, const Count*,
                     const Count*, Word, Word) = nullptr;
  int (*reduce_c)(const void*, void*, Count, Word, Word, int, Word) = nullptr;
  int (*allreduce_c)(const void*, void*, Count, Word, Word, Word) = nullptr;
  int (*reduce_scatter_c)(const void*, void*, const Count*, Word, Word, Word) = nullptr;
  int (*reduce_scatter_block_c)(const void*, void*, Count, Word, Word, Word) = nullptr;
  int (*scan_c)(const void*, void*, Count, Word, Word, Word) = nullptr;
  int (*exscan_c)(const void*, void*, Count, Word, Word, Word) = nullptr;

  Nonblocking<decltype(bcast_c)> ibcast_c = nullptr;
  Nonblocking<decltype(allgather_c)> iallgather_c = nullptr;
  Nonblocking<decltype(allgatherv_c)> iallgatherv_c = nullptr;
  Nonblocking<decltype(gather_c)> igather_c = nullptr;
  Nonblocking<decltype(gatherv_c)> igatherv_c = nullptr;
  Nonblocking<decltype(scatter_c)> iscatter_c = nullptr;
  Nonblocking<decltype(scatterv_c)> iscatterv_c = nullptr;
  Nonblocking<decltype(alltoall_c)> ialltoall_c = nullptr;
  Nonblocking<decltype(alltoallv_c)> ialltoallv_c = nullptr;
  Nonblocking<decltype(reduce_c)> ireduce_c = nullptr;
  Nonblocking<decltype(allreduce_c)> iallreduce_c = nullptr;
  Nonblocking<decltype(reduce_scatter_c)> ireduce_scatter_c = nullptr;
  Nonblocking<decltype(reduce_scatter_block_c)> ireduce_scatter_block_c = nullptr;
  Nonblocking<decltype(scan_c)> iscan_c = nullptr;
  Nonblocking<decltype(exscan_c)> iexscan_c = nullptr;

  int (*file_get_errhandler)(Word, Word*) = nullptr;  // null in an MPI built without MPI-IO

  // Only the tests' MPI for ranks as threads has these; they are null in every real library.
  std::uintptr_t (*thread_identity)() = nullptr;
  void (*adopt_thread_identity)(std::uintptr_t) = nullptr;
};

}  // namespace ropewalk::mpi
