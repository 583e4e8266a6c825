#include "mpi/layout.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {
namespace {

struct Envelope {
  Count integers = 0;
  Count addresses = 0;
  Count large = 0;
  Count types = 0;
  std::optional<Combiner> combiner;
};

std::optional<Combiner> combiner_of(int code) {
  const auto& codes = library().abi.combiner_codes;
  const auto* found = std::find(codes.begin(), codes.end(), code);
  if (found == codes.end()) return std::nullopt;
  return static_cast<Combiner>(found - codes.begin());
}

// MPI describes a type that was made with large counts only by the function with large counts.
Envelope envelope_of(Datatype type) {
  const Functions& call = library().call;
  Envelope found;
  int code = INT_MIN;
  if (call.type_get_envelope_c != nullptr) {
    check(call.type_get_envelope_c(type.value, &found.integers, &found.addresses, &found.large,
                                   &found.types, &code),
          "MPI_Type_get_envelope_c");
  } else if (call.type_get_envelope != nullptr) {
    int integers = 0;
    int addresses = 0;
    int types = 0;
    check(call.type_get_envelope(type.value, &integers, &addresses, &types, &code),
          "MPI_Type_get_envelope");
    found.integers = integers;
    found.addresses = addresses;
    found.types = types;
  }
  found.combiner = combiner_of(code);
  return found;
}

struct Contents {
  std::vector<Count> numbers;
  std::vector<Word> types;
};

// MPI writes int handles as a packed array into the front of the array of words; here each gets its
// own word.
std::vector<Word> handles(const std::vector<Word>& words) {
  if (!library().abi.int_handles) return words;
  std::vector<std::uint32_t> ints(words.size());
  std::memcpy(ints.data(), words.data(), ints.size() * sizeof(std::uint32_t));
  return {ints.begin(), ints.end()};
}

Contents contents_of(Datatype type, const Envelope& envelope) {
  const Functions& call = library().call;
  std::vector<int> integers(static_cast<std::size_t>(envelope.integers));
  std::vector<Count> addresses(static_cast<std::size_t>(envelope.addresses));
  std::vector<Count> large(static_cast<std::size_t>(envelope.large));
  std::vector<Word> types(static_cast<std::size_t>(envelope.types));
  if (call.type_get_contents_c != nullptr) {
    check(call.type_get_contents_c(type.value, envelope.integers, envelope.addresses,
                                   envelope.large, envelope.types, integers.data(),
                                   addresses.data(), large.data(), types.data()),
          "MPI_Type_get_contents_c");
  } else {
    check(call.type_get_contents(
              type.value, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
              static_cast<int>(envelope.types), integers.data(), addresses.data(), types.data()),
          "MPI_Type_get_contents");
  }
  Contents found{{integers.begin(), integers.end()}, handles(types)};
  found.numbers.insert(found.numbers.end(), addresses.begin(), addresses.end());
  found.numbers.insert(found.numbers.end(), large.begin(), large.end());
  return found;
}

bool is_named(std::optional<Combiner> combiner) {
  return combiner == Combiner::named || combiner == Combiner::f90_real ||
         combiner == Combiner::f90_complex || combiner == Combiner::f90_integer;
}

}  // namespace

std::optional<DatatypeName> name_of(Datatype type) {
  if (const auto known = library().datatypes.find(type.value)) return known;
  if (type == datatype_null()) return std::nullopt;
  const auto combiner = envelope_of(type).combiner;
  if (combiner == Combiner::f90_integer) return DatatypeName::integer;
  if (combiner == Combiner::f90_real) return DatatypeName::real;
  if (combiner == Combiner::f90_complex) return DatatypeName::complex;
  return std::nullopt;
}

Order order_of(Datatype type) { return TypeLayout(type).order(); }

bool consists_of(const TypeLayout& type, const std::function<bool(Datatype)>& accepts) {
  if (type.is_opaque()) return false;
  if (is_named(type.combiner_)) return accepts(type.named_);
  return std::ranges::all_of(type.parts_,
                             [&](const TypeLayout& part) { return consists_of(part, accepts); });
}

