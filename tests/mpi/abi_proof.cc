// Proves the facts of src/mpi/abi.cc against a real mpi.h: it is compiled against that header,
// linked to its library, and run without mpiexec. It exits with 1 and names each entry that
// differs. The C++ bindings of MPI 2, which some headers still carry, would need another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include ROPEWALK_PROOF_HEADER

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "mpi/abi.hpp"
#include "mpi/library.hpp"
#include "mpi/window_abi.hpp"

namespace {

namespace rw = ropewalk::mpi;

#if defined(OPEN_MPI)
constexpr rw::Family expected = rw::Family::openmpi;
#else
constexpr rw::Family expected =
    std::is_pointer_v<MPI_Comm> ? rw::Family::standard : rw::Family::mpich;
#endif

int differences = 0;

void expect(const char* what, std::uintptr_t ours, std::uintptr_t theirs) {
  if (ours == theirs) return;
  ++differences;
  std::printf("%s: the table has %#zx, mpi.h has %#zx\n", what, ours, theirs);
}

template <class Handle>
std::uintptr_t word(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

std::uintptr_t number(long value) { return static_cast<std::uintptr_t>(value); }

struct Named {
  const char* name;
  std::uintptr_t handle;
};

const std::vector<Named>& datatypes() {
  static const std::vector<Named> all = {
      {"MPI_BYTE", word(MPI_BYTE)},
      {"MPI_PACKED", word(MPI_PACKED)},
      {"MPI_CHAR", word(MPI_CHAR)},
      {"MPI_SIGNED_CHAR", word(MPI_SIGNED_CHAR)},
      {"MPI_UNSIGNED_CHAR", word(MPI_UNSIGNED_CHAR)},
      {"MPI_SHORT", word(MPI_SHORT)},
      {"MPI_UNSIGNED_SHORT", word(MPI_UNSIGNED_SHORT)},
      {"MPI_INT", word(MPI_INT)},
      {"MPI_UNSIGNED", word(MPI_UNSIGNED)},
      {"MPI_LONG", word(MPI_LONG)},
      {"MPI_UNSIGNED_LONG", word(MPI_UNSIGNED_LONG)},
      {"MPI_LONG_LONG", word(MPI_LONG_LONG)},
      {"MPI_UNSIGNED_LONG_LONG", word(MPI_UNSIGNED_LONG_LONG)},
      {"MPI_FLOAT", word(MPI_FLOAT)},
      {"MPI_DOUBLE", word(MPI_DOUBLE)},
      {"MPI_LONG_DOUBLE", word(MPI_LONG_DOUBLE)},
      {"MPI_WCHAR", word(MPI_WCHAR)},
      {"MPI_C_BOOL", word(MPI_C_BOOL)},
      {"MPI_INT8_T", word(MPI_INT8_T)},
      {"MPI_INT16_T", word(MPI_INT16_T)},
      {"MPI_INT32_T", word(MPI_INT32_T)},
      {"MPI_INT64_T", word(MPI_INT64_T)},
      {"MPI_UINT8_T", word(MPI_UINT8_T)},
      {"MPI_UINT16_T", word(MPI_UINT16_T)},
      {"MPI_UINT32_T", word(MPI_UINT32_T)},
      {"MPI_UINT64_T", word(MPI_UINT64_T)},
      {"MPI_AINT", word(MPI_AINT)},
      {"MPI_COUNT", word(MPI_COUNT)},
      {"MPI_OFFSET", word(MPI_OFFSET)},
      {"MPI_C_FLOAT_COMPLEX", word(MPI_C_FLOAT_COMPLEX)},
      {"MPI_C_DOUBLE_COMPLEX", word(MPI_C_DOUBLE_COMPLEX)},
      {"MPI_C_LONG_DOUBLE_COMPLEX", word(MPI_C_LONG_DOUBLE_COMPLEX)},
      {"MPI_CXX_BOOL", word(MPI_CXX_BOOL)},
      {"MPI_CXX_FLOAT_COMPLEX", word(MPI_CXX_FLOAT_COMPLEX)},
      {"MPI_CXX_DOUBLE_COMPLEX", word(MPI_CXX_DOUBLE_COMPLEX)},
      {"MPI_CXX_LONG_DOUBLE_COMPLEX", word(MPI_CXX_LONG_DOUBLE_COMPLEX)},
      {"MPI_FLOAT_INT", word(MPI_FLOAT_INT)},
      {"MPI_DOUBLE_INT", word(MPI_DOUBLE_INT)},
      {"MPI_LONG_INT", word(MPI_LONG_INT)},
      {"MPI_2INT", word(MPI_2INT)},
      {"MPI_SHORT_INT", word(MPI_SHORT_INT)},
      {"MPI_LONG_DOUBLE_INT", word(MPI_LONG_DOUBLE_INT)},
#ifdef MPI_CHARACTER
      {"MPI_CHARACTER", word(MPI_CHARACTER)},
#endif
#ifdef MPI_LOGICAL
      {"MPI_LOGICAL", word(MPI_LOGICAL)},
#endif
#ifdef MPI_INTEGER
      {"MPI_INTEGER", word(MPI_INTEGER)},
#endif
#ifdef MPI_REAL
      {"MPI_REAL", word(MPI_REAL)},
#endif
#ifdef MPI_DOUBLE_PRECISION
      {"MPI_DOUBLE_PRECISION", word(MPI_DOUBLE_PRECISION)},
#endif
#ifdef MPI_COMPLEX
      {"MPI_COMPLEX", word(MPI_COMPLEX)},
#endif
#ifdef MPI_DOUBLE_COMPLEX
      {"MPI_DOUBLE_COMPLEX", word(MPI_DOUBLE_COMPLEX)},
#endif
#ifdef MPI_2INTEGER
      {"MPI_2INTEGER", word(MPI_2INTEGER)},
#endif
#ifdef MPI_2REAL
      {"MPI_2REAL", word(MPI_2REAL)},
#endif
#ifdef MPI_2DOUBLE_PRECISION
      {"MPI_2DOUBLE_PRECISION", word(MPI_2DOUBLE_PRECISION)},
#endif
#ifdef MPI_INTEGER1
      {"MPI_INTEGER1", word(MPI_INTEGER1)},
#endif
#ifdef MPI_INTEGER2
      {"MPI_INTEGER2", word(MPI_INTEGER2)},
#endif
#ifdef MPI_INTEGER4
      {"MPI_INTEGER4", word(MPI_INTEGER4)},
#endif
#ifdef MPI_INTEGER8
      {"MPI_INTEGER8", word(MPI_INTEGER8)},
#endif
#ifdef MPI_REAL4
      {"MPI_REAL4", word(MPI_REAL4)},
#endif
#ifdef MPI_REAL8
      {"MPI_REAL8", word(MPI_REAL8)},
#endif
#ifdef MPI_REAL16
      {"MPI_REAL16", word(MPI_REAL16)},
#endif
#ifdef MPI_COMPLEX8
      {"MPI_COMPLEX8", word(MPI_COMPLEX8)},
#endif
#ifdef MPI_COMPLEX16
      {"MPI_COMPLEX16", word(MPI_COMPLEX16)},
#endif
#ifdef MPI_COMPLEX32
      {"MPI_COMPLEX32", word(MPI_COMPLEX32)},
#endif
#ifdef MPI_INTEGER16
      {"MPI_INTEGER16", word(MPI_INTEGER16)},
#endif
#ifdef MPI_REAL2
      {"MPI_REAL2", word(MPI_REAL2)},
#endif
#ifdef MPI_COMPLEX4
      {"MPI_COMPLEX4", word(MPI_COMPLEX4)},
#endif
#ifdef MPI_LOGICAL1
      {"MPI_LOGICAL1", word(MPI_LOGICAL1)},
#endif
#ifdef MPI_LOGICAL2
      {"MPI_LOGICAL2", word(MPI_LOGICAL2)},
#endif
#ifdef MPI_LOGICAL4
      {"MPI_LOGICAL4", word(MPI_LOGICAL4)},
#endif
#ifdef MPI_LOGICAL8
      {"MPI_LOGICAL8", word(MPI_LOGICAL8)},
#endif
#ifdef MPI_LOGICAL16
      {"MPI_LOGICAL16", word(MPI_LOGICAL16)},
#endif
  };
  return all;
}

const std::vector<Named>& operations() {
  static const std::vector<Named> all = {
      {"MPI_MAX", word(MPI_MAX)},         {"MPI_MIN", word(MPI_MIN)},
      {"MPI_SUM", word(MPI_SUM)},         {"MPI_PROD", word(MPI_PROD)},
      {"MPI_LAND", word(MPI_LAND)},       {"MPI_BAND", word(MPI_BAND)},
      {"MPI_LOR", word(MPI_LOR)},         {"MPI_BOR", word(MPI_BOR)},
      {"MPI_LXOR", word(MPI_LXOR)},       {"MPI_BXOR", word(MPI_BXOR)},
      {"MPI_MAXLOC", word(MPI_MAXLOC)},   {"MPI_MINLOC", word(MPI_MINLOC)},
      {"MPI_REPLACE", word(MPI_REPLACE)}, {"MPI_NO_OP", word(MPI_NO_OP)},
  };
  return all;
}

const Named* find(const std::vector<Named>& all, const char* name) {
  for (const Named& named : all) {
    if (std::strcmp(named.name, name) == 0) return &named;
  }
  return nullptr;
}

void prove_datatypes(const rw::Abi& abi) {
  for (std::size_t i = 0; i < rw::datatype_names; ++i) {
    const auto name = static_cast<rw::DatatypeName>(i);
    const Named* theirs = find(datatypes(), rw::name(name));
    const bool fortran = name >= rw::DatatypeName::character;
    const bool absent = theirs == nullptr || theirs->handle == word(MPI_DATATYPE_NULL);
    if (absent && fortran) continue;  // not every MPI has every size of Fortran's types
    expect(rw::name(name), abi.datatype(name), theirs == nullptr ? 0 : theirs->handle);
  }
}

void prove_operations(const rw::Abi& abi) {
  for (std::size_t i = 0; i < rw::op_names; ++i) {
    const auto name = static_cast<rw::OpName>(i);
    const Named* theirs = find(operations(), rw::name(name));
    expect(rw::name(name), abi.op(name), theirs == nullptr ? 0 : theirs->handle);
  }
}

void prove_combiners(const rw::Abi& abi) {
  const int theirs[] = {
      MPI_COMBINER_NAMED,    MPI_COMBINER_DUP,           MPI_COMBINER_CONTIGUOUS,
      MPI_COMBINER_VECTOR,   MPI_COMBINER_HVECTOR,       MPI_COMBINER_INDEXED,
      MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
      MPI_COMBINER_STRUCT,   MPI_COMBINER_SUBARRAY,      MPI_COMBINER_DARRAY,
      MPI_COMBINER_F90_REAL, MPI_COMBINER_F90_COMPLEX,   MPI_COMBINER_F90_INTEGER,
      MPI_COMBINER_RESIZED};
  static_assert(std::size(theirs) == rw::combiners);
  for (std::size_t i = 0; i < rw::combiners; ++i) {
    expect(("combiner " + std::to_string(i)).c_str(), number(abi.combiner_codes[i]),
           number(theirs[i]));
  }
}

void prove_handles(const rw::Abi& abi) {
  expect("size of a handle", abi.int_handles ? sizeof(int) : sizeof(void*), sizeof(MPI_Comm));
  expect("size of a request", abi.int_handles ? sizeof(int) : sizeof(void*), sizeof(MPI_Request));
  expect("MPI_COMM_WORLD", abi.comm_world, word(MPI_COMM_WORLD));
  expect("MPI_COMM_SELF", abi.comm_self, word(MPI_COMM_SELF));
  expect("MPI_COMM_NULL", abi.comm_null, word(MPI_COMM_NULL));
  expect("MPI_REQUEST_NULL", abi.request_null, word(MPI_REQUEST_NULL));
  expect("MPI_OP_NULL", abi.op_null, word(MPI_OP_NULL));
  expect("MPI_INFO_NULL", abi.info_null, word(MPI_INFO_NULL));
  expect("MPI_GROUP_NULL", abi.group_null, word(MPI_GROUP_NULL));
  expect("MPI_DATATYPE_NULL", abi.datatype_null, word(MPI_DATATYPE_NULL));
  expect("MPI_FILE_NULL", abi.file_null, word(MPI_FILE_NULL));
  // The standard ABI's is asked for at run time, see return_errors.
  if (expected != rw::Family::standard) {
    expect("MPI_ERRORS_RETURN", abi.errors_return, word(MPI_ERRORS_RETURN));
  }
}

void prove_constants(const rw::Abi& abi) {
  expect("MPI_ANY_SOURCE", number(abi.any_source), number(MPI_ANY_SOURCE));
  expect("MPI_ANY_TAG", number(abi.any_tag), number(MPI_ANY_TAG));
  expect("MPI_PROC_NULL", number(abi.proc_null), number(MPI_PROC_NULL));
  expect("MPI_ROOT", number(abi.root), number(MPI_ROOT));
  expect("MPI_UNDEFINED", number(abi.undefined), number(MPI_UNDEFINED));
  expect("MPI_KEYVAL_INVALID", number(abi.keyval_invalid), number(MPI_KEYVAL_INVALID));
  expect("MPI_COMM_TYPE_SHARED", number(abi.comm_type_shared), number(MPI_COMM_TYPE_SHARED));
  expect("MPI_ORDER_C", number(abi.order_c), number(MPI_ORDER_C));
  expect("MPI_DISTRIBUTE_BLOCK", number(abi.distribute_block), number(MPI_DISTRIBUTE_BLOCK));
  expect("MPI_DISTRIBUTE_NONE", number(abi.distribute_none), number(MPI_DISTRIBUTE_NONE));
  expect("MPI_DISTRIBUTE_DFLT_DARG", number(abi.distribute_default),
         number(MPI_DISTRIBUTE_DFLT_DARG));
  expect("MPI_GRAPH", number(abi.graph), number(MPI_GRAPH));
  expect("MPI_CART", number(abi.cartesian), number(MPI_CART));
  expect("MPI_DIST_GRAPH", number(abi.dist_graph), number(MPI_DIST_GRAPH));
  expect("MPI_TAG_UB", number(abi.tag_upper_bound), number(MPI_TAG_UB));
  expect("MPI_THREAD_SINGLE", number(abi.thread_levels[0]), number(MPI_THREAD_SINGLE));
  expect("MPI_THREAD_FUNNELED", number(abi.thread_levels[1]), number(MPI_THREAD_FUNNELED));
  expect("MPI_THREAD_SERIALIZED", number(abi.thread_levels[2]), number(MPI_THREAD_SERIALIZED));
  expect("MPI_THREAD_MULTIPLE", number(abi.thread_levels[3]), number(MPI_THREAD_MULTIPLE));
  expect("MPI_IN_PLACE", abi.in_place, word(MPI_IN_PLACE));
  expect("MPI_STATUS_IGNORE", abi.status_ignore, word(MPI_STATUS_IGNORE));
  expect("MPI_STATUSES_IGNORE", abi.statuses_ignore, word(MPI_STATUSES_IGNORE));
  expect("MPI_SUCCESS", 0, MPI_SUCCESS);
}

void prove_windows() {
  const rw::WindowAbi abi = rw::window_abi_of(expected);
  expect("MPI_LOCK_EXCLUSIVE", number(abi.lock_exclusive), number(MPI_LOCK_EXCLUSIVE));
  expect("MPI_LOCK_SHARED", number(abi.lock_shared), number(MPI_LOCK_SHARED));
  expect("MPI_MODE_NOCHECK", number(abi.no_check), number(MPI_MODE_NOCHECK));
  expect("MPI_WIN_CREATE_FLAVOR", number(abi.create_flavor), number(MPI_WIN_CREATE_FLAVOR));
  expect("MPI_WIN_FLAVOR_ALLOCATE", number(abi.flavor_allocate), number(MPI_WIN_FLAVOR_ALLOCATE));
}

void prove_layouts(const rw::Abi& abi) {
  expect("sizeof(MPI_Status)", abi.status_bytes, sizeof(MPI_Status));
  expect("MPI_SOURCE", abi.status_source, offsetof(MPI_Status, MPI_SOURCE));
  expect("MPI_TAG", abi.status_tag, offsetof(MPI_Status, MPI_TAG));
  expect("MPI_ERROR", abi.status_error, offsetof(MPI_Status, MPI_ERROR));
  expect("room for MPI_Status", 1, sizeof(MPI_Status) <= sizeof(rw::RawStatus));
  expect("sizeof(MPI_Count)", sizeof(rw::Count), sizeof(MPI_Count));
  expect("sizeof(MPI_Aint)", sizeof(rw::Count), sizeof(MPI_Aint));
}

// ---- signatures ---------------------------------------------------------------------------------

// One parameter: a handle of theirs is a word of ours, a pointer is a pointer or a word (a status
// that may be a sentinel), an integer is one of the same width.
template <class Ours, class Theirs>
constexpr bool same_parameter() {
  if constexpr (std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> || std::is_same_v<Ours, rw::Word>;
  } else if constexpr (std::is_same_v<Ours, rw::Word>) {
    return std::is_same_v<Theirs, MPI_Comm>;  // every handle is an int where this one is
  } else {
    return std::is_integral_v<Ours> && std::is_integral_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}

template <class R, class... Ours, class S, class... Theirs>
void prove(const char* name, R (*)(Ours...), S (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    expect(name, 1, std::is_same_v<R, S> && (same_parameter<Ours, Theirs>() && ...));
  } else {
    expect(name, sizeof...(Ours), sizeof...(Theirs));
  }
}

void prove_functions() {
  const rw::Functions& call = rw::library().call;
  prove("PMPI_Init_thread", call.init_thread, &PMPI_Init_thread);
  prove("PMPI_Initialized", call.initialized, &PMPI_Initialized);
  prove("PMPI_Finalized", call.finalized, &PMPI_Finalized);
  prove("PMPI_Finalize", call.finalize, &PMPI_Finalize);
  prove("PMPI_Query_thread", call.query_thread, &PMPI_Query_thread);
  prove("PMPI_Abort", call.abort, &PMPI_Abort);
  prove("PMPI_Error_string", call.error_string, &PMPI_Error_string);
  prove("PMPI_Get_library_version", call.get_library_version, &PMPI_Get_library_version);
  prove("PMPI_Wtime", call.wtime, &PMPI_Wtime);
  prove("PMPI_Comm_rank", call.comm_rank, &PMPI_Comm_rank);
  prove("PMPI_Comm_size", call.comm_size, &PMPI_Comm_size);
  prove("PMPI_Comm_dup", call.comm_dup, &PMPI_Comm_dup);
  prove("PMPI_Comm_split", call.comm_split, &PMPI_Comm_split);
  prove("PMPI_Comm_split_type", call.comm_split_type, &PMPI_Comm_split_type);
  prove("PMPI_Comm_free", call.comm_free, &PMPI_Comm_free);
  prove("PMPI_Comm_test_inter", call.comm_test_inter, &PMPI_Comm_test_inter);
  prove("PMPI_Comm_set_errhandler", call.comm_set_errhandler, &PMPI_Comm_set_errhandler);
  prove("PMPI_Comm_get_errhandler", call.comm_get_errhandler, &PMPI_Comm_get_errhandler);
  prove("PMPI_Errhandler_free", call.errhandler_free, &PMPI_Errhandler_free);
  prove("PMPI_Comm_create_keyval", call.comm_create_keyval, &PMPI_Comm_create_keyval);
  prove("PMPI_Comm_free_keyval", call.comm_free_keyval, &PMPI_Comm_free_keyval);
  prove("PMPI_Comm_set_attr", call.comm_set_attr, &PMPI_Comm_set_attr);
  prove("PMPI_Comm_get_attr", call.comm_get_attr, &PMPI_Comm_get_attr);
  prove("PMPI_Comm_delete_attr", call.comm_delete_attr, &PMPI_Comm_delete_attr);
  prove("PMPI_File_get_errhandler", call.file_get_errhandler, &PMPI_File_get_errhandler);
  prove("PMPI_Send", call.send, &PMPI_Send);
  prove("PMPI_Recv", call.recv, &PMPI_Recv);
  prove("PMPI_Isend", call.isend, &PMPI_Isend);
  prove("PMPI_Irecv", call.irecv, &PMPI_Irecv);
  prove("PMPI_Test", call.test, &PMPI_Test);
  prove("PMPI_Wait", call.wait, &PMPI_Wait);
  prove("PMPI_Testall", call.testall, &PMPI_Testall);
  prove("PMPI_Waitall", call.waitall, &PMPI_Waitall);
  prove("PMPI_Cancel", call.cancel, &PMPI_Cancel);
  prove("PMPI_Iprobe", call.iprobe, &PMPI_Iprobe);
  prove("PMPI_Grequest_start", call.grequest_start, &PMPI_Grequest_start);
  prove("PMPI_Grequest_complete", call.grequest_complete, &PMPI_Grequest_complete);
  prove("PMPI_Get_elements_x", call.get_elements_x, &PMPI_Get_elements_x);
  prove("PMPI_Type_size_x", call.type_size_x, &PMPI_Type_size_x);
  prove("PMPI_Type_get_extent", call.type_get_extent, &PMPI_Type_get_extent);
  prove("PMPI_Type_get_true_extent", call.type_get_true_extent, &PMPI_Type_get_true_extent);
  prove("PMPI_Type_contiguous", call.type_contiguous, &PMPI_Type_contiguous);
  prove("PMPI_Type_create_struct", call.type_create_struct, &PMPI_Type_create_struct);
  prove("PMPI_Type_create_resized", call.type_create_resized, &PMPI_Type_create_resized);
  prove("PMPI_Type_commit", call.type_commit, &PMPI_Type_commit);
  prove("PMPI_Type_free", call.type_free, &PMPI_Type_free);
  prove("PMPI_Type_get_envelope", call.type_get_envelope, &PMPI_Type_get_envelope);
  prove("PMPI_Type_get_contents", call.type_get_contents, &PMPI_Type_get_contents);
  prove("PMPI_Pack", call.pack, &PMPI_Pack);
  prove("PMPI_Unpack", call.unpack, &PMPI_Unpack);
  prove("PMPI_Op_commutative", call.op_commutative, &PMPI_Op_commutative);
  prove("PMPI_Reduce_local", call.reduce_local, &PMPI_Reduce_local);
  prove("PMPI_Barrier", call.barrier, &PMPI_Barrier);
  prove("PMPI_Bcast", call.bcast, &PMPI_Bcast);
  prove("PMPI_Allgather", call.allgather, &PMPI_Allgather);
  prove("PMPI_Allgatherv", call.allgatherv, &PMPI_Allgatherv);
  prove("PMPI_Gather", call.gather, &PMPI_Gather);
  prove("PMPI_Gatherv", call.gatherv, &PMPI_Gatherv);
  prove("PMPI_Scatter", call.scatter, &PMPI_Scatter);
  prove("PMPI_Scatterv", call.scatterv, &PMPI_Scatterv);
  prove("PMPI_Alltoall", call.alltoall, &PMPI_Alltoall);
  prove("PMPI_Alltoallv", call.alltoallv, &PMPI_Alltoallv);
  prove("PMPI_Reduce", call.reduce, &PMPI_Reduce);
  prove("PMPI_Allreduce", call.allreduce, &PMPI_Allreduce);
  prove("PMPI_Reduce_scatter", call.reduce_scatter, &PMPI_Reduce_scatter);
  prove("PMPI_Reduce_scatter_block", call.reduce_scatter_block, &PMPI_Reduce_scatter_block);
  prove("PMPI_Scan", call.scan, &PMPI_Scan);
  prove("PMPI_Exscan", call.exscan, &PMPI_Exscan);
}

void prove_large_counts() {
#if MPI_VERSION >= 4
  const rw::Functions& call = rw::library().call;
  prove("PMPI_Send_c", call.send_c, &PMPI_Send_c);
  prove("PMPI_Recv_c", call.recv_c, &PMPI_Recv_c);
  prove("PMPI_Isend_c", call.isend_c, &PMPI_Isend_c);
  prove("PMPI_Irecv_c", call.irecv_c, &PMPI_Irecv_c);
  prove("PMPI_Type_get_envelope_c", call.type_get_envelope_c, &PMPI_Type_get_envelope_c);
  prove("PMPI_Type_get_contents_c", call.type_get_contents_c, &PMPI_Type_get_contents_c);
  prove("PMPI_Pack_c", call.pack_c, &PMPI_Pack_c);
  prove("PMPI_Unpack_c", call.unpack_c, &PMPI_Unpack_c);
  prove("PMPI_Reduce_local_c", call.reduce_local_c, &PMPI_Reduce_local_c);
  prove("PMPI_Bcast_c", call.bcast_c, &PMPI_Bcast_c);
  prove("PMPI_Allgather_c", call.allgather_c, &PMPI_Allgather_c);
  prove("PMPI_Allgatherv_c", call.allgatherv_c, &PMPI_Allgatherv_c);
  prove("PMPI_Gather_c", call.gather_c, &PMPI_Gather_c);
  prove("PMPI_Gatherv_c", call.gatherv_c, &PMPI_Gatherv_c);
  prove("PMPI_Scatter_c", call.scatter_c, &PMPI_Scatter_c);
  prove("PMPI_Scatterv_c", call.scatterv_c, &PMPI_Scatterv_c);
  prove("PMPI_Alltoall_c", call.alltoall_c, &PMPI_Alltoall_c);
  prove("PMPI_Alltoallv_c", call.alltoallv_c, &PMPI_Alltoallv_c);
  prove("PMPI_Reduce_c", call.reduce_c, &PMPI_Reduce_c);
  prove("PMPI_Allreduce_c", call.allreduce_c, &PMPI_Allreduce_c);
  prove("PMPI_Reduce_scatter_c", call.reduce_scatter_c, &PMPI_Reduce_scatter_c);
  prove("PMPI_Reduce_scatter_block_c", call.reduce_scatter_block_c, &PMPI_Reduce_scatter_block_c);
  prove("PMPI_Scan_c", call.scan_c, &PMPI_Scan_c);
  prove("PMPI_Exscan_c", call.exscan_c, &PMPI_Exscan_c);
#endif
}

}  // namespace

int main() {
  const rw::Abi& abi = rw::library().abi;
  expect("family", static_cast<unsigned>(abi.family), static_cast<unsigned>(expected));
  prove_handles(abi);
  prove_datatypes(abi);
  prove_operations(abi);
  prove_combiners(abi);
  prove_constants(abi);
  prove_windows();
  prove_layouts(abi);
  prove_functions();
  prove_large_counts();
  // The library is really linked: without this reference the linker would leave it out.
  int flag = 0;
  MPI_Initialized(&flag);
  std::printf("%s: %d differences\n", rw::library().path.c_str(), differences);
  return differences == 0 && flag == 0 ? 0 : 1;
}
