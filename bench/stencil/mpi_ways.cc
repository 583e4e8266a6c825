#include "stencil/mpi_ways.hpp"

#include <array>
#include <cstring>

#include "common/plain_mpi.hpp"
#include "mpi/library.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::bench {
namespace {

using mpi::Count;
using mpi::Word;

constexpr std::size_t directions = 6;  // 2d towards + of dimension d, 2d + 1 towards -

using Triple = std::array<int, 3>;

// The cells next to a side, or the ghosts there.
DoubleSubarray face(const StencilBlock& block, std::size_t direction, bool ghosts) {
  const std::size_t d = direction / 2;
  Triple extents{block.edge(), block.edge(), block.edge()};
  Triple starts{1, 1, 1};
  extents[d] = 1;
  const bool above = direction % 2 == 0;
  starts[d] = above ? block.edge() + (ghosts ? 1 : 0) : (ghosts ? 0 : 1);
  return {block.extents(), extents, starts};
}

struct Neighbours {
  explicit Neighbours(const CartesianGrid& grid) {
    for (std::size_t k = 0; k < directions; ++k) {
      const int there = grid.neighbour(static_cast<int>(k / 2), k % 2 == 0 ? 1 : -1);
      ranks[k] = there < 0 ? mpi::library().abi.proc_null : there;
    }
  }
  bool has(std::size_t k) const { return ranks[k] != mpi::library().abi.proc_null; }
  std::array<int, directions> ranks;
};

// MPI's own communicator of the exchange.
class OwnComm {
 public:
  OwnComm() : comm_(mpi::dup(mpi::comm_world())) {}
  explicit OwnComm(mpi::Comm comm) : comm_(comm) {}
  ~OwnComm() {
    try {
      mpi::free(comm_);
    } catch (const std::exception&) {
      // The results are out; what the MPI says at the end does not change them.
    }
  }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  Word word() const noexcept { return comm_.value; }

 private:
  mpi::Comm comm_;
};

std::vector<DoubleSubarray> faces(const StencilBlock& block, bool ghosts) {
  std::vector<DoubleSubarray> out;
  for (std::size_t k = 0; k < directions; ++k) out.push_back(face(block, k, ghosts));
  return out;
}

class Messages : public StencilWay {
 public:
  Messages(const CartesianGrid& grid, StencilBlock& block)
      : block_(block), neighbours_(grid), sent_(faces(block, false)), ghosts_(faces(block, true)) {}

  void start() override {
    const mpi::Functions& call = mpi::library().call;
    for (std::size_t k = 0; k < directions; ++k) {
      if (!neighbours_.has(k)) continue;
      const int tag = static_cast<int>(k ^ 1U);  // that of the sender's direction
      call.irecv(block_.cells(), 1, ghosts_[k].word(), neighbours_.ranks[k], tag, comm_.word(),
                 &requests_.emplace_back().value);
    }
    for (std::size_t k = 0; k < directions; ++k) {
      if (!neighbours_.has(k)) continue;
      call.isend(block_.cells(), 1, sent_[k].word(), neighbours_.ranks[k], static_cast<int>(k),
                 comm_.word(), &requests_.emplace_back().value);
    }
  }
  void wait() override {
    mpi::wait_all(requests_);
    requests_.clear();
  }

 private:
  StencilBlock& block_;
  Neighbours neighbours_;
  std::vector<DoubleSubarray> sent_;
  std::vector<DoubleSubarray> ghosts_;
  OwnComm comm_;
  std::vector<mpi::Request> requests_;
};

// The rank's own loops copy lines between the block and buffers.
class PackedMessages : public StencilWay {
 public:
  PackedMessages(const CartesianGrid& grid, StencilBlock& block)
      : block_(block), neighbours_(grid), face_(block.face_bytes() / sizeof(double)) {
    out_.resize(directions * face_);
    in_.resize(directions * face_);
  }

  void start() override {
    const std::size_t bytes = face_ * sizeof(double);
    for (std::size_t k = 0; k < directions; ++k) {
      if (!neighbours_.has(k)) continue;
      requests_.push_back(mpi::ireceive(in_.data() + k * face_, bytes, neighbours_.ranks[k],
                                        static_cast<int>(k ^ 1U), {comm_.word()}));
    }
    for (std::size_t k = 0; k < directions; ++k) {
      if (!neighbours_.has(k)) continue;
      pack(k);
      requests_.push_back(mpi::isend(out_.data() + k * face_, bytes, neighbours_.ranks[k],
                                     static_cast<int>(k), {comm_.word()}));
    }
  }
  void wait() override {
    mpi::wait_all(requests_);
    requests_.clear();
    for (std::size_t k = 0; k < directions; ++k) {
      if (neighbours_.has(k)) unpack(k);
    }
  }

