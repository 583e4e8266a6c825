// One case on one rank, by ropewalk and by MPI, on buffers that are byte for byte the same before.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "collectives/differential_buffers.hpp"
#include "collectives/differential_case.hpp"
#include "collectives/differential_contents.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::test {
namespace {

constexpr std::byte receive_guard{0xA5};
constexpr std::byte send_guard{0x3C};

using Sizes = std::vector<std::size_t>;

class Trial {
 public:
  Trial(const Catalogue& catalogue, const Differential& drawn, const Pair& on)
      : catalogue_(catalogue),
        drawn_(drawn),
        on_(on),
        type_(drawn.mixed ? catalogue.types[catalogue.matrices[mixed_index()]]
                          : catalogue.types[drawn.type]),
        op_(catalogue.ops[drawn.op]),
        contents_(drawn, type_, op_, on),
        ranks_(static_cast<std::size_t>(on.size)),
        rank_(static_cast<std::size_t>(on.rank)),
        root_(drawn.root(on.size)),
        at_root_(on.rank == root_) {}

  std::string run() {
    use_layout(type_);
    switch (drawn_.collective) {
      case Collective::barrier:
        return barrier();
      case Collective::allreduce:
      case Collective::reduce:
      case Collective::scan:
      case Collective::exscan:
        return reduction();
      case Collective::reduce_scatter:
      case Collective::reduce_scatter_block:
        return scattered_reduction();
      case Collective::broadcast:
        return broadcast();
      case Collective::allgather:
      case Collective::gather:
        return gathering();
      case Collective::allgatherv:
      case Collective::gatherv:
        return gathering_blocks();
      case Collective::scatter:
        return scattering();
      case Collective::scatterv:
        return scattering_blocks();
      case Collective::alltoall:
        return all_to_all();
      case Collective::alltoallv:
        return all_to_all_blocks();
    }
    return "unknown collective";
  }

 private:
  std::size_t mixed_index() const {
    return (drawn_.hash(30, 0) + static_cast<std::size_t>(on_.rank)) % catalogue_.matrices.size();
  }

  // ---- both calls

  struct Sides {
    std::byte* send;
    std::byte* receive;
    void* in_place;
  };

  static bool bit(std::uint64_t mask, std::size_t rank) { return (mask >> rank % 64 & 1) != 0; }

  std::size_t skew() const {
    std::size_t unit = 1;
    for (const Scalar& scalar : type_.scalars) unit = std::max(unit, size_of(scalar.type));
    return drawn_.skew * unit;
  }

  // A pair's gaps are not told from data by everybody: they are the same on both sides.
  std::byte guard_of_sends() const { return type_.predefined ? receive_guard : send_guard; }

  template <class ByRopewalk, class ByMpi>
  std::string compare(const Region& send, const Region& receive, const ByRopewalk& by_ropewalk,
                      const ByMpi& by_mpi) {
    const Memory sent(type_, send.elements, bit(drawn_.send_in_arena, rank_), skew(),
                      guard_of_sends());
    const Memory received(type_, receive.elements, bit(drawn_.receive_in_arena, rank_), skew(),
                          receive_guard);
    contents_.fill(sent.data(), send);
    contents_.fill(received.data(), receive);
    const Memory their_sent(type_, send.elements, false, skew(), guard_of_sends());
    const Memory their_received(type_, receive.elements, false, skew(), receive_guard);
    const_cast<Memory&>(their_sent).take(sent);
    const_cast<Memory&>(their_received).take(received);
    const auto sides = [](const Memory& from, const Region& a, const Memory& to, const Region& b,
                          void* in_place) {
      return Sides{a.used ? from.data() : nullptr, b.used ? to.data() : nullptr, in_place};
    };
    by_mpi(sides(their_sent, send, their_received, receive, mpi::in_place()));
    const int code = by_ropewalk(
        sides(sent, send, received, receive, drawn_.mpi_in_place ? mpi::in_place() : RW_IN_PLACE));
    if (code != RW_SUCCESS) return rw_last_error();
    contents_.forget(received.data(), receive);
    contents_.forget(their_received.data(), receive);
    if (!sent.same(their_sent)) return difference("send", sent, their_sent);
    if (!received.same(their_received)) return difference("receive", received, their_received);
    return "";
  }
  std::string difference(const char* which, const Memory& ours, const Memory& theirs) const {
    const std::int64_t at = ours.first_difference(theirs);
    return std::string(which) + " buffer differs at byte " + std::to_string(at) + " (element " +
           std::to_string(type_.extent == 0 ? 0 : at / type_.extent) +
           "): " + std::to_string(static_cast<int>(ours.data()[at])) + ", MPI has " +
           std::to_string(static_cast<int>(theirs.data()[at]));
  }

