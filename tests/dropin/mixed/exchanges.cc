// This file has collectives that move data, in all modes, with other sizes and types for each block
// where MPI allows them. Every rank knows what each must hold afterwards.
#include <iterator>

#include "operations.hpp"
#include "pieces.hpp"

namespace mixed {

namespace {

enum class Shape {
  barrier,
  broadcast,
  gather,
  scatter,
  allgather,
  alltoall,
  neighbour_gather,
  neighbour
};
// Blocks of one size; of any size; of any size and type.
enum class Sizes { equal, any, typed };

struct Form {
  const char* name;
  Shape shape;
  Sizes sizes;
  bool takes_in_place = false;
};

constexpr Form movements[] = {
    {"Barrier", Shape::barrier, Sizes::equal},
    {"Bcast", Shape::broadcast, Sizes::equal},
    {"Gather", Shape::gather, Sizes::equal},
    {"Gatherv", Shape::gather, Sizes::any},
    {"Scatter", Shape::scatter, Sizes::equal},
    {"Scatterv", Shape::scatter, Sizes::any},
    {"Allgather", Shape::allgather, Sizes::equal, true},
    {"Allgatherv", Shape::allgather, Sizes::any, true},
    {"Alltoall", Shape::alltoall, Sizes::equal, true},
    {"Alltoallv", Shape::alltoall, Sizes::any, true},
    {"Alltoallw", Shape::alltoall, Sizes::typed, true},
    {"Alltoallw", Shape::alltoall, Sizes::typed, true},
};
constexpr Form neighbour_movements[] = {
    {"Neighbor_allgather", Shape::neighbour_gather, Sizes::equal},
    {"Neighbor_allgatherv", Shape::neighbour_gather, Sizes::any},
    {"Neighbor_alltoall", Shape::neighbour, Sizes::equal},
    {"Neighbor_alltoallv", Shape::neighbour, Sizes::any},
    {"Neighbor_alltoallw", Shape::neighbour, Sizes::typed},
};

class Movement final : public Operation {
 public:
  Movement(const Form& form, const Data& data, std::size_t root, bool in_place, bool tight,
           std::shared_ptr<const Neighbours> around)
      : form_(form),
        data_(data),
        drawn_root_(root),
        in_place_(in_place),
        tight_(tight),
        around_(std::move(around)) {}

  std::string text() const override {
    return std::string(form_.name) + " of " + std::to_string(data_.bytes) + " B" +
           (data_.derived ? " derived" : "") + (in_place_ ? " in place" : "");
  }
  void prepare(const Comm&) override;
  void fill(std::size_t round) override;
  void call(Mode mode, MPI_Comm comm) override;
  void check(std::size_t round) override;

 private:
  bool is_root() const { return me_ == root_; }
  std::uint64_t key(int from, int to) const;
  std::size_t bytes(int from, int to) const;
  const Layout& layout(int from, int to, int side) const;
  void add(Pieces& side, int from, int to, bool sent);
  void add_sent();
  void add_received();
  void call_rooted(Mode, MPI_Comm);
  void call_all(Mode, MPI_Comm);
  void call_neighbours(Mode, MPI_Comm);

