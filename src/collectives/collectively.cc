// This file turns an error of one rank into an error of all by ropewalk's own collectives: short
// messages cost least there, and ranks that wait notice the dead.
#include "mpi/collectively.hpp"

#include "ropewalk/collectives.hpp"

namespace ropewalk {
namespace {

class FailuresByCollectives final : public mpi::FailureExchange {
 public:
  explicit FailuresByCollectives(Collectives& ranks) noexcept : ranks_(ranks) {}
  // No handle of a communicator: those are addresses, or numbers of 32 bits.
  std::uint64_t id() const noexcept override {
    return ~static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&ranks_));
  }
  int rank() const override { return ranks_.rank(); }
  void least(std::array<std::int64_t, 2>& values) const override {
    ranks_.allreduce(in_place, values.data(), values.size(), ElementType::int64, ReductionOp::min);
  }
  void tell(mpi::Failure& failure, int root) const override {
    ranks_.broadcast(&failure, sizeof failure, root);
  }

 private:
  Collectives& ranks_;
};

}  // namespace

void collectively(Collectives& ranks, const Work& work) {
  mpi::collectively(FailuresByCollectives(ranks), work);
}

void meet(Collectives& ranks) { mpi::meet(FailuresByCollectives(ranks)); }

}  // namespace ropewalk
