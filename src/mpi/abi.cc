// This file holds the facts of each ABI. They come from mpi.h of MPICH 5 (stable since MPICH 3;
// Intel MPI, MVAPICH and Cray MPICH share it by the MPICH ABI compatibility initiative), mpi.h of
// Open MPI 4 and 5, and the ABI chapter of MPI 5.0 as in mpi_abi.h.
#include "mpi/abi.hpp"

#include <cstring>
#include <string>

namespace ropewalk::mpi {
namespace {

struct Row {
  const char* name;
  std::uint32_t mpich;
  std::uint32_t standard;
  const char* openmpi;  // without the prefix ompi_mpi_ or ompi_mpi_op_
};

// The entries are in the order of DatatypeName.
constexpr Row datatype_rows[] = {
    {"MPI_BYTE", 0x4c00010d, 0x247, "byte"},
    {"MPI_PACKED", 0x4c00010f, 0x207, "packed"},
    {"MPI_CHAR", 0x4c000101, 0x243, "char"},
    {"MPI_SIGNED_CHAR", 0x4c000118, 0x244, "signed_char"},
    {"MPI_UNSIGNED_CHAR", 0x4c000102, 0x245, "unsigned_char"},
    {"MPI_SHORT", 0x4c000203, 0x208, "short"},
    {"MPI_UNSIGNED_SHORT", 0x4c000204, 0x20c, "unsigned_short"},
    {"MPI_INT", 0x4c000405, 0x209, "int"},
    {"MPI_UNSIGNED", 0x4c000406, 0x20d, "unsigned"},
    {"MPI_LONG", 0x4c000807, 0x20a, "long"},
    {"MPI_UNSIGNED_LONG", 0x4c000808, 0x20e, "unsigned_long"},
    {"MPI_LONG_LONG", 0x4c000809, 0x20b, "long_long_int"},
    {"MPI_UNSIGNED_LONG_LONG", 0x4c000819, 0x20f, "unsigned_long_long"},
    {"MPI_FLOAT", 0x4c00040a, 0x210, "float"},
    {"MPI_DOUBLE", 0x4c00080b, 0x214, "double"},
    {"MPI_LONG_DOUBLE", 0x4c00100c, 0x220, "long_double"},
    {"MPI_WCHAR", 0x4c00040e, 0x23c, "wchar"},
    {"MPI_C_BOOL", 0x4c00013f, 0x238, "c_bool"},
    {"MPI_INT8_T", 0x4c000137, 0x240, "int8_t"},
    {"MPI_INT16_T", 0x4c000238, 0x248, "int16_t"},
    {"MPI_INT32_T", 0x4c000439, 0x250, "int32_t"},
    {"MPI_INT64_T", 0x4c00083a, 0x258, "int64_t"},
    {"MPI_UINT8_T", 0x4c00013b, 0x241, "uint8_t"},
    {"MPI_UINT16_T", 0x4c00023c, 0x249, "uint16_t"},
    {"MPI_UINT32_T", 0x4c00043d, 0x251, "uint32_t"},
    {"MPI_UINT64_T", 0x4c00083e, 0x259, "uint64_t"},
    {"MPI_AINT", 0x4c000843, 0x201, "aint"},
    {"MPI_COUNT", 0x4c000845, 0x202, "count"},
    {"MPI_OFFSET", 0x4c000844, 0x203, "offset"},
    {"MPI_C_FLOAT_COMPLEX", 0x4c000840, 0x212, "c_float_complex"},
    {"MPI_C_DOUBLE_COMPLEX", 0x4c001041, 0x216, "c_double_complex"},
    {"MPI_C_LONG_DOUBLE_COMPLEX", 0x4c002042, 0x224, "c_long_double_complex"},
    {"MPI_CXX_BOOL", 0x4c000133, 0x239, "cxx_bool"},
    {"MPI_CXX_FLOAT_COMPLEX", 0x4c000834, 0x213, "cxx_cplex"},
    {"MPI_CXX_DOUBLE_COMPLEX", 0x4c001035, 0x217, "cxx_dblcplex"},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", 0x4c002036, 0x225, "cxx_ldblcplex"},
    {"MPI_FLOAT_INT", 0x8c000000, 0x228, "float_int"},
    {"MPI_DOUBLE_INT", 0x8c000001, 0x229, "double_int"},
    {"MPI_LONG_INT", 0x8c000002, 0x22a, "long_int"},
    {"MPI_2INT", 0x4c000816, 0x22b, "2int"},
    {"MPI_SHORT_INT", 0x8c000003, 0x22c, "short_int"},
    {"MPI_LONG_DOUBLE_INT", 0x8c000004, 0x22d, "longdbl_int"},
    {"MPI_CHARACTER", 0x4c00011a, 0x21e, "character"},
    {"MPI_LOGICAL", 0x4c00041d, 0x218, "logical"},
    {"MPI_INTEGER", 0x4c00041b, 0x219, "integer"},
    {"MPI_REAL", 0x4c00041c, 0x21a, "real"},
    {"MPI_DOUBLE_PRECISION", 0x4c00081f, 0x21c, "dblprec"},
    {"MPI_COMPLEX", 0x4c00081e, 0x21b, "cplex"},
    {"MPI_DOUBLE_COMPLEX", 0x4c001022, 0x21d, "dblcplex"},
    {"MPI_2INTEGER", 0x4c000820, 0x232, "2integer"},
    {"MPI_2REAL", 0x4c000821, 0x230, "2real"},
    {"MPI_2DOUBLE_PRECISION", 0x4c001023, 0x231, "2dblprec"},
    {"MPI_INTEGER1", 0x4c00012d, 0x2c1, "integer1"},
    {"MPI_INTEGER2", 0x4c00022f, 0x2c9, "integer2"},
    {"MPI_INTEGER4", 0x4c000430, 0x2d1, "integer4"},
    {"MPI_INTEGER8", 0x4c000831, 0x2d9, "integer8"},
    {"MPI_REAL4", 0x4c000427, 0x2d2, "real4"},
    {"MPI_REAL8", 0x4c000829, 0x2da, "real8"},
    {"MPI_REAL16", 0x4c00102b, 0x2e2, "real16"},
    {"MPI_COMPLEX8", 0x4c000828, 0x2db, "complex8"},
    {"MPI_COMPLEX16", 0x4c00102a, 0x2e3, "complex16"},
    {"MPI_COMPLEX32", 0x4c00202c, 0x2eb, "complex32"},
    {"MPI_INTEGER16", 0x4c001032, 0x2e1, "integer16"},
    {"MPI_REAL2", 0x4c000226, 0x2ca, "real2"},
    {"MPI_COMPLEX4", 0x4c00042e, 0x2d3, "complex4"},
    {"MPI_LOGICAL1", 0x4c000147, 0x2c0, "logical1"},
    {"MPI_LOGICAL2", 0x4c000248, 0x2c8, "logical2"},
    {"MPI_LOGICAL4", 0x4c000449, 0x2d0, "logical4"},
    {"MPI_LOGICAL8", 0x4c00084a, 0x2d8, "logical8"},
    {"MPI_LOGICAL16", 0x4c00104b, 0x2e0, "logical16"},
};
static_assert(std::size(datatype_rows) == datatype_names);

// The entries are in the order of OpName.
constexpr Row op_rows[] = {
    {"MPI_MAX", 0x58000001, 0x23, "max"},         {"MPI_MIN", 0x58000002, 0x22, "min"},
    {"MPI_SUM", 0x58000003, 0x21, "sum"},         {"MPI_PROD", 0x58000004, 0x24, "prod"},
    {"MPI_LAND", 0x58000005, 0x30, "land"},       {"MPI_BAND", 0x58000006, 0x28, "band"},
    {"MPI_LOR", 0x58000007, 0x31, "lor"},         {"MPI_BOR", 0x58000008, 0x29, "bor"},
    {"MPI_LXOR", 0x58000009, 0x32, "lxor"},       {"MPI_BXOR", 0x5800000a, 0x2a, "bxor"},
    {"MPI_MAXLOC", 0x5800000c, 0x39, "maxloc"},   {"MPI_MINLOC", 0x5800000b, 0x38, "minloc"},
    {"MPI_REPLACE", 0x5800000d, 0x3c, "replace"}, {"MPI_NO_OP", 0x5800000e, 0x3d, "no_op"},
};
static_assert(std::size(op_rows) == op_names);

// The entries are in the order of Combiner. Open MPI counts as MPICH does, from 0.
constexpr std::array<int, combiners> mpich_combiners = {1,  2,  3,  4,  6,  7,  9,  10,
                                                        19, 12, 13, 14, 15, 16, 17, 18};
constexpr std::array<int, combiners> standard_combiners = {101, 102, 103, 104, 105, 106, 107, 108,
                                                           109, 110, 111, 112, 113, 114, 115, 116};

constexpr std::array<int, combiners> openmpi_combiners() {
  std::array<int, combiners> codes = mpich_combiners;
  for (int& code : codes) --code;
  return codes;
}

Abi mpich_abi() {
  Abi abi{};
  abi.family = Family::mpich;
  abi.int_handles = true;
  abi.comm_world = 0x44000000;
  abi.comm_self = 0x44000001;
  abi.comm_null = 0x04000000;
  abi.request_null = 0x2c000000;
  abi.op_null = 0x18000000;
  abi.info_null = 0x1c000000;
  abi.group_null = 0x08000000;
  abi.datatype_null = 0x0c000000;
  abi.file_null = 0;
  abi.errors_return = 0x54000001;
  for (std::size_t i = 0; i < datatype_names; ++i) abi.datatypes[i] = datatype_rows[i].mpich;
  for (std::size_t i = 0; i < op_names; ++i) abi.ops[i] = op_rows[i].mpich;
  abi.combiner_codes = mpich_combiners;
  abi.any_source = -2;
  abi.any_tag = -1;
  abi.proc_null = -1;
  abi.root = -3;
  abi.undefined = -32766;
  abi.keyval_invalid = 0x24000000;
  abi.comm_type_shared = 1;
  abi.order_c = 56;
  abi.distribute_block = 121;
  abi.distribute_none = 123;
  abi.distribute_default = -49767;
  abi.graph = 1;
  abi.cartesian = 2;
  abi.dist_graph = 3;
  abi.tag_upper_bound = 0x64400001;
  abi.thread_levels = {0, 1, 2, 3};
  abi.in_place = ~std::uintptr_t{0};
  abi.status_ignore = 1;
  abi.statuses_ignore = 1;
  abi.status_bytes = 20;
  abi.status_source = 8;
  abi.status_tag = 12;
  abi.status_error = 16;
  return abi;
}

Abi standard_abi() {
  Abi abi{};
  abi.family = Family::standard;
  abi.int_handles = false;
  abi.comm_world = 0x101;
  abi.comm_self = 0x102;
  abi.comm_null = 0x100;
  abi.request_null = 0x180;
  abi.op_null = 0x20;
  abi.info_null = 0x130;
  abi.group_null = 0x108;
  abi.datatype_null = 0x200;
  abi.file_null = 0x118;
  abi.errors_return = 0;
  for (std::size_t i = 0; i < datatype_names; ++i) abi.datatypes[i] = datatype_rows[i].standard;
  for (std::size_t i = 0; i < op_names; ++i) abi.ops[i] = op_rows[i].standard;
  abi.combiner_codes = standard_combiners;
  abi.any_source = -1;
  abi.any_tag = -2;
  abi.proc_null = -3;
  abi.root = -4;
  abi.undefined = -32766;
  abi.keyval_invalid = 0;
  abi.comm_type_shared = 221;
  abi.order_c = 12;
  abi.distribute_block = 17;
  abi.distribute_none = 16;
  abi.distribute_default = 19;
  abi.graph = 212;
  abi.cartesian = 211;
  abi.dist_graph = 213;
  abi.tag_upper_bound = 501;
  abi.thread_levels = {0, 1024, 2048, 4096};
  abi.in_place = 1;
  abi.status_ignore = 0;
  abi.statuses_ignore = 0;
  abi.status_bytes = 32;
  abi.status_source = 0;
  abi.status_tag = 4;
  abi.status_error = 8;
  return abi;
}

std::uintptr_t word(void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void openmpi_handles(Abi& abi, const SymbolLookup& symbol) {
  abi.comm_world = word(symbol("ompi_mpi_comm_world"));
  abi.comm_self = word(symbol("ompi_mpi_comm_self"));
  abi.comm_null = word(symbol("ompi_mpi_comm_null"));
  abi.request_null = word(symbol("ompi_request_null"));
  abi.op_null = word(symbol("ompi_mpi_op_null"));
  abi.info_null = word(symbol("ompi_mpi_info_null"));
  abi.group_null = word(symbol("ompi_mpi_group_null"));
  abi.datatype_null = word(symbol("ompi_mpi_datatype_null"));
  abi.file_null = word(symbol("ompi_mpi_file_null"));
  abi.errors_return = word(symbol("ompi_mpi_errors_return"));
  for (std::size_t i = 0; i < datatype_names; ++i) {
    abi.datatypes[i] = word(symbol(("ompi_mpi_" + std::string(datatype_rows[i].openmpi)).c_str()));
  }
  for (std::size_t i = 0; i < op_names; ++i) {
    abi.ops[i] = word(symbol(("ompi_mpi_op_" + std::string(op_rows[i].openmpi)).c_str()));
  }
}

Abi openmpi_abi(const SymbolLookup& symbol) {
  Abi abi{};
  abi.family = Family::openmpi;
  abi.int_handles = false;
  openmpi_handles(abi, symbol);
  abi.combiner_codes = openmpi_combiners();
  abi.any_source = -1;
  abi.any_tag = -1;
  abi.proc_null = -2;
  abi.root = -4;
  abi.undefined = -32766;
  abi.keyval_invalid = -1;
  abi.comm_type_shared = 0;
  abi.order_c = 0;
  abi.distribute_block = 0;
  abi.distribute_none = 2;
  abi.distribute_default = -1;
  abi.graph = 2;
  abi.cartesian = 1;
  abi.dist_graph = 3;
  abi.tag_upper_bound = 0;
  abi.thread_levels = {0, 1, 2, 3};
  abi.in_place = 1;
  abi.status_ignore = 0;
  abi.statuses_ignore = 0;
  abi.status_bytes = 24;
  abi.status_source = 0;
  abi.status_tag = 4;
  abi.status_error = 8;
  return abi;
}

int field(const RawStatus& status, std::size_t offset) {
  int value;
  std::memcpy(&value, status.bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

const char* name(DatatypeName n) { return datatype_rows[static_cast<std::size_t>(n)].name; }
const char* name(OpName n) { return op_rows[static_cast<std::size_t>(n)].name; }

Abi abi_of(Family family, const SymbolLookup& symbol) {
  switch (family) {
    case Family::openmpi:
      return openmpi_abi(symbol);
    case Family::standard:
      return standard_abi();
    case Family::mpich:
      break;
  }
  return mpich_abi();
}

Status read_status(const Abi& abi, const RawStatus& status) {
  return {field(status, abi.status_source), field(status, abi.status_tag),
          field(status, abi.status_error), -1};
}

}  // namespace ropewalk::mpi
