// The tensors of a plan, the buckets that they are reduced in, and the memory that these take.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/operation.hpp"
#include "reduction/buckets.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::reduction {

// Indices are the caller's: Error(argument) for one that is none. Shared, since memory that a
// program still uses stays when the plan has ended.
class PlanTensors : public std::enable_shared_from_this<PlanTensors> {
 public:
  // Takes all memory of the plan.
  PlanTensors(const std::vector<PlanTensor>& given, std::vector<Bucket> buckets);

  int size() const noexcept { return static_cast<int>(tensors_.size()); }
  int buckets() const noexcept { return static_cast<int>(buckets_.size()); }
  const Bucket& bucket(int index) const;
  int bucket_of(int index) const { return tensor(index).bucket; }
  void* memory_of(int index) const { return tensor(index).memory; }  // the plan's; null for none

  // Other buffers for a tensor; its bucket is not under way.
  void bind(int index, const void* input, void* output);

  // What a collective reduces for a bucket, after its fused tensors have been copied together.
  struct Vector {
    const void* input;
    void* output;
  };
  Vector pack(int bucket) const;
  // Copies results to their outputs; an average that is still a sum (`divide`) is divided in the
  // same pass.
  void unpack(int bucket, const collectives::Operation&, bool divide) const;

 private:
  struct Tensor {
    std::size_t bytes;
    std::size_t count;
    const void* input = nullptr;  // what the caller bound
    void* output = nullptr;       // null: the plan's memory
    std::byte* memory = nullptr;  // of the plan; null for none
    int bucket = 0;
  };
  struct GiveBack {
    void operator()(std::byte* block) const noexcept;
  };

  void take_memory(int bucket);
  const Tensor& tensor(int index) const;
  static void set_buffers(Tensor&, int index, const void* input, void* output);

  std::vector<Bucket> buckets_;
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<std::byte, GiveBack>> blocks_;  // one a bucket; null for none
};

}  // namespace ropewalk::reduction
