#include "mpi/fallback_cases.hpp"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::test {
namespace {

namespace fallback = mpi::fallback;
using Values = std::vector<std::int64_t>;
using Sizes = std::vector<std::size_t>;

// Element i of rank r: sums and positions are told apart by every r and i.
std::int64_t value(std::size_t rank, std::size_t i) {
  return static_cast<std::int64_t>((rank + 1) * 1000003 + i * (rank + 7));
}

class Cases {
 public:
  Cases(mpi::Comm comm, std::size_t count, const Check& check, mpi::Waiter* waiter)
      : comm_(comm),
        n_(static_cast<std::size_t>(mpi::size(comm))),
        me_(static_cast<std::size_t>(mpi::rank(comm))),
        count_(count),
        check_(check),
        waiter_(waiter) {
    // Rank r's block has count + r elements, and a gap of one element follows each.
    std::size_t end = 0;
    for (std::size_t r = 0; r < n_; ++r) {
      counts_.push_back(count_ + r);
      offsets_.push_back(end);
      end += counts_.back() + 1;
    }
    room_ = end;
  }

  void reductions() {
    const Values in = own(count_);
    Values out(count_);
    fallback::allreduce(in.data(), out.data(), count_, type_, sum_, comm_, waiter_);
    expect(out, sums(count_, n_), "allreduce");
    out = in;
    fallback::allreduce(mpi::in_place(), out.data(), count_, type_, sum_, comm_, waiter_);
    expect(out, sums(count_, n_), "allreduce in place");

    for (std::size_t root = 0; root < n_; ++root) {
      out = in;
      const bool at_root = root == me_;
      fallback::reduce(at_root ? mpi::in_place() : in.data(), at_root ? out.data() : nullptr,
                       count_, type_, sum_, static_cast<int>(root), comm_, waiter_);
      if (at_root) expect(out, sums(count_, n_), "reduce in place");
    }
    fallback::scan(in.data(), out.data(), count_, type_, sum_, comm_, waiter_);
    expect(out, sums(count_, me_ + 1), "scan");
    out = in;
    fallback::exscan(mpi::in_place(), out.data(), count_, type_, sum_, comm_, waiter_);
    if (me_ > 0) expect(out, sums(count_, me_), "exscan in place");
  }

  void scattered_reductions(bool in_place) {
    const std::size_t total = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
    const std::size_t before =
        std::accumulate(counts_.begin(), counts_.begin() + me_, std::size_t{0});
    Values in = own(total);
    Values out(in_place ? in : Values(counts_[me_]));
    fallback::reduce_scatter(in_place ? mpi::in_place() : in.data(), out.data(), counts_.data(),
                             type_, sum_, comm_, waiter_);
    out.resize(counts_[me_]);
    expect(out, part(sums(total, n_), before, counts_[me_]), "reduce_scatter");

    in = own(count_ * n_);
    out = in_place ? in : Values(count_);
    fallback::reduce_scatter_block(in_place ? mpi::in_place() : in.data(), out.data(), count_,
                                   type_, sum_, comm_, waiter_);
    out.resize(count_);
    expect(out, part(sums(count_ * n_, n_), me_ * count_, count_), "reduce_scatter_block");
  }

  void blocks(int root) {
    Values data = own(count_);
    fallback::broadcast(data.data(), count_, type_, root, comm_, waiter_);
    expect(data, of(static_cast<std::size_t>(root), count_), "broadcast");

    Values all(count_ * n_, -1);
    fallback::allgather(own(count_).data(), count_, type_, all.data(), count_, type_, comm_,
                        waiter_);
    expect(all, gathered(), "allgather");
    all.assign(count_ * n_, -1);
    std::copy_n(own(count_).begin(), count_,
                all.begin() + static_cast<std::ptrdiff_t>(me_ * count_));
    fallback::allgather(mpi::in_place(), 0, type_, all.data(), count_, type_, comm_, waiter_);
    expect(all, gathered(), "allgather in place");

    all.assign(count_ * n_, -1);
    fallback::gather(own(count_).data(), count_, type_, all.data(), count_, type_, root, comm_,
                     waiter_);
    if (at(root)) expect(all, gathered(), "gather");
    Values mine(count_, -1);
    fallback::scatter(gathered().data(), count_, type_, mine.data(), count_, type_, root, comm_,
                      waiter_);
    expect(mine, own(count_), "scatter");

    // Block j of rank i arrives as block i of rank j.
    all.assign(count_ * n_, -1);
    const Values out = own(count_ * n_);
    fallback::alltoall(out.data(), count_, type_, all.data(), count_, type_, comm_, waiter_);
    for (std::size_t r = 0; r < n_; ++r) {
      expect(part(all, r * count_, count_), part(of(r, count_ * n_), me_ * count_, count_),
             "alltoall");
    }
  }

