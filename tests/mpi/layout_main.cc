// What datatypes are made of, on a real MPI: random trees of every constructor. Their order and
// their bytes by mpi::TypeLayout against what MPI_Pack and MPI_Unpack make of them.
#include "mpi/layout.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "mpi/check.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"
#include "mpi/mpi.hpp"

namespace {

using namespace ropewalk;
using mpi::Count;
using mpi::DatatypeName;
using mpi::Word;

constexpr std::size_t room = std::size_t{1} << 15;  // of an element, on both sides of its beginning
constexpr int trees = 400;

// A function of the MPI at hand; handles are words, as in mpi/functions.hpp.
template <class... Arguments>
bool call(const char* name, Arguments... arguments) {
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(file, name));
  if (function == nullptr) return false;  // of MPI 4, in an older one
  mpi::check(function(arguments...), name);
  return true;
}

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  // Makes a committed type of so many levels; the caller frees it.
  Word make(int levels) {
    Word made = levels == 0 ? named() : constructed(make(levels - 1));
    return made;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  Word named() {
    constexpr DatatypeName names[] = {DatatypeName::byte_, DatatypeName::int_,
                                      DatatypeName::double_, DatatypeName::short_int,
                                      DatatypeName::double_int};
    const Word type = mpi::library().abi.datatype(names[below(5)]);
    Word made = 0;
    mpi::check(mpi::library().call.type_contiguous(1 + below(2), type, &made), "contiguous");
    return committed(made);
  }

  Word constructed(Word part) {
    Word made = 0;
    while (made == 0) made = attempt(part);
    mpi::library().call.type_free(&part);
    return committed(made);
  }

  static Word committed(Word type) {
    mpi::check(mpi::library().call.type_commit(&type), "MPI_Type_commit");
    return type;
  }

  std::vector<int> several(int least, int limit) {
    std::vector<int> numbers(3);
    for (int& number : numbers) number = least + below(limit);
    return numbers;
  }
  static std::vector<Count> wide(const std::vector<int>& numbers) {
    return {numbers.begin(), numbers.end()};
  }
  static Count extent(Word type) { return mpi::type_extent({type}).bytes; }

  Word attempt(Word part) {
    const std::vector<int> lengths = several(0, 3);
    const std::vector<int> places = several(-4, 12);
    std::vector<Count> offsets = wide(places);
    for (Count& offset : offsets) offset *= 1 + below(2) * (extent(part) - 1);
    Word made = 0;
    switch (below(16)) {
      case 0:
        call("PMPI_Type_dup", part, &made);
        break;
      case 1:
        call("PMPI_Type_contiguous", 1 + below(3), part, &made);
        break;
      case 2:
        call("PMPI_Type_vector", 1 + below(3), 1 + below(3), below(6) - 1, part, &made);
        break;
      case 3:
        call("PMPI_Type_create_hvector", 1 + below(3), 1 + below(2), Count{8} * (below(12) - 2),
             part, &made);
        break;
      case 4:
        call("PMPI_Type_indexed", 3, lengths.data(), places.data(), part, &made);
        break;
      case 5:
        call("PMPI_Type_create_hindexed", 3, lengths.data(), offsets.data(), part, &made);
        break;
      case 6:
        call("PMPI_Type_create_indexed_block", 3, 1 + below(2), places.data(), part, &made);
        break;
      case 7:
        call("PMPI_Type_create_hindexed_block", 3, 1 + below(2), offsets.data(), part, &made);
        break;
      case 8:
        structure(lengths, offsets, part, made);
        break;
      case 9:
      case 10:
        subarray(part, made);
        break;
      case 13:
      case 14:
        distributed(part, made);
        break;
      case 11:
        call("PMPI_Type_create_resized", part, Count{-8} * below(2), extent(part) + 8 * below(3),
             &made);
        break;
      case 12:
        call("PMPI_Type_create_struct_c", Count{3}, wide(lengths).data(), offsets.data(),
             handles(part).data(), &made);
        break;
      default:
        large_counts(lengths, part, made);
    }
    return made;
  }

  // Returns three times the same handle, as an array of the MPI's handles.
  static std::vector<std::byte> handles(Word part) {
    const std::size_t bytes = mpi::library().abi.int_handles ? sizeof(int) : sizeof part;
    std::vector<std::byte> all(3 * bytes);
    for (std::size_t i = 0; i < 3; ++i) std::memcpy(all.data() + i * bytes, &part, bytes);
    return all;
  }

  static void structure(const std::vector<int>& lengths, const std::vector<Count>& offsets,
                        Word part, Word& made) {
    call("PMPI_Type_create_struct", 3, lengths.data(), offsets.data(), handles(part).data(), &made);
  }

  void large_counts(const std::vector<int>& lengths, Word part, Word& made) {
    const std::vector<Count> places = wide(several(-4, 12));
    if (below(2) == 0) {
      call("PMPI_Type_vector_c", Count{3}, Count{1 + below(2)}, Count{below(5)}, part, &made);
    } else {
      call("PMPI_Type_indexed_c", Count{3}, wide(lengths).data(), places.data(), part, &made);
    }
  }

  // The part of a random rank of an array that is distributed in every way there is.
  void distributed(Word part, Word& made) {
    const mpi::Abi& abi = mpi::library().abi;
    const int cyclic = abi.distribute_block + 1;  // of the three ABIs
    const int dimensions = 1 + below(3);
    std::vector<int> sizes;
    std::vector<int> kinds;
    std::vector<int> arguments;
    std::vector<int> grid;
    int processes = 1;
    for (int d = 0; d < dimensions; ++d) {
      const int kind = below(3);
      sizes.push_back(1 + below(6));
      grid.push_back(kind == 0 ? 1 : 1 + below(3));
      kinds.push_back(kind == 0 ? abi.distribute_none : kind == 1 ? abi.distribute_block : cyclic);
      // A block distribution needs blocks that leave nothing over.
      const int least = kind == 1 ? (sizes.back() + grid.back() - 1) / grid.back() : 1;
      arguments.push_back(kind == 0 || below(2) == 0 ? abi.distribute_default : least + below(2));
      processes *= grid.back();
    }
    const int order = either_order();
    const int rank = below(processes);
    if (below(3) == 0) {
      call("PMPI_Type_create_darray_c", processes, rank, dimensions, wide(sizes).data(),
           kinds.data(), arguments.data(), grid.data(), order, part, &made);
    } else {
      call("PMPI_Type_create_darray", processes, rank, dimensions, sizes.data(), kinds.data(),
           arguments.data(), grid.data(), order, part, &made);
    }
  }

  int either_order() {
    const int c_order = mpi::library().abi.order_c;
    const int fortran = c_order == 12 ? 15 : c_order + 1;  // of the three ABIs
    return below(2) == 0 ? c_order : fortran;
  }

  void subarray(Word part, Word& made) {
    std::vector<int> sizes;
    std::vector<int> parts;
    std::vector<int> starts;
    const int dimensions = 1 + below(3);
    for (int d = 0; d < dimensions; ++d) {
      sizes.push_back(1 + below(4));
      parts.push_back(1 + below(sizes.back()));
      starts.push_back(below(sizes.back() - parts.back() + 1));
    }
    const int order = either_order();
    if (below(3) == 0) {
      call("PMPI_Type_create_subarray_c", dimensions, wide(sizes).data(), wide(parts).data(),
           wide(starts).data(), order, part, &made);
    } else {
      call("PMPI_Type_create_subarray", dimensions, sizes.data(), parts.data(), starts.data(),
           order, part, &made);
    }
  }

  std::mt19937 random_;
};

