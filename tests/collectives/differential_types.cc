#include "collectives/differential_types.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::test {
namespace {

using mpi::DatatypeName;
using Word = std::uintptr_t;
using E = ElementType;

const TypeEntry* layout = nullptr;

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Calls work(a, b) for each element with the addresses of its operands in both buffers.
template <class Work>
void for_elements(const void* in, void* inout, const int* count, const Work& work) {
  for (int i = 0; i < *count; ++i) {
    const std::int64_t at = i * layout->extent;
    work(static_cast<const std::byte*>(in) + at, static_cast<std::byte*>(inout) + at);
  }
}

// Commutative: sums of all int32.
void sum_up(void* in, void* inout, int* count, Word*) {
  for_elements(in, inout, count, [](const std::byte* a, std::byte* b) {
    for (const Scalar& scalar : layout->scalars) {
      store(b + scalar.offset,
            load<std::uint32_t>(a + scalar.offset) + load<std::uint32_t>(b + scalar.offset));
    }
  });
}

// Not commutative: the product of two matrices of four int32.
void multiply(void* in, void* inout, int* count, Word*) {
  for_elements(in, inout, count, [](const std::byte* a, std::byte* b) {
    std::uint32_t x[4];
    std::uint32_t y[4];
    for (int k = 0; k < 4; ++k) {
      x[k] = load<std::uint32_t>(a + layout->scalars[k].offset);
      y[k] = load<std::uint32_t>(b + layout->scalars[k].offset);
    }
    for (int k = 0; k < 4; ++k) {
      store(b + layout->scalars[k].offset,
            x[k / 2 * 2] * y[k % 2] + x[k / 2 * 2 + 1] * y[k % 2 + 2]);
    }
  });
}

// Not commutative, on 64 bits: the halves are a and b of x -> a x + b.
void compose(void* in, void* inout, int* count, Word*) {
  for_elements(in, inout, count, [](const std::byte* a, std::byte* b) {
    const auto x = load<std::uint64_t>(a);
    const auto y = load<std::uint64_t>(b);
    const auto x_a = static_cast<std::uint32_t>(x >> 32);
    const auto y_a = static_cast<std::uint32_t>(y >> 32);
    const std::uint32_t product = x_a * y_a;
    const std::uint32_t sum = x_a * static_cast<std::uint32_t>(y) + static_cast<std::uint32_t>(x);
    store(b, std::uint64_t{product} << 32 | sum);
  });
}

using UserFunction = void(void*, void*, int*, Word*);

// What the table of ropewalk has no need of.
template <class Function>
Function* function(const char* name) {
  static void* const library = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && library != nullptr) found = dlsym(library, name);
  if (found == nullptr) throw Error(ErrorCode::mpi, std::string(name) + ": not found");
  return reinterpret_cast<Function*>(found);
}

// One block a type; MPICH's arrays of handles are arrays of ints.
Word structure(const std::vector<std::pair<std::int64_t, DatatypeName>>& parts) {
  std::vector<int> lengths(parts.size(), 1);
  std::vector<mpi::Count> offsets;
  std::vector<Word> types(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Word type = mpi::library().abi.datatype(parts[i].second);
    offsets.push_back(parts[i].first);
    const std::size_t bytes = mpi::library().abi.int_handles ? 4 : sizeof(Word);
    std::memcpy(reinterpret_cast<std::byte*>(types.data()) + i * bytes, &type, bytes);
  }
  Word made = 0;
  mpi::check(mpi::library().call.type_create_struct(static_cast<int>(parts.size()), lengths.data(),
                                                    offsets.data(), types.data(), &made),
             "MPI_Type_create_struct");
  return made;
}

Word contiguous(int count, DatatypeName element) {
  Word made = 0;
  mpi::check(
      mpi::library().call.type_contiguous(count, mpi::library().abi.datatype(element), &made),
      "MPI_Type_contiguous");
  return made;
}

Word vector(int count, int length, int stride, DatatypeName element) {
  Word made = 0;
  mpi::check(function<int(int, int, int, Word, Word*)>("PMPI_Type_vector")(
                 count, length, stride, mpi::library().abi.datatype(element), &made),
             "MPI_Type_vector");
  return made;
}

Word indexed(const std::vector<int>& lengths, const std::vector<int>& places,
             DatatypeName element) {
  Word made = 0;
  mpi::check(function<int(int, const int*, const int*, Word, Word*)>("PMPI_Type_indexed")(
                 static_cast<int>(lengths.size()), lengths.data(), places.data(),
                 mpi::library().abi.datatype(element), &made),
             "MPI_Type_indexed");
  return made;
}

// Takes over `type`.
Word resized(Word type, std::int64_t lower, std::int64_t extent) {
  Word made = 0;
  mpi::check(mpi::library().call.type_create_resized(type, lower, extent, &made),
             "MPI_Type_create_resized");
  mpi::library().call.type_free(&type);
  return made;
}