 private:
  // Calls visit(cells of a line, their stride, place in the face) for each line of a side.
  template <class Visit>
  void for_each_line(std::size_t k, bool ghosts, Visit visit) const {
    const std::size_t d = k / 2;
    const int edge = block_.edge();
    const int side = k % 2 == 0 ? edge + (ghosts ? 1 : 0) : (ghosts ? 0 : 1);
    const std::size_t width = static_cast<std::size_t>(edge) + 2;
    const std::array<std::size_t, 3> strides{width * width, width, 1};
    const std::size_t outer = strides[d == 0 ? 1 : 0];
    const std::size_t inner = strides[d == 2 ? 1 : 2];
    double* first = block_.cells() + static_cast<std::size_t>(side) * strides[d] + outer + inner;
    for (int line = 0; line < edge; ++line) {
      visit(first + static_cast<std::size_t>(line) * outer, inner,
            static_cast<std::size_t>(line) * static_cast<std::size_t>(edge));
    }
  }
  void pack(std::size_t k) {
    const auto edge = static_cast<std::size_t>(block_.edge());
    for_each_line(k, false, [&](const double* line, std::size_t stride, std::size_t at) {
      double* to = out_.data() + k * face_ + at;
      if (stride == 1) {
        std::memcpy(to, line, edge * sizeof(double));
        return;
      }
      for (std::size_t i = 0; i < edge; ++i) to[i] = line[i * stride];
    });
  }
  void unpack(std::size_t k) {
    const auto edge = static_cast<std::size_t>(block_.edge());
    for_each_line(k, true, [&](double* line, std::size_t stride, std::size_t at) {
      const double* from = in_.data() + k * face_ + at;
      if (stride == 1) {
        std::memcpy(line, from, edge * sizeof(double));
        return;
      }
      for (std::size_t i = 0; i < edge; ++i) line[i * stride] = from[i];
    });
  }

  StencilBlock& block_;
  Neighbours neighbours_;
  std::size_t face_;
  std::vector<double> out_;
  std::vector<double> in_;
  OwnComm comm_;
  std::vector<mpi::Request> requests_;
};

mpi::Comm make_grid(const CartesianGrid& grid) {
  using Create = int(Word, int, const int*, const int*, int, Word*);
  const int periods = grid.periodic()[0] ? 1 : 0;
  const Triple periodic{periods, periods, periods};
  mpi::Comm made{};
  mpi::check(
      mpi_function<Create>("PMPI_Cart_create")(mpi::comm_world().value, 3, grid.extents().data(),
                                               periodic.data(), 0, &made.value),
      "MPI_Cart_create");
  return made;
}

// Its directions are MPI's: towards - of a dimension, then towards +.
class NeighbourCall : public StencilWay {
 public:
  NeighbourCall(const CartesianGrid& grid, StencilBlock& block)
      : block_(block),
        sent_(faces(block, false)),
        ghosts_(faces(block, true)),
        comm_(make_grid(grid)),
        call_(mpi_function<Call>("PMPI_Neighbor_alltoallw")),
        start_(mpi_function<Start>("PMPI_Ineighbor_alltoallw")) {
    for (std::size_t k = 0; k < directions; ++k) {
      sent_words_.add(sent_[k ^ 1U].word());
      ghost_words_.add(ghosts_[k ^ 1U].word());
    }
    counts_.fill(1);
  }

  void start() override {
    start_(block_.cells(), counts_.data(), places_.data(), sent_words_.data(), block_.cells(),
           counts_.data(), places_.data(), ghost_words_.data(), comm_.word(),
           &requests_.emplace_back().value);
  }
  void wait() override {
    mpi::wait_all(requests_);
    requests_.clear();
  }
  void exchange() override {
    call_(block_.cells(), counts_.data(), places_.data(), sent_words_.data(), block_.cells(),
          counts_.data(), places_.data(), ghost_words_.data(), comm_.word());
  }

 private:
  using Call = int(const void*, const int*, const Count*, const void*, void*, const int*,
                   const Count*, const void*, Word);
  using Start = int(const void*, const int*, const Count*, const void*, void*, const int*,
                    const Count*, const void*, Word, Word*);

  StencilBlock& block_;
  std::vector<DoubleSubarray> sent_;
  std::vector<DoubleSubarray> ghosts_;
  OwnComm comm_;
  Call* call_;
  Start* start_;
  std::array<int, directions> counts_{};
  std::array<Count, directions> places_{};
  MpiHandles sent_words_;
  MpiHandles ghost_words_;
  std::vector<mpi::Request> requests_;
};

}  // namespace

std::unique_ptr<StencilWay> make_mpi_way(const std::string& name, const CartesianGrid& grid,
                                         StencilBlock& block) {
  if (name == "isend") return std::make_unique<Messages>(grid, block);
  if (name == "packed") return std::make_unique<PackedMessages>(grid, block);
  return std::make_unique<NeighbourCall>(grid, block);
}

}  // namespace ropewalk::bench