  const Form& form_;
  Data data_;
  std::size_t drawn_root_;
  bool in_place_, tight_;
  std::shared_ptr<const Neighbours> around_;
  int me_ = 0, size_ = 0, root_ = 0;
  Pieces sent_, received_;
};

std::uint64_t Movement::key(int from, int to) const {
  return mix(data_.key + static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to));
}

// In place, both blocks of a pair of ranks lie in one after the other.
std::size_t Movement::bytes(int from, int to) const {
  if (form_.sizes == Sizes::equal) return data_.bytes;
  const std::uint64_t drawn =
      in_place_ && to < from && form_.shape == Shape::alltoall ? key(to, from) : key(from, to);
  const std::size_t any = mix(drawn ^ 5) % (data_.bytes + 1);
  return data_.derived ? any / derived_unit * derived_unit : any;
}

const Layout& Movement::layout(int from, int to, int side) const {
  if (!data_.derived) return bytes_layout();
  if (in_place_) return derived_layout(data_.key);
  if (form_.sizes != Sizes::typed) return data_.layout(me_ + side);
  return derived_layout(mix(key(from, to) + static_cast<std::uint64_t>(side)));
}

void Movement::add(Pieces& side, int from, int to, bool sent) {
  const bool live = from >= 0 && to >= 0;
  side.add(layout(from, to, sent ? 0 : 1), bytes(from, to), key(from, to), live);
}

void Movement::add_sent() {
  switch (form_.shape) {
    case Shape::barrier:
      break;
    case Shape::broadcast:
      if (is_root()) add(sent_, root_, 0, true);
      break;
    case Shape::scatter:
      for (int i = 0; is_root() && i < size_; ++i) add(sent_, me_, i, true);
      break;
    case Shape::alltoall:
      for (int i = 0; !in_place_ && i < size_; ++i) add(sent_, me_, i, true);
      break;
    case Shape::neighbour:
      for (const int to : around_->destinations) add(sent_, me_, to, true);
      break;
    default:
      if (!in_place_) add(sent_, me_, 0, true);
  }
}

void Movement::add_received() {
  switch (form_.shape) {
    case Shape::barrier:
      break;
    case Shape::broadcast:
      if (!is_root()) add(received_, root_, 0, false);
      break;
    case Shape::gather:
      for (int i = 0; is_root() && i < size_; ++i) add(received_, i, 0, false);
      break;
    case Shape::scatter:
      add(received_, root_, me_, false);
      break;
    case Shape::allgather:
      for (int i = 0; i < size_; ++i) add(received_, i, 0, false);
      break;
    case Shape::alltoall:
      for (int i = 0; i < size_; ++i) add(received_, i, me_, false);
      break;
    case Shape::neighbour_gather:
      for (const int from : around_->sources) add(received_, from, 0, false);
      break;
    case Shape::neighbour:
      for (const int from : around_->sources) add(received_, from, me_, false);
      break;
  }
}

void Movement::prepare(const Comm& comm) {
  me_ = comm.index;
  size_ = comm.own->size();
  root_ = static_cast<int>(drawn_root_ % static_cast<std::size_t>(size_));
  // Open MPI refuses exchanges whose sizes differ between both sides, even without neighbours.
  if (around_ != nullptr) {
    sent_.each_is(layout(me_, 0, 0), data_.bytes);
    received_.each_is(layout(0, me_, 1), data_.bytes);
  }
  add_sent();
  add_received();
  const bool tight = form_.sizes == Sizes::equal || tight_;
  // Every third rank has the other kind of memory.
  const bool mapped = data_.mapped != ((data_.key >> (me_ % 32)) % 3 == 0);
  sent_.lay_out(mapped, tight);
  received_.lay_out(data_.key % 2 == 0 ? mapped : !mapped, tight);
}

void Movement::fill(std::size_t round) {
  sent_.fill(round);
  if (!in_place_) return;
  if (form_.shape == Shape::allgather) {
    received_.fill_one(static_cast<std::size_t>(me_), key(me_, 0), round);
    return;
  }
  for (int i = 0; i < size_; ++i) {
    received_.fill_one(static_cast<std::size_t>(i), key(me_, i), round);
  }
}

void Movement::check(std::size_t round) {
  sent_.check(round, "what a collective has sent is as it was");
  received_.check(round, "the bytes of a collective that was set up or started");
  expect(sent_.untouched() && received_.untouched(),
         "nothing else was written by a collective that was set up or started");
}

void Movement::call(Mode mode, MPI_Comm comm) {
  switch (form_.shape) {
    case Shape::barrier:
      return MIXED_CALL(Barrier, Ibarrier, comm);
    case Shape::broadcast:
    case Shape::gather:
    case Shape::scatter:
      return call_rooted(mode, comm);
    case Shape::allgather:
    case Shape::alltoall:
      return call_all(mode, comm);
    default:
      return call_neighbours(mode, comm);
  }
}

void Movement::call_rooted(Mode mode, MPI_Comm comm) {
  Pieces &s = sent_, &r = received_;
  const bool any = form_.sizes == Sizes::any;
  if (form_.shape == Shape::broadcast) {
    Pieces& own = is_root() ? s : r;
    MIXED_CALL(Bcast, Ibcast, own.data(), own.count(), own.type(), root_, comm);
  } else if (form_.shape == Shape::gather && any) {
    MIXED_CALL(Gatherv, Igatherv, s.first(), s.count(), s.type(), r.data(), r.counts.data(),
               r.places.data(), r.type(), root_, comm);
  } else if (form_.shape == Shape::gather) {
    MIXED_CALL(Gather, Igather, s.first(), s.count(), s.type(), r.data(), r.count(), r.type(),
               root_, comm);
  } else if (any) {
    MIXED_CALL(Scatterv, Iscatterv, s.data(), s.counts.data(), s.places.data(), s.type(), r.first(),
               r.count(), r.type(), root_, comm);
  } else {
    MIXED_CALL(Scatter, Iscatter, s.data(), s.count(), s.type(), r.first(), r.count(), r.type(),
               root_, comm);
  }
}

void Movement::call_all(Mode mode, MPI_Comm comm) {
  Pieces &s = sent_, &r = received_;
  if (form_.shape == Shape::allgather) {
    void* const from = in_place_ ? MPI_IN_PLACE : s.first();
    if (form_.sizes == Sizes::equal) {
      MIXED_CALL(Allgather, Iallgather, from, s.count(), s.type(), r.data(), r.count(), r.type(),
                 comm);
    } else {
      MIXED_CALL(Allgatherv, Iallgatherv, from, s.count(), s.type(), r.data(), r.counts.data(),
                 r.places.data(), r.type(), comm);
    }
    return;
  }
  void* const from = in_place_ ? MPI_IN_PLACE : s.data();
  if (form_.sizes == Sizes::equal) {
    MIXED_CALL(Alltoall, Ialltoall, from, s.count(), s.type(), r.data(), r.count(), r.type(), comm);
  } else if (form_.sizes == Sizes::any) {
    MIXED_CALL(Alltoallv, Ialltoallv, from, s.counts.data(), s.places.data(), s.type(), r.data(),
               r.counts.data(), r.places.data(), r.type(), comm);
  } else {
    MIXED_CALL(Alltoallw, Ialltoallw, from, s.counts.data(), s.byte_places.data(), s.types.data(),
               r.data(), r.counts.data(), r.byte_places.data(), r.types.data(), comm);
  }
}

void Movement::call_neighbours(Mode mode, MPI_Comm comm) {
  Pieces &s = sent_, &r = received_;
  const bool equal = form_.sizes == Sizes::equal;
  if (form_.shape == Shape::neighbour_gather && equal) {
    MIXED_CALL(Neighbor_allgather, Ineighbor_allgather, s.first(), s.count(), s.type(), r.data(),
               r.count(), r.type(), comm);
  } else if (form_.shape == Shape::neighbour_gather) {
    MIXED_CALL(Neighbor_allgatherv, Ineighbor_allgatherv, s.first(), s.count(), s.type(), r.data(),
               r.counts.data(), r.places.data(), r.type(), comm);
  } else if (equal) {
    MIXED_CALL(Neighbor_alltoall, Ineighbor_alltoall, s.data(), s.count(), s.type(), r.data(),
               r.count(), r.type(), comm);
  } else if (form_.sizes == Sizes::any) {
    MIXED_CALL(Neighbor_alltoallv, Ineighbor_alltoallv, s.data(), s.counts.data(), s.places.data(),
               s.type(), r.data(), r.counts.data(), r.places.data(), r.type(), comm);
  } else {
    MIXED_CALL(Neighbor_alltoallw, Ineighbor_alltoallw, s.data(), s.counts.data(),
               s.far_places.data(), s.types.data(), r.data(), r.counts.data(), r.far_places.data(),
               r.types.data(), comm);
  }
}

std::unique_ptr<Operation> draw(Random& random, const Form& form,
                                std::shared_ptr<const Neighbours> around) {
  const Data data = draw_data(random, 200000);
  const bool in_place = random.chance(25) && form.takes_in_place;
  const std::size_t root = random.next() >> 8;
  return std::make_unique<Movement>(form, data, root, in_place, random.chance(50),
                                    std::move(around));
}

}  // namespace

std::unique_ptr<Operation> draw_movement(Random& random) {
  return draw(random, movements[random.below(std::size(movements))], nullptr);
}

std::unique_ptr<Operation> draw_neighbour_movement(Random& random,
                                                   std::shared_ptr<const Neighbours> around) {
  return draw(random, neighbour_movements[random.below(std::size(neighbour_movements))],
              std::move(around));
}

}  // namespace mixed