// Where each packed byte lay, from the beginning of the element: two digits of its place.
std::vector<std::size_t> places_of(mpi::Datatype type, std::size_t bytes) {
  std::vector<std::byte> memory(2 * room);
  std::vector<std::byte> packed(bytes);
  std::vector<std::size_t> places(bytes, 0);
  for (std::size_t shift = 0; shift < 16; shift += 8) {
    for (std::size_t at = 0; at < memory.size(); ++at) {
      memory[at] = static_cast<std::byte>(at >> shift);
    }
    mpi::pack(memory.data() + room, 1, type, packed.data(), mpi::comm_self());
    for (std::size_t i = 0; i < bytes; ++i) {
      places[i] |= static_cast<std::size_t>(packed[i]) << shift;
    }
  }
  return places;
}

bool ascends(const std::vector<std::size_t>& places) {
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] <= places[i - 1]) return false;
  }
  return true;
}

// Counts per order: a test that sees one kind alone proves nothing.
int ascending = 0;
int shuffled = 0;

void check(mpi::Datatype type, const std::string& what) {
  const auto bytes = static_cast<std::size_t>(mpi::type_size(type));
  const mpi::TypeExtent extent = mpi::type_extent(type);
  const auto half = static_cast<Count>(room / 2);
  if (bytes == 0 || extent.true_lower < -half || extent.true_lower + extent.true_bytes > half) {
    return;
  }
  const mpi::TypeLayout layout(type);
  const bool expected = ascends(places_of(type, bytes));
  test::expect(layout.order() == (expected ? mpi::Order::ascending : mpi::Order::other),
               what + ": order");
  ++(expected ? ascending : shuffled);
  std::mt19937 random(3);
  std::vector<std::byte> memory(2 * room);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
  std::vector<std::byte> by_mpi(bytes);
  std::vector<std::byte> by_layout(bytes);
  mpi::pack(memory.data() + room, 1, type, by_mpi.data(), mpi::comm_self());
  layout.pack(memory.data() + room, by_layout.data());
  test::expect(by_mpi == by_layout, what + ": packed");
  std::vector<std::byte> there(2 * room);
  std::vector<std::byte> here(2 * room);
  mpi::unpack(by_mpi.data(), there.data() + room, 1, type, mpi::comm_self());
  layout.unpack(by_mpi.data(), here.data() + room);
  test::expect(there == here, what + ": unpacked");
}

}  // namespace

int main() {
  try {
    mpi::init(mpi::ThreadLevel::single);
    for (unsigned tree = 0; tree < trees; ++tree) {
      Word type = Maker(tree).make(1 + static_cast<int>(tree % 3));
      check({type}, "tree " + std::to_string(tree));
      mpi::library().call.type_free(&type);
    }
    test::expect(ascending > trees / 10 && shuffled > trees / 10, "types of both kinds");
    mpi::finalize();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
  return test::exit_code();
}