  template <class Now, class Later, class... Arguments>
  int call(Now now, Later later, Arguments... arguments) const {
    if (!drawn_.nonblocking) return now(arguments..., on_.rw);
    rw_request* request = nullptr;
    const int code = later(arguments..., on_.rw, &request);
    if (code != RW_SUCCESS || drawn_.hash(32, 0) % 2 == 0) {
      return code != RW_SUCCESS ? code : rw_wait(&request);
    }
    int done = 0;
    int tested = RW_SUCCESS;
    while (tested == RW_SUCCESS && done == 0) {
      mpi::iprobe(mpi::any_source(), mpi::any_tag(), on_.mpi);
      tested = rw_test(&request, &done);
    }
    return tested;
  }

  // ---- the collectives

  std::size_t count() const { return drawn_.count(type_, on_.size); }
  Sizes counts() const {
    Sizes result;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      result.push_back(drawn_.count(type_, on_.size, peer, 0));
    }
    return result;
  }
  struct Blocks {
    Sizes counts;
    Sizes places;
    std::size_t elements = 0;
    std::vector<Block> list() const {
      std::vector<Block> result;
      for (std::size_t i = 0; i < counts.size(); ++i) result.push_back({places[i], counts[i]});
      return result;
    }
  };
  // Blocks in a random order, with gaps between them.
  Blocks spread(Sizes counts, std::uint64_t what) const {
    Blocks blocks{std::move(counts), Sizes(ranks_), drawn_.hash(what, 99) % 4};
    Sizes order(ranks_);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return drawn_.hash(what, 100 + a) < drawn_.hash(what, 100 + b);
    });
    for (const std::size_t peer : order) {
      blocks.places[peer] = blocks.elements;
      blocks.elements += blocks.counts[peer] + drawn_.hash(what, 200 + peer) % 4;
    }
    return blocks;
  }

  std::string barrier() {
    const int code = call(rw_barrier, rw_ibarrier);
    return code == RW_SUCCESS ? "" : rw_last_error();
  }

  std::string reduction() {
    const bool rooted = drawn_.collective == Collective::reduce;
    const bool has_output = !rooted || at_root_;
    const bool stays = drawn_.in_place && has_output;
    const std::size_t n = count();
    Region receive = stays ? whole(n) : has_output ? empty(n) : unused();
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    const auto by_ropewalk = [&](const Sides& on) {
      const rw_type type = type_.number;
      switch (drawn_.collective) {
        case Collective::allreduce:
          return call(rw_allreduce, rw_iallreduce, from(on), on.receive, n, type, op_.number);
        case Collective::reduce:
          return call(rw_reduce, rw_ireduce, from(on), on.receive, n, type, op_.number, root_);
        case Collective::scan:
          return call(rw_scan, rw_iscan, from(on), on.receive, n, type, op_.number);
        default:
          return call(rw_exscan, rw_iexscan, from(on), on.receive, n, type, op_.number);
      }
    };
    const auto by_mpi = [&](const Sides& on) {
      namespace with = mpi::fallback;
      switch (drawn_.collective) {
        case Collective::allreduce:
          return with::allreduce(from(on), on.receive, n, type_.handle, op_.handle, on_.mpi);
        case Collective::reduce:
          return with::reduce(from(on), on.receive, n, type_.handle, op_.handle, root_, on_.mpi);
        case Collective::scan:
          return with::scan(from(on), on.receive, n, type_.handle, op_.handle, on_.mpi);
        default:
          return with::exscan(from(on), on.receive, n, type_.handle, op_.handle, on_.mpi);
      }
    };
    return compare(stays ? unused() : whole(n), receive, by_ropewalk, by_mpi);
  }

  std::string scattered_reduction() {
    const bool equal = drawn_.collective == Collective::reduce_scatter_block;
    const Sizes each = equal ? Sizes(ranks_, count()) : counts();
    const std::size_t total = std::accumulate(each.begin(), each.end(), std::size_t{0});
    const bool stays = drawn_.in_place;
    Region receive = stays ? whole(total) : empty(each[rank_]);
    if (stays) receive.undefined_from = each[rank_];
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    const auto by_ropewalk = [&](const Sides& on) {
      return equal ? call(rw_reduce_scatter_block, rw_ireduce_scatter_block, from(on), on.receive,
                          each[0], type_.number, op_.number)
                   : call(rw_reduce_scatter, rw_ireduce_scatter, from(on), on.receive, each.data(),
                          type_.number, op_.number);
    };
    // MPICH 5.0.2 in place aborts where the result overlaps its place: it is given a copy.
    const Memory copy(type_, total, false, skew(), receive_guard);
    contents_.fill(copy.data(), whole(total));
    const auto by_mpi = [&](const Sides& on) {
      if (equal) {
        mpi::fallback::reduce_scatter_block(copy.data(), on.receive, each[0], type_.handle,
                                            op_.handle, on_.mpi);
      } else {
        mpi::fallback::reduce_scatter(copy.data(), on.receive, each.data(), type_.handle,
                                      op_.handle, on_.mpi);
      }
    };
    return compare(stays ? unused() : whole(total), receive, by_ropewalk, by_mpi);
  }

  std::string broadcast() {
    const std::size_t n = count();
    return compare(
        unused(), at_root_ ? whole(n) : empty(n),
        [&](const Sides& on) {
          return call(rw_bcast, rw_ibcast, on.receive, n, type_.number, root_);
        },
        [&](const Sides& on) {
          mpi::fallback::broadcast(on.receive, n, type_.handle, root_, on_.mpi);
        });
  }

  std::string gathering() {
    const bool rooted = drawn_.collective == Collective::gather;
    const bool has_output = !rooted || at_root_;
    const bool stays = drawn_.in_place && has_output;
    const std::size_t n = count();
    Region receive = has_output ? empty(n * ranks_) : unused();
    if (stays) receive.filled = {{rank_ * n, n}};
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    return compare(
        stays ? unused() : whole(n), receive,
        [&](const Sides& on) {
          return rooted ? call(rw_gather, rw_igather, from(on), on.receive, n, type_.number, root_)
                        : call(rw_allgather, rw_iallgather, from(on), on.receive, n, type_.number);
        },
        [&](const Sides& on) {
          if (rooted) {
            mpi::fallback::gather(from(on), n, type_.handle, on.receive, n, type_.handle, root_,
                                  on_.mpi);
          } else {
            mpi::fallback::allgather(from(on), n, type_.handle, on.receive, n, type_.handle,
                                     on_.mpi);
          }
        });
  }

  std::string gathering_blocks() {
    const bool rooted = drawn_.collective == Collective::gatherv;
    const bool has_output = !rooted || at_root_;
    const bool stays = drawn_.in_place && has_output;
    const Blocks blocks = spread(counts(), 40 + 8 * rank_);
    const std::size_t n = blocks.counts[rank_];
    const std::size_t* counts = has_output ? blocks.counts.data() : nullptr;
    const std::size_t* places = has_output ? blocks.places.data() : nullptr;
    Region receive = has_output ? empty(blocks.elements) : unused();
    if (stays) receive.filled = {{blocks.places[rank_], n}};
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    return compare(
        stays ? unused() : whole(n), receive,
        [&](const Sides& on) {
          return rooted ? call(rw_gatherv, rw_igatherv, from(on), n, on.receive, counts, places,
                               type_.number, root_)
                        : call(rw_allgatherv, rw_iallgatherv, from(on), n, on.receive, counts,
                               places, type_.number);
        },
        [&](const Sides& on) {
          if (rooted) {
            mpi::fallback::gatherv(from(on), n, type_.handle, on.receive, counts, places,
                                   type_.handle, root_, on_.mpi);
          } else {
            mpi::fallback::allgatherv(from(on), n, type_.handle, on.receive, counts, places,
                                      type_.handle, on_.mpi);
          }
        });
  }

  std::string scattering() {
    const std::size_t n = count();
    const bool stays = drawn_.in_place && at_root_;
    const auto to = [&](const Sides& on) { return stays ? on.in_place : on.receive; };
    return compare(
        at_root_ ? whole(n * ranks_) : unused(), stays ? unused() : empty(n),
        [&](const Sides& on) {
          return call(rw_scatter, rw_iscatter, on.send, to(on), n, type_.number, root_);
        },
        [&](const Sides& on) {
          mpi::fallback::scatter(on.send, n, type_.handle, to(on), n, type_.handle, root_, on_.mpi);
        });
  }

  std::string scattering_blocks() {
    const Blocks blocks = spread(counts(), 41 + 8 * rank_);
    const std::size_t n = blocks.counts[rank_];
    const bool stays = drawn_.in_place && at_root_;
    const std::size_t* counts = at_root_ ? blocks.counts.data() : nullptr;
    const std::size_t* places = at_root_ ? blocks.places.data() : nullptr;
    const auto to = [&](const Sides& on) { return stays ? on.in_place : on.receive; };
    Region send = unused();
    if (at_root_) send = {blocks.elements, blocks.list()};
    return compare(
        send, stays ? unused() : empty(n),
        [&](const Sides& on) {
          return call(rw_scatterv, rw_iscatterv, on.send, counts, places, to(on), n, type_.number,
                      root_);
        },
        [&](const Sides& on) {
          mpi::fallback::scatterv(on.send, counts, places, type_.handle, to(on), n, type_.handle,
                                  root_, on_.mpi);
        });
  }

  std::string all_to_all() {
    const std::size_t n = count();
    const std::size_t total = n * ranks_;
    const bool stays = drawn_.in_place;
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    return compare(
        stays ? unused() : whole(total), stays ? whole(total) : empty(total),
        [&](const Sides& on) {
          return call(rw_alltoall, rw_ialltoall, from(on), on.receive, n, type_.number);
        },
        [&](const Sides& on) {
          mpi::fallback::alltoall(from(on), n, type_.handle, on.receive, n, type_.handle, on_.mpi);
        });
  }

  std::string all_to_all_blocks() {
    const bool stays = drawn_.in_place;
    Sizes sent;
    Sizes received;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      // In place, as many go as come.
      const auto [low, high] = std::minmax(rank_, peer);
      sent.push_back(drawn_.count(type_, on_.size, stays ? low : rank_, stays ? high : peer));
      received.push_back(drawn_.count(type_, on_.size, stays ? low : peer, stays ? high : rank_));
    }
    const Blocks sends = spread(sent, 42 + 8 * rank_);
    const Blocks receives = spread(received, 43 + 8 * rank_);
    const auto from = [&](const Sides& on) { return stays ? on.in_place : on.send; };
    Region send = unused();
    Region receive = empty(receives.elements);
    if (stays) {
      receive.filled = receives.list();
    } else {
      send = {sends.elements, sends.list()};
    }
    const std::size_t* send_counts = stays ? nullptr : sends.counts.data();
    const std::size_t* send_places = stays ? nullptr : sends.places.data();
    return compare(
        send, receive,
        [&](const Sides& on) {
          return call(rw_alltoallv, rw_ialltoallv, from(on), send_counts, send_places, on.receive,
                      receives.counts.data(), receives.places.data(), type_.number);
        },
        [&](const Sides& on) {
          mpi::fallback::alltoallv(from(on), send_counts, send_places, type_.handle, on.receive,
                                   receives.counts.data(), receives.places.data(), type_.handle,
                                   on_.mpi);
        });
  }

  const Catalogue& catalogue_;
  const Differential& drawn_;
  const Pair& on_;
  const TypeEntry& type_;
  const OpEntry& op_;
  Contents contents_;
  std::size_t ranks_;
  std::size_t rank_;
  int root_;
  bool at_root_;
};

}  // namespace

std::string run(const Catalogue& catalogue, const Differential& drawn, const Pair& on) {
  return Trial(catalogue, drawn, on).run();
}

}  // namespace ropewalk::test