std::vector<Scalar> ints(std::initializer_list<std::int64_t> offsets) {
  std::vector<Scalar> scalars;
  for (const std::int64_t offset : offsets) scalars.push_back({offset, E::int32});
  return scalars;
}

// The scalars of an element type: itself, or value and index of a pair.
std::vector<Scalar> scalars_of(ElementType type) {
  switch (type) {
    case E::float_int:
      return {{0, E::float32}, {offsetof(FloatInt, index), E::int32}};
    case E::double_int:
      return {{0, E::float64}, {offsetof(DoubleInt, index), E::int32}};
    case E::long_int:
      return {{0, E::int64}, {offsetof(LongInt, index), E::int32}};
    case E::two_int:
      return {{0, E::int32}, {offsetof(TwoInt, index), E::int32}};
    case E::short_int:
      return {{0, E::int16}, {offsetof(ShortInt, index), E::int32}};
    case E::long_double_int:
      return {{0, E::long_double}, {offsetof(LongDoubleInt, index), E::int32}};
    default:
      return {{0, type}};
  }
}

// Types that only MPI knows.
std::vector<Scalar> scalars_of(DatatypeName name) {
  switch (name) {
    case DatatypeName::logical:
      return {{0, E::int32}};
    case DatatypeName::two_real:
      return {{0, E::float32}, {4, E::float32}};
    case DatatypeName::two_double_precision:
      return {{0, E::float64}, {8, E::float64}};
    default:
      return {};
  }
}

// Fortran's integers and those of all languages: MPI has no logical operations for them.
bool is_integer_of_others(DatatypeName name) {
  return name == DatatypeName::aint || name == DatatypeName::count ||
         name == DatatypeName::offset ||
         (name >= DatatypeName::character && name != DatatypeName::logical);
}

bool is_pair(const TypeEntry& type) { return type.scalars.size() == 2; }

}  // namespace

std::size_t TypeEntry::data_bytes() const {
  std::size_t bytes = 0;
  for (const Scalar& scalar : scalars) bytes += size_of(scalar.type);
  return bytes;
}

Catalogue::Catalogue() {
  add_predefined();
  add_derived();
  add_ops();
  if (legal(types[matrices.front()]).size() != 2) {
    throw Error(ErrorCode::internal, "derived types without operations would never be reduced");
  }
}

Catalogue::~Catalogue() {
  for (Word type : made_) mpi::library().call.type_free(&type);
  for (Word op : made_ops_) function<int(Word*)>("PMPI_Op_free")(&op);
}

void Catalogue::add_predefined() {
  for (int i = 0; i < element_type_count; ++i) {
    const auto element = static_cast<ElementType>(i);
    const mpi::Datatype handle = mpi::datatype(element);
    const auto bytes = static_cast<std::int64_t>(size_of(element));
    if (handle == mpi::datatype_null()) continue;
    types.push_back({name(element), handle, RW_FIRST_TYPE + static_cast<rw_type>(i),
                     scalars_of(element), bytes, 0, bytes, true, true, false});
  }
  for (std::size_t i = 0; i < mpi::datatype_names; ++i) {
    const auto type_name = static_cast<DatatypeName>(i);
    const mpi::Datatype handle{mpi::library().abi.datatype(type_name)};
    if (handle.value == 0 || type_name == DatatypeName::packed) continue;
    const std::int64_t bytes = mpi::type_extent(handle).bytes;
    if (bytes <= 0) continue;  // Fortran's, in an MPI without Fortran
    const auto element = mpi::element_type(handle);
    const auto scalars = element ? scalars_of(*element) : scalars_of(type_name);
    const bool known = element || (!scalars.empty() && bytes == scalars.back().offset * 2) ||
                       (type_name == DatatypeName::logical && bytes == 4);
    if (!known) continue;
    types.push_back({mpi::name(type_name), handle, handle.value, scalars, bytes, 0, bytes, true,
                     !is_integer_of_others(type_name), false});
  }
}

void Catalogue::add(const std::string& name, Word handle, std::vector<Scalar> scalars) {
  mpi::check(mpi::library().call.type_commit(&handle), "MPI_Type_commit");
  made_.push_back(handle);
  std::int64_t low = scalars.empty() ? 0 : INT64_MAX;
  std::int64_t high = scalars.empty() ? 0 : INT64_MIN;
  for (const Scalar& scalar : scalars) {
    low = std::min(low, scalar.offset);
    high = std::max(high, scalar.offset + static_cast<std::int64_t>(size_of(scalar.type)));
  }
  const bool matrix = scalars.size() == 4 && std::all_of(scalars.begin(), scalars.end(),
                                                         [](auto s) { return s.type == E::int32; });
  if (matrix) matrices.push_back(types.size());
  types.push_back({name,
                   {handle},
                   handle,
                   std::move(scalars),
                   mpi::type_extent({handle}).bytes,
                   low,
                   high,
                   false,
                   false,
                   matrix});
}

