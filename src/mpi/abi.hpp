// What the three binary interfaces of MPI differ in: handles, sentinels, the layout of MPI_Status.
//
// Every entry is proved equal to the real mpi.h of each MPI by tests/mpi/abi_proof.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Predefined datatypes, by their MPI names without the prefix. Fortran's come last: an MPI built
// without Fortran lacks them.
enum class DatatypeName : std::uint8_t {
  byte_,
  packed,
  char_,
  signed_char,
  unsigned_char,
  short_,
  unsigned_short,
  int_,
  unsigned_,
  long_,
  unsigned_long,
  long_long,
  unsigned_long_long,
  float_,
  double_,
  long_double,
  wchar,
  c_bool,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  aint,
  count,
  offset,
  c_float_complex,
  c_double_complex,
  c_long_double_complex,
  cxx_bool,
  cxx_float_complex,
  cxx_double_complex,
  cxx_long_double_complex,
  float_int,
  double_int,
  long_int,
  two_int,
  short_int,
  long_double_int,
  character,
  logical,
  integer,
  real,
  double_precision,
  complex,
  double_complex,
  two_integer,
  two_real,
  two_double_precision,
  integer1,
  integer2,
  integer4,
  integer8,
  real4,
  real8,
  real16,
  complex8,
  complex16,
  complex32,
  integer16,
  real2,
  complex4,
  logical1,
  logical2,
  logical4,
  logical8,
  logical16
};
inline constexpr std::size_t datatype_names = 70;

enum class OpName : std::uint8_t {
  max,
  min,
  sum,
  prod,
  land,
  band,
  lor,
  bor,
  lxor,
  bxor,
  maxloc,
  minloc,
  replace,
  no_op
};
inline constexpr std::size_t op_names = 14;

// How a datatype was made, as MPI_Type_get_envelope says.
enum class Combiner : std::uint8_t {
  named,
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  f90_real,
  f90_complex,
  f90_integer,
  resized
};
inline constexpr std::size_t combiners = 16;

const char* name(DatatypeName);  // "MPI_INT", ...
const char* name(OpName);        // "MPI_SUM", ...

struct Abi {
  Family family;
  bool int_handles;  // handles are ints: 4 bytes in arrays and in callbacks' arguments

  // The handles are words. 0 is no handle in any of the three: such an entry is absent in this MPI.
  std::uintptr_t comm_world, comm_self, comm_null;
  std::uintptr_t request_null, op_null, info_null, group_null, datatype_null, file_null;
  // MPI_ERRORS_RETURN; 0 in the standard ABI, where the library has to be asked: 0x143 in MPICH
  // 5.0.2, but 0x142 in Intel MPI 2021.19, which is MPI_ERRORS_ABORT in MPICH's.
  std::uintptr_t errors_return;
  std::array<std::uintptr_t, datatype_names> datatypes;
  std::array<std::uintptr_t, op_names> ops;
  std::array<int, combiners> combiner_codes;  // in the order of Combiner

  int any_source, any_tag, proc_null, root, undefined;
  int keyval_invalid;
  int comm_type_shared;
  int order_c;  // MPI_ORDER_C, of MPI_Type_create_subarray
  // MPI_DISTRIBUTE_BLOCK, _NONE and _DFLT_DARG, of MPI_Type_create_darray.
  int distribute_block, distribute_none, distribute_default;
  int graph, cartesian, dist_graph;  // of MPI_Topo_test
  int tag_upper_bound;               // the attribute key MPI_TAG_UB
  std::array<int, 4> thread_levels;  // MPI_THREAD_SINGLE ... MULTIPLE
  std::uintptr_t in_place, status_ignore, statuses_ignore;

  std::size_t status_bytes;
  std::size_t status_source, status_tag, status_error;  // byte offsets of the public fields

  std::uintptr_t datatype(DatatypeName n) const { return datatypes[static_cast<std::size_t>(n)]; }
  std::uintptr_t op(OpName n) const { return ops[static_cast<std::size_t>(n)]; }
};

// Open MPI's handles are addresses of its symbols: `symbol` finds one, null where it is missing.
using SymbolLookup = std::function<void*(const char*)>;
Abi abi_of(Family, const SymbolLookup& symbol);

// There is room for an MPI_Status of any of the three (20 to 32 bytes).
struct alignas(8) RawStatus {
  std::array<std::byte, 64> bytes{};
};
Status read_status(const Abi&, const RawStatus&);  // `bytes` stays -1

}  // namespace ropewalk::mpi
