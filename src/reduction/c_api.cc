// This file is the C interface of repeated reductions. What is wrong on one rank is an error on all
// of them.
#include <string>
#include <vector>

#include "c_call.hpp"
#include "c_types.hpp"
#include "mpi/collectively.hpp"
#include "reduction/reduction_plan_state.hpp"

struct rw_plan {
  ropewalk::reduction::ReductionPlanState state;
};

namespace ropewalk {
namespace {

constexpr std::size_t fuse_none = ~std::size_t{0};

std::vector<PlanTensor> tensors_of(int count, const rw_plan_tensor* tensor) {
  if (count < 0) {
    throw Error(ErrorCode::argument,
                "tensors: " + std::to_string(count) + ", expected 0 or more; pass their number");
  }
  if (count > 0) require_argument(tensor, "tensor");
  std::vector<PlanTensor> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    out.push_back({tensor[i].count,
                   own_type(tensor[i].type, "tensor[" + std::to_string(i) + "].type"),
                   tensor[i].input, tensor[i].output});
  }
  return out;
}

ReductionPlanOptions options_of(const rw_plan_options* given) {
  ReductionPlanOptions options;
  if (given == nullptr) return options;
  if (given->op != 0) options.op = own_op(given->op, "options.op");
  options.average = given->average != 0;
  if (given->bucket_bytes != 0) options.bucket_bytes = given->bucket_bytes;
  if (given->fuse_bytes == fuse_none) {
    options.fuse_bytes = 0;
  } else if (given->fuse_bytes != 0) {
    options.fuse_bytes = given->fuse_bytes;
  }
  options.thread = given->no_thread == 0;
  options.threads = given->threads;
  return options;
}

template <class Body>
int with_plan(rw_plan* plan, Body&& body) {
  return c_call([&] {
    require_argument(plan, "plan");
    body(plan->state);
  });
}

}  // namespace
}  // namespace ropewalk

using ropewalk::c_call;
using ropewalk::require_argument;
using ropewalk::with_plan;
using ropewalk::reduction::ReductionPlanState;

extern "C" {

int rw_plan_create(rw_mpi_comm comm, int tensors, const rw_plan_tensor* tensor,
                   const rw_plan_options* options, rw_plan** out) {
  return c_call([&] {
    const ropewalk::mpi::Comm parent{comm};
    std::vector<ropewalk::PlanTensor> list;
    ropewalk::ReductionPlanOptions chosen;
    ropewalk::mpi::collectively(parent, [&] {
      require_argument(out, "out");
      list = ropewalk::tensors_of(tensors, tensor);
      chosen = ropewalk::options_of(options);
    });
    ropewalk::mpi::collectively(
        parent, [&] { *out = new rw_plan{ReductionPlanState(parent, list, chosen)}; });
  });
}

int rw_plan_free(rw_plan* plan) {
  return c_call([&] { delete plan; });
}

int rw_plan_buckets(const rw_plan* plan, int* out) {
  return c_call([&] {
    require_argument(plan, "plan");
    require_argument(out, "out");
    *out = plan->state.tensors().buckets();
  });
}

int rw_plan_bucket_of(const rw_plan* plan, int tensor, int* out) {
  return c_call([&] {
    require_argument(plan, "plan");
    require_argument(out, "out");
    *out = plan->state.tensors().bucket_of(tensor);
  });
}

int rw_plan_bind(rw_plan* plan, int tensor, const void* input, void* output) {
  return with_plan(plan, [&](ReductionPlanState& state) { state.bind(tensor, input, output); });
}

int rw_plan_data(const rw_plan* plan, int tensor, void** out) {
  return c_call([&] {
    require_argument(plan, "plan");
    require_argument(out, "out");
    *out = plan->state.tensors().memory_of(tensor);
  });
}

int rw_plan_start_bucket(rw_plan* plan, int bucket) {
  return with_plan(plan, [&](ReductionPlanState& state) { state.start(bucket); });
}

int rw_plan_start(rw_plan* plan) {
  return with_plan(plan, [](ReductionPlanState& state) { state.start_all(); });
}

int rw_plan_ready(rw_plan* plan, int tensor) {
  return with_plan(plan, [&](ReductionPlanState& state) { state.ready(tensor); });
}

int rw_plan_test(rw_plan* plan, int bucket, int* done) {
  return with_plan(plan, [&](ReductionPlanState& state) {
    require_argument(done, "done");
    const bool all = bucket == -1;
    *done =
        (all ? state.test_all(state.rounds()) : state.test(bucket, state.round_of(bucket))) ? 1 : 0;
  });
}

int rw_plan_wait(rw_plan* plan, int bucket) {
  return with_plan(plan, [&](ReductionPlanState& state) {
    if (bucket == -1) {
      state.wait_all(state.rounds());
    } else {
      state.wait(bucket, state.round_of(bucket));
    }
  });
}

int rw_plan_reduce(rw_plan* plan) {
  return with_plan(plan, [](ReductionPlanState& state) { state.reduce_all(); });
}
}