bool consists_of(Datatype type, const std::function<bool(Datatype)>& accepts) {
  return consists_of(TypeLayout(type), accepts);
}

TypeLayout::TypeLayout(Datatype type) {
  Budget budget;
  *this = TypeLayout(type, budget);
}

TypeLayout::TypeLayout(Datatype type, Budget& budget)
    : extent_(type_extent(type)), size_(type_size(type)) {
  read(type, budget);
  order_ = judge();
}

void TypeLayout::read(Datatype type, Budget& budget) {
  const Envelope envelope = envelope_of(type);
  if (!envelope.combiner) return;
  const auto numbers =
      static_cast<std::size_t>(envelope.integers + envelope.addresses + envelope.large);
  const auto parts = static_cast<std::size_t>(envelope.types);
  if (numbers > budget.numbers || parts > budget.parts) return;
  budget.numbers -= numbers;
  budget.parts -= parts;
  combiner_ = envelope.combiner;
  large_ = envelope.large > 0;
  if (is_named(combiner_)) {
    named_ = type;
    return;
  }
  Contents contents = contents_of(type, envelope);
  numbers_ = std::move(contents.numbers);
  add_parts(contents.types, budget);
}

// What MPI_Type_get_contents gives must be freed, but for what the program has not made either.
void TypeLayout::add_parts(const std::vector<Word>& types, Budget& budget) {
  parts_.reserve(types.size());
  for (Word word : types) {
    parts_.push_back(TypeLayout({word}, budget));
    if (!library().datatypes.find(word) && !is_named(envelope_of({word}).combiner)) {
      library().call.type_free(&word);
    }
  }
}

bool TypeLayout::is_gapless() const noexcept {
  return order_ == Order::ascending && extent_.true_bytes == size_;
}

template <class Visit>
bool TypeLayout::for_each_listed(const Visit& visit) const {
  const bool of_blocks =
      combiner_ == Combiner::indexed_block || combiner_ == Combiner::hindexed_block;
  const bool in_bytes = combiner_ == Combiner::hindexed || combiner_ == Combiner::hindexed_block ||
                        combiner_ == Combiner::structure;
  const Count unit = in_bytes || parts_.empty() ? 1 : parts_[0].extent_.bytes;
  const auto count = static_cast<std::size_t>(numbers_.at(0));
  const std::size_t places = of_blocks ? 2 : 1 + count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t part = combiner_ == Combiner::structure ? i : 0;
    const Count length = numbers_.at(of_blocks ? 1 : 1 + i);
    if (!visit(Row{part, numbers_.at(places + i) * unit, length})) return false;
  }
  return true;
}

// With large counts, the dimensions come first, then the order, then the arrays; else the order
// comes last.
Count TypeLayout::of_subarray(std::size_t array, std::size_t dimension) const {
  const auto dimensions = static_cast<std::size_t>(numbers_.at(0));
  const std::size_t arrays = large_ ? 2 : 1;
  const bool c_order = numbers_.at(large_ ? 1 : numbers_.size() - 1) == library().abi.order_c;
  const std::size_t place = c_order ? dimension : dimensions - 1 - dimension;
  return numbers_.at(arrays + array * dimensions + place);
}

template <class Visit>
bool TypeLayout::for_each_of_subarray(const Visit& visit) const {
  const auto dimensions = static_cast<std::size_t>(numbers_.at(0));
  std::vector<Count> place(dimensions, 0);
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (of_subarray(1, d) == 0) return true;
  }
  while (true) {
    Count first = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      first = first * of_subarray(0, d) + of_subarray(2, d) + place[d];
    }
    const Row row{0, first * parts_[0].extent_.bytes, of_subarray(1, dimensions - 1)};
    if (!visit(row)) return false;
    std::size_t d = dimensions - 1;
    while (d > 0 && ++place[d - 1] == of_subarray(1, d - 1)) place[--d] = 0;
    if (d == 0) return true;
  }
}

