// This file has collectives that combine data, in all modes.
#include <cstring>
#include <iterator>

#include "kinds.hpp"
#include "operations.hpp"

namespace mixed {

namespace {

enum class Of { allreduce, reduce, scan, exscan, reduce_scatter, reduce_scatter_block };
constexpr const char* names[] = {"Allreduce", "Reduce",         "Scan",
                                 "Exscan",    "Reduce_scatter", "Reduce_scatter_block"};

class Combination final : public Operation {
 public:
  Combination(Of of, Kind kind, const Data& data, std::size_t root, bool in_place)
      : of_(of), kind_(kind), data_(data), drawn_root_(root), in_place_(in_place) {}

  std::string text() const override {
    return std::string(names[static_cast<int>(of_)]) + " (" + kind_.name + ") of " +
           std::to_string(data_.bytes) + " B" + (in_place_ ? " in place" : "");
  }
  void prepare(const Comm&) override;
  void fill(std::size_t round) override;
  void call(Mode mode, MPI_Comm comm) override;
  void check(std::size_t round) override;

 private:
  // What stands in the result afterwards: these elements, of all ranks from the first on.
  struct Result {
    std::size_t begin, elements;
    int last;  // rank; below 0 there is no result
  };
  Result result() const;
  std::uint64_t key(std::size_t round) const { return mix(data_.key + round); }
  std::size_t part(int rank) const;
  std::size_t part_begin(int rank) const;
  // In place only where a rank gets a result.
  bool is_in_place() const { return in_place_ && (of_ != Of::reduce || me_ == root_); }

  Of of_;
  Kind kind_;
  Data data_;
  std::size_t drawn_root_;
  bool in_place_;
  int me_ = 0, size_ = 0, root_ = 0;
  std::size_t elements_ = 0;  // that each rank gives
  std::vector<int> parts_;
  std::unique_ptr<Buffer> in_, out_;
};

std::size_t Combination::part(int rank) const {
  const std::size_t count = data_.bytes / kind_.bytes;
  if (of_ == Of::reduce_scatter_block) return count;
  return mix(data_.key + static_cast<std::uint64_t>(rank)) % (count + 1);
}

std::size_t Combination::part_begin(int rank) const {
  std::size_t begin = 0;
  for (int i = 0; i < rank; ++i) begin += part(i);
  return begin;
}

void Combination::prepare(const Comm& comm) {
  me_ = comm.index;
  size_ = comm.own->size();
  root_ = static_cast<int>(drawn_root_ % static_cast<std::size_t>(size_));
  const bool scatters = of_ == Of::reduce_scatter || of_ == Of::reduce_scatter_block;
  elements_ = scatters ? part_begin(size_) : data_.bytes / kind_.bytes;
  for (int i = 0; scatters && i < size_; ++i) parts_.push_back(static_cast<int>(part(i)));
  const bool mapped = data_.mapped != ((data_.key >> (me_ % 32)) % 3 == 0);
  in_ = std::make_unique<Buffer>(bytes_layout(), elements_ * kind_.bytes, mapped);
  out_ = std::make_unique<Buffer>(bytes_layout(), elements_ * kind_.bytes,
                                  data_.key % 2 == 0 ? mapped : !mapped);
}

void Combination::fill(std::size_t round) {
  kind_.fill(in_->data(), elements_, key(round), me_);
  if (is_in_place()) kind_.fill(out_->data(), elements_, key(round), me_);
}

Combination::Result Combination::result() const {
  switch (of_) {
    case Of::reduce:
      return {0, elements_, me_ == root_ ? size_ - 1 : -1};
    case Of::scan:
      return {0, elements_, me_};
    case Of::exscan:
      return {0, elements_, me_ - 1};
    case Of::allreduce:
      return {0, elements_, size_ - 1};
    default:
      return {part_begin(me_), part(me_), size_ - 1};
  }
}

void Combination::check(std::size_t round) {
  const Result of = result();
  if (of.last < 0) return;
  const std::size_t step = of.elements > 30000 ? 7 : 1;  // a few of very many
  char expected[16];
  bool right = true;
  for (std::size_t i = 0; i < of.elements; i += step) {
    kind_.combined(expected, of.begin + i, key(round), 0, of.last);
    right &= std::memcmp(expected, out_->element(i * kind_.bytes), kind_.bytes) == 0;
  }
  expect(right, "the numbers of a reduction that was set up or started");
  digest_bytes(out_->data(), of.elements * kind_.bytes, key(round));
}

void Combination::call(Mode mode, MPI_Comm comm) {
  const void* const from = is_in_place() ? MPI_IN_PLACE : in_->data();
  void* const to = out_->data();
  const int count = static_cast<int>(elements_);
  const MPI_Datatype type = kind_.type;
  const MPI_Op op = kind_.op;
  switch (of_) {
    case Of::allreduce:
      return MIXED_CALL(Allreduce, Iallreduce, from, to, count, type, op, comm);
    case Of::reduce:
      return MIXED_CALL(Reduce, Ireduce, from, to, count, type, op, root_, comm);
    case Of::scan:
      return MIXED_CALL(Scan, Iscan, from, to, count, type, op, comm);
    case Of::exscan:
      return MIXED_CALL(Exscan, Iexscan, from, to, count, type, op, comm);
    case Of::reduce_scatter:
      return MIXED_CALL(Reduce_scatter, Ireduce_scatter, from, to, parts_.data(), type, op, comm);
    case Of::reduce_scatter_block:
      return MIXED_CALL(Reduce_scatter_block, Ireduce_scatter_block, from, to, parts_[0], type, op,
                        comm);
  }
}

}  // namespace

std::unique_ptr<Operation> draw_combination(Random& random) {
  const std::size_t of = random.below(std::size(names));
  const Kind kind = kind_of(random.next() >> 8);
  const Data data = draw_data(random, of >= 4 ? 100000 : 400000);
  const bool in_place = random.chance(25);
  const std::size_t root = random.next() >> 8;
  return std::make_unique<Combination>(static_cast<Of>(of), kind, data, root, in_place);
}

}  // namespace mixed
