#include "generator/loops.hpp"

#include <cstring>
#include <type_traits>

namespace generator {
namespace {

// A rank's buffers, made anew from the seed.
struct Peer {
  Peer(const Catalogue& catalogue, const Case& drawn, int rank, int ranks)
      : plan(generator::plan(catalogue, drawn, rank, ranks)),
        buffers(private_memory(), drawn, plan, rank, true) {}
  const Side& side() const { return plan.send.stays ? plan.receive : plan.send; }
  const std::byte* data() const {
    return (plan.send.stays ? buffers.receive : buffers.send).data();
  }
  Plan plan;
  Buffers buffers;
};

template <class T>
T combine(Operation operation, T left, T right) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  const auto a = static_cast<Wide>(left);
  const auto b = static_cast<Wide>(right);
  if (operation == Operation::max) return left > right ? left : right;
  if (operation == Operation::min) return left < right ? left : right;
  if (operation == Operation::sum) return static_cast<T>(a + b);
  if (operation == Operation::prod) return static_cast<T>(a * b);
  if constexpr (std::is_integral_v<T>) {
    if (operation == Operation::land) return static_cast<T>(left != 0 && right != 0);
    if (operation == Operation::lor) return static_cast<T>(left != 0 || right != 0);
    if (operation == Operation::lxor) return static_cast<T>((left != 0) != (right != 0));
    if (operation == Operation::band) return static_cast<T>(left & right);
    if (operation == Operation::bor) return static_cast<T>(left | right);
    return static_cast<T>(left ^ right);
  }
  return left;
}

template <class T>
void combine_all(Operation operation, std::byte* into, const std::byte* from, int count) {
  for (int i = 0; i < count; ++i) {
    T left;
    T right;
    std::memcpy(&left, into + i * sizeof left, sizeof left);
    std::memcpy(&right, from + i * sizeof right, sizeof right);
    const T value = combine(operation, left, right);
    std::memcpy(into + i * sizeof value, &value, sizeof value);
  }
}

template <class Signed, class Unsigned>
auto by_sign(char kind) {
  return kind == 'i' ? &combine_all<Signed> : &combine_all<Unsigned>;
}

auto combiner(const Scalar& scalar) {
  if (scalar.kind == 'f') return scalar.bytes == 4 ? &combine_all<float> : &combine_all<double>;
  if (scalar.bytes == 1) return by_sign<std::int8_t, std::uint8_t>(scalar.kind);
  if (scalar.bytes == 2) return by_sign<std::int16_t, std::uint16_t>(scalar.kind);
  if (scalar.bytes == 4) return by_sign<std::int32_t, std::uint32_t>(scalar.kind);
  return by_sign<std::int64_t, std::uint64_t>(scalar.kind);
}

class Loops {
 public:
  Loops(const Catalogue& catalogue, const Case& drawn, int rank, int ranks, std::byte* result)
      : catalogue_(catalogue),
        case_(drawn),
        type_(catalogue.types[drawn.type]),
        rank_(rank),
        ranks_(ranks),
        own_(plan(catalogue, drawn, rank, ranks)),
        result_(result) {}

  void apply() const {
    if (!own_.receive.significant || own_.receive.stays) return;
    if (case_.reduces()) return reduce();
    const int root = case_.root(ranks_);
    switch (case_.collective) {
      case Collective::barrier:
        return;
      case Collective::bcast: {
        const Peer peer = of(root);
        return move(peer.buffers.receive.data(), peer.plan.receive.blocks[0], 0);
      }
      case Collective::scatter:
      case Collective::scatterv: {
        const Peer peer = of(root);
        return move(peer.data(), peer.side().blocks[at(rank_)], 0);
      }
      default:
        for (int from = 0; from < ranks_; ++from) take_block(from);
    }
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  Peer of(int rank) const { return {catalogue_, case_, rank, ranks_}; }

  void move(const std::byte* from, const Block& block, std::size_t to) const {
    const Block& target = own_.receive.blocks[to];
    std::memcpy(result_ + target.first * type_.extent, from + block.first * type_.extent,
                static_cast<std::size_t>(block.count * type_.extent));
  }
  // This serves a gather, or an exchange of all with all.
  void take_block(int from) const {
    const Peer peer = of(from);
    const bool one = case_.collective < Collective::alltoall;
    const std::size_t block = !one ? at(rank_) : peer.plan.send.stays ? at(from) : 0;
    move(peer.data(), peer.side().blocks[block], at(from));
  }

  // Elements of the ranks from left to right.
  void reduce() const {
    int last = ranks_ - 1;
    if (case_.collective == Collective::scan) last = rank_;
    if (case_.collective == Collective::exscan) last = rank_ - 1;
    const Shares share = shares(case_, type_, ranks_);
    const std::int64_t skipped = case_.scatters() ? share.before(rank_) * type_.extent : 0;
    const int count = share.each[at(rank_)];
    for (int from = 0; from <= last; ++from) {
      const Peer peer = of(from);
      if (from == 0) {
        std::memcpy(result_, peer.data() + skipped, static_cast<std::size_t>(count * type_.extent));
      } else {
        combiner(type_.scalars[0])(case_.op, result_, peer.data() + skipped, count);
      }
    }
  }

  const Catalogue& catalogue_;
  const Case& case_;
  const Type& type_;
  int rank_;
  int ranks_;
  Plan own_;
  std::byte* result_;
};

}  // namespace

void apply(const Catalogue& catalogue, const Case& drawn, int rank, int ranks,
           const Memory& memory) {
  Loops(catalogue, drawn, rank, ranks, memory.data()).apply();
}

}  // namespace generator