  void vectors(int root, bool in_place) {
    Values all = laid_out(in_place);
    fallback::allgatherv(in_place ? mpi::in_place() : own(counts_[me_]).data(), counts_[me_], type_,
                         all.data(), counts_.data(), offsets_.data(), type_, comm_, waiter_);
    expect(all, laid_out_all(), "allgatherv");

    const bool replaced = in_place && at(root);
    all = laid_out(replaced);
    fallback::gatherv(replaced ? mpi::in_place() : own(counts_[me_]).data(), counts_[me_], type_,
                      all.data(), counts_.data(), offsets_.data(), type_, root, comm_, waiter_);
    if (at(root)) expect(all, laid_out_all(), "gatherv");

    Values mine(counts_[me_], -1);
    fallback::scatterv(laid_out_all().data(), counts_.data(), offsets_.data(), type_,
                       replaced ? mpi::in_place() : mine.data(), mine.size(), type_, root, comm_,
                       waiter_);
    if (!replaced) expect(mine, own(counts_[me_]), "scatterv");
    exchange(in_place);
  }

  // The blocks have few bytes, but every other rank wants them far apart: beyond an int where tests
  // make that 100.
  void far_blocks(bool in_place) {
    constexpr std::size_t stride = 101;
    const std::size_t step = me_ % 2 == 0 ? stride : 1;
    const Sizes ones(n_, 1);
    Sizes places;
    for (std::size_t r = 0; r < n_; ++r) places.push_back((r + 1) * step);
    Values all((n_ + 1) * step, -1);
    Values expected = all;
    for (std::size_t r = 0; r < n_; ++r) expected[places[r]] = value(r, 0);
    const Values mine = own(1);
    if (in_place) all[places[me_]] = mine[0];
    fallback::allgatherv(in_place ? mpi::in_place() : mine.data(), 1, type_, all.data(),
                         ones.data(), places.data(), type_, comm_);
    expect(all, expected, "allgatherv of blocks far apart");
  }

 private:
  // Both directions have blocks of counts_[i] + counts_[j] elements at multiples of twice the most.
  void exchange(bool in_place) {
    const std::size_t stride = 2 * counts_.back() + 1;
    Sizes lengths, offsets;
    for (std::size_t r = 0; r < n_; ++r) {
      lengths.push_back(counts_[r] + counts_[me_]);
      offsets.push_back(r * stride);
    }
    const Values out = own(stride * n_);
    Values in = in_place ? out : Values(stride * n_, -1);
    fallback::alltoallv(in_place ? mpi::in_place() : out.data(), lengths.data(), offsets.data(),
                        type_, in.data(), lengths.data(), offsets.data(), type_, comm_, waiter_);
    for (std::size_t r = 0; r < n_; ++r) {
      expect(part(in, offsets[r], lengths[r]), part(of(r, stride * n_), me_ * stride, lengths[r]),
             "alltoallv");
    }
  }

  bool at(int root) const { return static_cast<std::size_t>(root) == me_; }
  static Values of(std::size_t rank, std::size_t count) {
    Values data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = value(rank, i);
    return data;
  }
  Values own(std::size_t count) const { return of(me_, count); }
  static Values sums(std::size_t count, std::size_t ranks) {
    Values data(count);
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < count; ++i) data[i] += value(r, i);
    }
    return data;
  }
  static Values part(const Values& all, std::size_t first, std::size_t count) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  Values gathered() const {
    Values all;
    for (std::size_t r = 0; r < n_; ++r) {
      const Values one = of(r, count_);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  void lay_out(Values& all, std::size_t rank) const {
    const Values one = of(rank, counts_[rank]);
    std::copy(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(offsets_[rank]));
  }
  Values laid_out(bool with_own) const {
    Values all(room_, -1);
    if (with_own) lay_out(all, me_);
    return all;
  }
  Values laid_out_all() const {
    Values all(room_, -1);
    for (std::size_t r = 0; r < n_; ++r) lay_out(all, r);
    return all;
  }
  void expect(const Values& found, const Values& expected, const std::string& what) const {
    check_(found == expected, what + " of " + std::to_string(count_) + " elements");
  }

  mpi::Comm comm_;
  std::size_t n_, me_, count_;
  const Check& check_;
  mpi::Waiter* waiter_;
  Sizes counts_, offsets_;
  std::size_t room_ = 0;
  mpi::Datatype type_ = mpi::datatype(ElementType::int64);
  mpi::Op sum_ = mpi::op(ReductionOp::sum);
};

// The waiter has other things to look at between its tests, as a caller has.
class Tests final : public mpi::Waiter {
 public:
  void wait(mpi::Request& request) override {
    while (!mpi::test(request)) sched_yield();
  }
};

void try_with(mpi::Comm comm, std::size_t count, const Check& check, mpi::Waiter* waiter) {
  Cases cases(comm, count, check, waiter);
  fallback::barrier(comm, waiter);
  cases.reductions();
  for (const bool in_place : {false, true}) cases.scattered_reductions(in_place);
  for (const bool in_place : {false, true}) cases.far_blocks(in_place);
  const int last = mpi::size(comm) - 1;
  for (int root = 0; root <= last; root += std::max(1, last)) {  // the first and the last
    cases.blocks(root);
    for (const bool in_place : {false, true}) cases.vectors(root, in_place);
  }
}

}  // namespace

void try_fallbacks(mpi::Comm comm, std::size_t count, const Check& check) {
  try_with(comm, count, check, nullptr);
  Tests tests;
  mpi::Comm own = mpi::split(comm, 0, 0);
  try_with(own, count, check, &tests);
  mpi::free(own);
}

}  // namespace ropewalk::test
