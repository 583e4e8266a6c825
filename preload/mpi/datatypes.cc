#include "datatypes.hpp"

#include <atomic>

#include "handle_table.hpp"
#include "local_mpi.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"

namespace ropewalk::preload {

Word handle_bits = ~Word{0};

namespace {

using collectives::Elements;
using collectives::typed::Reduction;

struct TypeEntry {
  std::atomic<Word> handle{0};
  Elements elements;
};

HandleTable<TypeEntry> types;

void forget(void* value) noexcept { types.erase(*static_cast<TypeEntry*>(value)); }

const Elements& derived_elements(mpi::Datatype type) {
  if (const TypeEntry* known = types.find(type.value)) return known->elements;
  const Elements found = collectives::elements(type.value);
  TypeEntry& entry = types.insert(type.value);
  entry.elements = found;
  set_type_attribute(type, &entry, &forget);
  return entry.elements;
}

// Whether MPI defines an operation of its own for a type that our kernels do not know. Trying it
// out would make an error of MPI_COMM_WORLD, which may end the program: derived types have none.
bool defined(ReductionOp op, mpi::Datatype type) {
  using mpi::DatatypeName;
  const auto name = mpi::library().datatypes.find(type.value);
  if (!name) return false;
  switch (*name) {
    case DatatypeName::logical:
      return op == ReductionOp::land || op == ReductionOp::lor || op == ReductionOp::lxor;
    case DatatypeName::two_integer:
    case DatatypeName::two_real:
    case DatatypeName::two_double_precision:
      return op == ReductionOp::minloc || op == ReductionOp::maxloc;
    default:
      return false;
  }
}

}  // namespace

const Elements* elements_of(Word word, Elements& room) noexcept {
  const mpi::Datatype type{clean(word)};
  try {
    if (type == mpi::datatype_null()) return nullptr;
    if (!mpi::is_predefined(type)) return &derived_elements(type);
    room = collectives::elements(type.value);
    return &room;
  } catch (...) {
    return nullptr;
  }
}

std::optional<Reduction> reduction_of(Word type_word, Word op_word) noexcept {
  const Word type = clean(type_word);
  const Word op = clean(op_word);
  try {
    if (op == mpi::null_op().value || type == mpi::datatype_null().value) return std::nullopt;
    const auto known = mpi::reduction_op({op});
    if (known && !mpi::element_type({type}) && !defined(*known, {type})) return std::nullopt;
    const Elements* derived = nullptr;
    if (!mpi::is_predefined({type})) derived = &derived_elements({type});
    Reduction result{collectives::operation(type, op, derived), {}};
    if (result.operation.packed) result.elements = *derived;
    return result;
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace ropewalk::preload