template <class Visit>
bool TypeLayout::for_each_row(const Visit& visit) const {
  switch (*combiner_) {
    case Combiner::dup:
    case Combiner::resized:
      return visit(Row{0, 0, 1});
    case Combiner::contiguous:
      return visit(Row{0, 0, numbers_.at(0)});
    case Combiner::vector:
    case Combiner::hvector: {
      const Count unit = combiner_ == Combiner::vector ? parts_.at(0).extent_.bytes : 1;
      for (Count i = 0; i < numbers_.at(0); ++i) {
        if (!visit(Row{0, i * numbers_.at(2) * unit, numbers_.at(1)})) return false;
      }
      return true;
    }
    case Combiner::subarray:
      return for_each_of_subarray(visit);
    case Combiner::darray:
      return for_each_of_distributed(visit);
    default:
      return for_each_listed(visit);
  }
}

bool TypeLayout::visit_rows(const std::function<bool(const Row&)>& visit) const {
  return for_each_row(visit);
}

// `end` is where the data before the row ends, and then where those of the row do.
bool TypeLayout::ascends(const Row& row, Count& end) const {
  const TypeLayout& part = parts_.at(row.part);
  if (row.count <= 0 || part.size_ == 0) return true;
  const TypeExtent& one = part.extent_;
  const Count begin = row.first + one.true_lower;
  if (begin < end || (row.count > 1 && one.bytes < one.true_bytes)) return false;
  end = begin + (row.count - 1) * one.bytes + one.true_bytes;
  return true;
}

Order TypeLayout::judge() const {
  if (is_opaque()) return Order::unknown;
  if (is_named(combiner_)) return Order::ascending;
  for (const TypeLayout& part : parts_) {
    if (part.order_ != Order::ascending) return part.order_;
  }
  Count end = INT64_MIN;
  // The rows of these types lie at equal distances, so two of them tell of all. Those of a subarray
  // cannot overlap.
  const bool equal = combiner_ == Combiner::vector || combiner_ == Combiner::hvector ||
                     combiner_ == Combiner::subarray;
  int rows = 0;
  bool ascending = true;
  for_each_row([&](const Row& row) {
    ascending = ascends(row, end);
    return ascending && !(equal && ++rows == 2);
  });
  return ascending ? Order::ascending : Order::other;
}

template <class Move>
void TypeLayout::walk(std::uintptr_t data, std::byte*& packed, const Move& move) const {
  const auto bytes = [&](Count offset, Count length) {
    move(data + static_cast<std::uintptr_t>(offset), packed, static_cast<std::size_t>(length));
    packed += length;
  };
  if (size_ == 0) return;
  if (is_gapless()) return bytes(extent_.true_lower, size_);
  if (is_named(combiner_)) {  // a pair with a gap before its index
    const Count index = sizeof(int);
    bytes(0, size_ - index);
    return bytes(extent_.true_bytes - index, index);
  }
  for_each_row([&](const Row& row) {
    const TypeLayout& part = parts_.at(row.part);
    if (part.is_gapless() && part.extent_.bytes == part.size_) {
      bytes(row.first + part.extent_.true_lower, row.count * part.size_);
      return true;
    }
    for (Count i = 0; i < row.count; ++i) {
      part.walk(data + static_cast<std::uintptr_t>(row.first + i * part.extent_.bytes), packed,
                move);
    }
    return true;
  });
}

namespace {

void require_known(Order order) {
  if (order != Order::unknown) return;
  throw Error(ErrorCode::unsupported,
              "type: an element of 2 GiB or more, of more than a million blocks, in an MPI without "
              "MPI_Pack_c; use smaller elements");
}

}  // namespace

void TypeLayout::pack(const void* data, void* packed) const {
  require_known(order_);
  auto* to = static_cast<std::byte*>(packed);
  walk(address(data), to, [](std::uintptr_t memory, std::byte* place, std::size_t bytes) {
    std::memcpy(place, reinterpret_cast<const void*>(memory), bytes);
  });
}

void TypeLayout::unpack(const void* packed, void* data) const {
  require_known(order_);
  auto* from = static_cast<std::byte*>(const_cast<void*>(packed));
  walk(address(data), from, [](std::uintptr_t memory, std::byte* place, std::size_t bytes) {
    std::memcpy(reinterpret_cast<void*>(memory), place, bytes);
  });
}

}  // namespace ropewalk::mpi
