// The data of a datatype as strided blocks: what subarrays, vectors and their like come down to is
// one block of a few levels, whatever they are nested in.
#include <algorithm>

#include "mpi/layout.hpp"

namespace ropewalk::mpi {
namespace {

using Blocks = TypeLayout::Blocks;

// Puts `count` copies of a list, `stride` apart, in its place.
bool repeat(Blocks& blocks, Count count, Count stride, std::size_t most) {
  if (count <= 0) blocks.clear();
  if (count <= 1 || blocks.empty()) return true;
  if (blocks.size() == 1 && mpi::repeat(blocks[0], count, stride)) return true;
  const std::size_t one = blocks.size();
  if (one > most / static_cast<std::size_t>(count)) return false;
  for (Count i = 1; i < count; ++i) {
    for (std::size_t b = 0; b < one; ++b) {
      StridedBlock next = blocks[b];
      next.offset += i * stride;
      blocks.push_back(next);
    }
  }
  return true;
}

void shift(Blocks& blocks, Count bytes) {
  for (StridedBlock& block : blocks) block.offset += bytes;
}

// Two runs that touch are one.
void append(Blocks& to, const Blocks& more) {
  for (const StridedBlock& block : more) {
    const bool touches = !to.empty() && to.back().levels == 0 && block.levels == 0 &&
                         to.back().offset + to.back().run == block.offset;
    if (touches) {
      to.back().run += block.run;
    } else {
      to.push_back(block);
    }
  }
}

bool same_shape(const StridedBlock& a, const StridedBlock& b) {
  const auto same = [](const StridedBlock::Level& x, const StridedBlock::Level& y) {
    return x.count == y.count && x.stride == y.stride;
  };
  return a.run == b.run && a.levels == b.levels &&
         std::equal(a.level.begin(), a.level.begin() + static_cast<std::ptrdiff_t>(a.levels),
                    b.level.begin(), same);
}

// Blocks of one shape at equal distances, as of an indexed type that could be a vector, are one.
void fold(Blocks& blocks) {
  if (blocks.size() < 2) return;
  const Count stride = blocks[1].offset - blocks[0].offset;
  for (std::size_t b = 1; b < blocks.size(); ++b) {
    if (!same_shape(blocks[0], blocks[b])) return;
    if (blocks[b].offset - blocks[b - 1].offset != stride) return;
  }
  if (mpi::repeat(blocks[0], static_cast<Count>(blocks.size()), stride)) blocks.resize(1);
}

}  // namespace

bool repeat(StridedBlock& block, std::int64_t count, std::int64_t stride) {
  if (count == 1) return true;
  if (block.levels == 0 && stride == block.run) {
    block.run *= count;
    return true;
  }
  if (block.levels > 0) {
    StridedBlock::Level& outer = block.level[block.levels - 1];
    if (stride == outer.count * outer.stride) {
      outer.count *= count;
      return true;
    }
  }
  if (block.levels == StridedBlock::most_levels) return false;
  block.level[block.levels++] = {count, stride};
  return true;
}

std::optional<std::vector<StridedBlock>> strided_blocks(Datatype type, std::size_t most) {
  return TypeLayout(type).blocks(most);
}

std::optional<Blocks> TypeLayout::blocks(std::size_t most) const {
  if (is_opaque()) return std::nullopt;
  if (size_ == 0) return Blocks{};
  if (is_gapless()) return Blocks{{extent_.true_lower, size_, 0, {}}};
  switch (*combiner_) {
    case Combiner::named:
    case Combiner::f90_real:
    case Combiner::f90_complex:
    case Combiner::f90_integer: {  // a pair with a gap before its index
      const Count index = sizeof(int);
      return Blocks{{0, size_ - index, 0, {}}, {extent_.true_bytes - index, index, 0, {}}};
    }
    case Combiner::vector:
    case Combiner::hvector:
      return blocks_of_vector(most);
    case Combiner::subarray:
      return blocks_of_subarray(most);
    default:
      return listed_blocks(most);
  }
}

std::optional<Blocks> TypeLayout::blocks_of_vector(std::size_t most) const {
  std::optional<Blocks> found = parts_.at(0).blocks(most);
  const Count one = parts_[0].extent_.bytes;
  const Count stride = numbers_.at(2) * (combiner_ == Combiner::vector ? one : 1);
  if (!found || !repeat(*found, numbers_.at(1), one, most)) return std::nullopt;
  if (!repeat(*found, numbers_.at(0), stride, most)) return std::nullopt;
  return found;
}

std::optional<Blocks> TypeLayout::blocks_of_subarray(std::size_t most) const {
  std::optional<Blocks> found = parts_.at(0).blocks(most);
  Count stride = parts_[0].extent_.bytes;
  Count first = 0;
  for (auto d = static_cast<std::size_t>(numbers_.at(0)); d-- > 0;) {
    if (!found || !repeat(*found, of_subarray(1, d), stride, most)) return std::nullopt;
    first += of_subarray(2, d) * stride;
    stride *= of_subarray(0, d);
  }
  shift(*found, first);
  return found;
}

std::optional<Blocks> TypeLayout::listed_blocks(std::size_t most) const {
  std::vector<std::optional<Blocks>> parts;
  for (const TypeLayout& part : parts_) {
    parts.push_back(part.blocks(most));
    if (!parts.back()) return std::nullopt;
  }
  Blocks all;
  const bool complete = visit_rows([&](const Row& row) {
    if (row.count <= 0) return true;
    Blocks blocks = *parts[row.part];
    if (!repeat(blocks, row.count, parts_[row.part].extent_.bytes, most)) return false;
    shift(blocks, row.first);
    append(all, blocks);
    return all.size() <= most;
  });
  if (!complete) return std::nullopt;
  fold(all);
  return all;
}

}  // namespace ropewalk::mpi