void Catalogue::add_derived() {
  const auto i4 = DatatypeName::int_;
  add("contiguous(4 int)", contiguous(4, i4), ints({0, 4, 8, 12}));
  add("vector(2 x 2 of 3 int)", vector(2, 2, 3, i4), ints({0, 4, 12, 16}));
  add("indexed(2@3 1@0 1@6 int)", indexed({2, 1, 1}, {3, 0, 6}, i4), ints({12, 16, 0, 24}));
  add("indexed(1@3 2@0 1@2 int), dense", indexed({1, 2, 1}, {3, 0, 2}, i4), ints({12, 0, 4, 8}));
  add("contiguous(4 int) in [-4, 20)", resized(contiguous(4, i4), -4, 24), ints({0, 4, 8, 12}));
  add("vector(2 x 2 of 3 int) in 32", resized(vector(2, 2, 3, i4), 0, 32), ints({0, 4, 12, 16}));
  add("indexed(2@2 2@5 int)", indexed({2, 2}, {2, 5}, i4), ints({8, 12, 20, 24}));
  add("vector(4 x 1 of -2 int)", vector(4, 1, -2, i4), ints({0, -8, -16, -24}));
  const auto c = DatatypeName::char_;
  const auto d = DatatypeName::double_;
  const auto s = DatatypeName::short_;
  add("struct(double, int) in 16", resized(structure({{0, d}, {8, i4}}), 0, 16),
      {{0, E::float64}, {8, E::int32}});
  add("struct(char@1, double@8, short@16)", structure({{1, c}, {8, d}, {16, s}}),
      {{1, E::byte}, {8, E::float64}, {16, E::int16}});
  add("contiguous(3 double)", contiguous(3, d),
      {{0, E::float64}, {8, E::float64}, {16, E::float64}});
  add("indexed(3@0 5@4 1@11 char)", indexed({3, 5, 1}, {0, 4, 11}, c),
      {{0, E::byte},
       {1, E::byte},
       {2, E::byte},
       {4, E::byte},
       {5, E::byte},
       {6, E::byte},
       {7, E::byte},
       {8, E::byte},
       {11, E::byte}});
  add("contiguous(0 int)", contiguous(0, i4), {});
}

void Catalogue::add_ops() {
  for (int i = 0; i < reduction_op_count; ++i) {
    const auto op = static_cast<ReductionOp>(i);
    if (op == ReductionOp::replace || op == ReductionOp::no_op) continue;
    const mpi::Op handle = mpi::op(op);
    // Own numbers and MPI's handles in turn.
    const rw_op number = i % 2 == 0 ? RW_FIRST_OP + static_cast<rw_op>(i) : handle.value;
    ops.push_back({name(op), handle, number, op, OpEntry::Kind::predefined});
  }
  const auto make = [&](const char* name, UserFunction* user, int commutes, OpEntry::Kind kind) {
    Word handle = 0;
    mpi::check(function<int(UserFunction*, int, Word*)>("PMPI_Op_create")(user, commutes, &handle),
               "MPI_Op_create");
    made_ops_.push_back(handle);
    ops.push_back({name, {handle}, handle, ReductionOp::band, kind});
  };
  make("sum of the user", &sum_up, 1, OpEntry::Kind::sum);
  make("matrix product", &multiply, 0, OpEntry::Kind::matrix);
  make("composition", &compose, 0, OpEntry::Kind::affine);
}

std::vector<std::size_t> Catalogue::legal(const TypeEntry& type) const {
  const auto element = mpi::element_type(type.handle);
  const bool logical = type.predefined && !element && !is_pair(type);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpEntry& op = ops[i];
    const bool located = op.op == ReductionOp::minloc || op.op == ReductionOp::maxloc;
    bool allowed = false;
    if (op.kind == OpEntry::Kind::matrix) {
      allowed = type.matrix;
    } else if (op.kind == OpEntry::Kind::sum) {
      allowed = type.matrix || element == E::int32;
    } else if (op.kind == OpEntry::Kind::affine) {
      allowed = element == E::uint64;
    } else if (element) {
      const bool logical_op =
          op.op == ReductionOp::land || op.op == ReductionOp::lor || op.op == ReductionOp::lxor;
      allowed = supports(op.op, *element) && (type.logical_too || !logical_op);
    } else if (type.predefined) {
      allowed = logical ? op.op == ReductionOp::land || op.op == ReductionOp::lor ||
                              op.op == ReductionOp::lxor
                        : located;
    }
    if (allowed) result.push_back(i);
  }
  return result;
}

void use_layout(const TypeEntry& type) { layout = &type; }

}  // namespace ropewalk::test
