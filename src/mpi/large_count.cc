#include "mpi/large_count.hpp"

#include <array>
#include <cstring>

namespace ropewalk::mpi {
namespace {

Word contiguous(std::size_t count, Word element) {
  Word made = 0;
  check(library().call.type_contiguous(static_cast<int>(count), element, &made),
        "MPI_Type_contiguous");
  return made;
}

Count extent(Word type) {
  Count lower = 0;
  Count bytes = 0;
  check(library().call.type_get_extent(type, &lower, &bytes), "MPI_Type_get_extent");
  return bytes;
}

Word joined(Word head, Word tail, Count tail_offset) {
  const std::array<int, 2> lengths{1, 1};
  const std::array<Count, 2> offsets{0, tail_offset};
  std::array<Word, 2> types{head, tail};
  if (library().abi.int_handles) {  // an array of ints: both in the first word
    const std::array<std::uint32_t, 2> ints{static_cast<std::uint32_t>(head),
                                            static_cast<std::uint32_t>(tail)};
    std::memcpy(types.data(), ints.data(), sizeof ints);
  }
  Word made = 0;
  check(library().call.type_create_struct(2, lengths.data(), offsets.data(), types.data(), &made),
        "MPI_Type_create_struct");
  return made;
}

}  // namespace

LargeType::LargeType(std::size_t count, Datatype element, std::size_t block) {
  const Functions& call = library().call;
  Word one_block = contiguous(block, element.value);
  Word head = contiguous(count / block, one_block);
  Word tail = contiguous(count % block, element.value);
  // Padding for alignment must not reach the extent: elements of the whole may follow each other.
  Word plain = joined(head, tail, extent(head));
  check(
      call.type_create_resized(plain, 0, static_cast<Count>(count) * extent(element.value), &type_),
      "MPI_Type_create_resized");
  for (Word* part : {&one_block, &head, &tail, &plain}) call.type_free(part);
  check(call.type_commit(&type_), "MPI_Type_commit");
}

LargeType::~LargeType() { library().call.type_free(&type_); }

}  // namespace ropewalk::mpi
