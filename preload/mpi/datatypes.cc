#include "datatypes.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "handle_table.hpp"
#include "local_mpi.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"

namespace ropewalk::preload {

Word handle_bits = ~Word{0};

namespace {

using collectives::Elements;
using collectives::typed::Reduction;

// Stands for a pair that is MPI's to judge, in the place of a reduction.
const Reduction refused;

enum class Even : std::uint8_t { unknown, no, yes };

struct TypeEntry {
  std::atomic<Word> handle{0};
  bool derived = false;  // the program's: it may free the type
  Elements elements;
  // The table is indexed by predefined operation; an entry is null until it is asked for.
  std::array<std::atomic<const Reduction*>, reduction_op_count> reductions{};
  std::atomic<KeptPattern> pattern;  // null until it is asked for
  std::atomic<Even> even{Even::unknown};
};

HandleTable<TypeEntry> types;

// Held by whoever makes an entry or fills in a reduction, while MPI is asked. forget() must not
// take it: MPI calls that with locks of its own.
std::mutex making;

void drop_reductions(TypeEntry& entry) noexcept {
  for (auto& reduction : entry.reductions) {
    const Reduction* kept = reduction.exchange(nullptr, std::memory_order_relaxed);
    if (kept != &refused) delete kept;
  }
}

// MPI frees the type. Calls that still use it have what they need by value.
void forget(void* value) noexcept {
  auto& entry = *static_cast<TypeEntry*>(value);
  drop_reductions(entry);
  entry.pattern.store(nullptr, std::memory_order_relaxed);
  entry.even.store(Even::unknown, std::memory_order_relaxed);
  types.erase(entry);
}

// The entry of a type that the program made goes with the type; those of MPI's own types stay. The
// result is null where there is no memory for an entry.
TypeEntry* make_entry(mpi::Datatype type, const Elements& elements) noexcept {
  TypeEntry* entry = nullptr;
  try {
    entry = &types.take();
    entry->elements = elements;
    entry->derived = !mpi::is_predefined(type);
    if (entry->derived) set_type_attribute(type, entry, &forget);
    types.publish(*entry, type.value);
    return entry;
  } catch (...) {
    if (entry != nullptr) types.erase(*entry);
    return nullptr;
  }
}

FoundElements found_in(const TypeEntry& entry) noexcept {
  if (entry.derived) [[unlikely]] {
    return FoundElements(entry.elements);
  }
  return FoundElements(&entry.elements);
}

// Where there is no room for an entry, MPI is asked for the elements at every call: a rank that has
// run out of memory must not pass to MPI what the others serve.
FoundElements found_slowly(Word word) noexcept {
  const mpi::Datatype type{word};
  try {
    if (type == mpi::datatype_null()) return FoundElements();
    const std::lock_guard lock(making);
    if (const TypeEntry* meanwhile = types.find(word)) return found_in(*meanwhile);
    const Elements elements = collectives::elements(word);
    if (const TypeEntry* made = make_entry(type, elements)) return found_in(*made);
    return FoundElements(elements);
  } catch (...) {  // MPI refuses the type, as it will in the call
    return FoundElements();
  }
}

std::optional<Reduction> ask(Word type, ReductionOp op, const Elements& elements) {
  try {
    const auto found = collectives::operation_of_mpi({type}, op, elements);
    if (found) return Reduction{*found, elements};
  } catch (const Error&) {  // MPI fails, as it will in the call
  }
  return std::nullopt;
}

FoundReduction as_found(const TypeEntry& entry, const Reduction* kept) {
  if (kept == &refused) return FoundReduction();
  if (entry.derived) [[unlikely]] {
    return FoundReduction(*kept, true);
  }
  return FoundReduction(kept);
}

// Where there is no memory to keep it in, it is found all the same: other ranks may have more.
FoundReduction reduction_slowly(TypeEntry& entry, ReductionOp op) {
  const std::lock_guard lock(making);
  auto& place = entry.reductions[static_cast<std::size_t>(op)];
  if (place.load(std::memory_order_relaxed) == nullptr) {
    const auto found = ask(entry.handle.load(std::memory_order_relaxed), op, entry.elements);
    const Reduction* kept = found ? new (std::nothrow) Reduction(*found) : &refused;
    if (kept == nullptr) return FoundReduction(*found, true);
    place.store(kept, std::memory_order_release);  // pairs with kept_reduction()
  }
  return as_found(entry, place.load(std::memory_order_relaxed));
}

FoundReduction kept_reduction(TypeEntry& entry, ReductionOp op) {
  // Acquire pairs with the release in reduction_slowly(): the reduction is there.
  const Reduction* found =
      entry.reductions[static_cast<std::size_t>(op)].load(std::memory_order_acquire);
  if (found == nullptr) [[unlikely]] {
    return reduction_slowly(entry, op);
  }
  return as_found(entry, found);
}

Reduction by_user(const Elements& elements, mpi::Op op) {
  Reduction made;
  made.operation.element_bytes = elements.bytes;
  made.operation.by_mpi = true;
  made.operation.packed = elements.packed;
  made.operation.mpi_type = elements.type;
  made.operation.mpi_op = op;
  made.elements = elements;
  return made;
}

// For a type that has no entry, or none yet.
FoundReduction reduction_of_type(Word type, mpi::Op op, std::optional<ReductionOp> known) {
  const FoundElements elements = elements_of(type);
  if (!elements) return FoundReduction();
  if (TypeEntry* entry = types.find(type); entry != nullptr && known) {
    return kept_reduction(*entry, *known);
  }
  if (!known) return FoundReduction(by_user(*elements, op), true);
  const auto found = ask(type, *known, *elements);
  return found ? FoundReduction(*found, true) : FoundReduction();
}

bool is_pair(mpi::DatatypeName name) {
  using enum mpi::DatatypeName;
  return (name >= float_int && name <= long_double_int) ||
         (name >= two_integer && name <= two_double_precision);
}

constexpr std::int64_t most_even = 32;

// Of types of MPI_Type_create_f90_real and its like, MPI keeps no name.
bool all_even(mpi::Datatype type) {
  std::int64_t each = 0;
  return mpi::consists_of(type, [&](mpi::Datatype part) {
    const auto name = mpi::library().datatypes.find(part.value);
    if (!name || is_pair(*name) || *name == mpi::DatatypeName::packed) return false;
    const std::int64_t bytes = mpi::type_size(part);
    const bool same = each == 0 || bytes == each;
    each = bytes;
    return same && bytes > 0 && bytes <= most_even && (bytes & (bytes - 1)) == 0;
  });
}

bool calls_from_threads() {
  static const bool many = mpi::thread_level() == mpi::ThreadLevel::multiple;
  return many;
}

}  // namespace

// A type stays alive as long as types that are made of it, whoever frees it.
void HeldType::hold(mpi::Datatype type) noexcept {
  try {
    if (mpi::is_predefined(type) || !calls_from_threads()) return;
    const mpi::Functions& call = mpi::library().call;
    if (call.type_contiguous(1, type.value, &word_) != 0) word_ = 0;
  } catch (...) {  // MPI has nothing to hold it by
  }
}

HeldType::~HeldType() {
  if (word_ != 0) [[unlikely]] {
    mpi::library().call.type_free(&word_);
  }
}

FoundElements elements_of(Word word) noexcept {
  const Word type = clean(word);
  if (const TypeEntry* entry = types.find_near(type)) [[likely]] {
    return found_in(*entry);
  }
  return found_slowly(type);
}

bool is_even(Word word) noexcept {
  const Word type = clean(word);
  TypeEntry* entry = types.find(type);
  if (entry == nullptr) return false;  // no call has asked for its elements, or there is no memory
  Even known = entry->even.load(std::memory_order_relaxed);
  if (known == Even::unknown) [[unlikely]] {
    try {
      known = !entry->elements.packed && all_even({type}) ? Even::yes : Even::no;
    } catch (...) {
      known = Even::no;
    }
    entry->even.store(known, std::memory_order_relaxed);
  }
  return known == Even::yes;
}

KeptPattern pattern_of(Word word) {
  const Word type = clean(word);
  if (!elements_of(type)) return nullptr;
  TypeEntry* entry = types.find(type);
  // Acquire pairs with the release below: the pattern is complete.
  KeptPattern kept = entry != nullptr ? entry->pattern.load(std::memory_order_acquire) : nullptr;
  if (kept != nullptr) return kept;
  const std::lock_guard lock(making);
  kept = std::make_shared<const collectives::Pattern>(collectives::pattern_of({type}));
  if (entry != nullptr) entry->pattern.store(kept, std::memory_order_release);
  return kept;
}

FoundReduction reduction_of(Word type_word, Word op_word) {
  const Word type = clean(type_word);
  const mpi::Op op{clean(op_word)};
  const auto name = mpi::library().ops.find(op.value);
  if (!name && op == mpi::null_op()) return FoundReduction();
  const auto known = name ? std::optional(static_cast<ReductionOp>(*name)) : std::nullopt;
  TypeEntry* entry = types.find_near(type);
  if (entry == nullptr) [[unlikely]] {
    return reduction_of_type(type, op, known);
  }
  if (known) return kept_reduction(*entry, *known);
  return FoundReduction(by_user(entry->elements, op), entry->derived);
}

}  // namespace ropewalk::preload
