#include "reduction/plan_tensors.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "collectives/datatypes.hpp"
#include "kernels/kernels.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::reduction {
namespace {

void check_index(const char* what, int index, int size) {
  if (index >= 0 && index < size) return;
  throw Error(ErrorCode::argument, std::string(what) + ": " + std::to_string(index) +
                                       ", expected 0 to " + std::to_string(size - 1));
}

}  // namespace

void PlanTensors::GiveBack::operator()(std::byte* block) const noexcept {
  Arena::process().deallocate(block);
}

PlanTensors::PlanTensors(const std::vector<PlanTensor>& given, std::vector<Bucket> buckets)
    : buckets_(std::move(buckets)), blocks_(buckets_.size()) {
  for (const PlanTensor& one : given) {
    Tensor& made = tensors_.emplace_back(Tensor{one.count * size_of(one.type), one.count});
    set_buffers(made, size() - 1, one.input, one.output);
  }
  for (int index = 0; index < this->buckets(); ++index) take_memory(index);
}

void PlanTensors::take_memory(int index) {
  const Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  const std::size_t element = size_of(bucket.type);
  const auto tensor_of = [this](const Piece& piece) -> Tensor& {
    return tensors_[static_cast<std::size_t>(piece.tensor)];
  };
  std::byte* block = nullptr;
  const bool wanted = bucket.fused || tensor_of(bucket.pieces[0]).output == nullptr;
  if (wanted && bucket.count > 0) {
    block =
        static_cast<std::byte*>(Arena::process().allocate(bucket.count * element, piece_alignment));
    blocks_[static_cast<std::size_t>(index)].reset(block);
    std::fill_n(block, bucket.count * element, std::byte{0});
  }
  for (const Piece& piece : bucket.pieces) {
    tensor_of(piece).bucket = index;
    if (block != nullptr) tensor_of(piece).memory = block + piece.offset * element;
  }
}

const PlanTensors::Tensor& PlanTensors::tensor(int index) const {
  check_index("tensor", index, size());
  return tensors_[static_cast<std::size_t>(index)];
}

const Bucket& PlanTensors::bucket(int index) const {
  check_index("bucket", index, buckets());
  return buckets_[static_cast<std::size_t>(index)];
}

void PlanTensors::bind(int index, const void* input, void* output) {
  const Tensor& one = tensor(index);
  const bool in_place = input == nullptr || collectives::is_in_place(input);
  if (output == nullptr && in_place && one.memory == nullptr && one.bytes > 0) {
    throw Error(ErrorCode::argument, "output: null for tensor " + std::to_string(index) +
                                         ", which has no memory of the plan; make the plan without "
                                         "buffers for it, or pass some");
  }
  set_buffers(tensors_[static_cast<std::size_t>(index)], index, input, output);
}

void PlanTensors::set_buffers(Tensor& one, int index, const void* input, void* output) {
  if (collectives::is_in_place(input)) input = nullptr;
  if (output == nullptr && input != nullptr && one.bytes > 0) {
    throw Error(ErrorCode::argument, "output: null for tensor " + std::to_string(index) +
                                         ", which has an input; pass where its result goes, or "
                                         "pass its buffer as output for in place");
  }
  one.output = output;
  one.input = input == nullptr ? output : input;
}

PlanTensors::Vector PlanTensors::pack(int index) const {
  const Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  if (!bucket.fused) {
    const Tensor& one = tensor(bucket.pieces[0].tensor);
    if (one.output == nullptr) return {one.memory, one.memory};
    return {one.input, one.output};
  }
  for (const Piece& piece : bucket.pieces) {
    const Tensor& one = tensor(piece.tensor);
    if (one.output == nullptr || one.bytes == 0) continue;
    kernels::copy(one.memory, one.input, one.bytes, kernels::Stores::temporal);
  }
  std::byte* const block = blocks_[static_cast<std::size_t>(index)].get();
  return {block, block};
}

void PlanTensors::unpack(int index, const collectives::Operation& operation, bool divide) const {
  const Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  for (const Piece& piece : bucket.pieces) {
    const Tensor& one = tensor(piece.tensor);
    if (one.bytes == 0) continue;
    void* output = one.output != nullptr ? one.output : one.memory;
    const void* result = bucket.fused ? one.memory : output;
    if (divide) {
      operation.average(&output, 1, &result, 1, one.count, operation.divisor,
                        kernels::Stores::temporal);
    } else if (output != result) {
      kernels::copy(output, result, one.bytes, kernels::Stores::temporal);
    }
  }
}

}  // namespace ropewalk::reduction
