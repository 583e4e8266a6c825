#include "collectives/cases.hpp"

#include <algorithm>
#include <cstring>
#include <memory_resource>

#include "ropewalk/memory.hpp"

namespace ropewalk::test {
namespace {

constexpr std::byte guard{0xA5};
constexpr std::size_t guard_bytes = 64;

// A buffer in the arena or in private memory, guards on both sides.
class Memory {
 public:
  Memory(std::size_t bytes, bool in_arena, std::size_t skew) : bytes_(bytes), in_arena_(in_arena) {
    const std::size_t whole = bytes + 2 * guard_bytes + skew;
    if (in_arena) {
      start_ = static_cast<std::byte*>(Arena::process().allocate(whole));
    } else {
      own_.resize(whole);
      start_ = own_.data();
    }
    std::fill(start_, start_ + whole, guard);
    data_ = start_ + guard_bytes + skew;
  }
  ~Memory() {
    if (in_arena_) Arena::process().deallocate(start_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  bool guards_hold() const {
    const auto is_guard = [](std::byte value) { return value == guard; };
    return std::all_of(data_ - guard_bytes, data_, is_guard) &&
           std::all_of(data_ + bytes_, data_ + bytes_ + guard_bytes, is_guard);
  }

 private:
  std::size_t bytes_;
  bool in_arena_;
  std::pmr::vector<std::byte> own_;
  std::byte* start_ = nullptr;
  std::byte* data_ = nullptr;
};

using Bytes = std::vector<std::byte>;

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

template <class T>
T element(std::uint64_t seed, int rank, std::size_t index) {
  const std::uint64_t bits = mix(seed ^ mix(static_cast<std::uint64_t>(rank) << 40 ^ index));
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(bits % 2000001) / 1000000.0 - 1.0);
  } else {
    return static_cast<T>(bits);
  }
}

template <class Visit>
auto with_type(ElementType type, Visit visit) {
  switch (type) {
    case ElementType::int8:
      return visit(std::int8_t{});
    case ElementType::uint16:
      return visit(std::uint16_t{});
    case ElementType::int32:
      return visit(std::int32_t{});
    case ElementType::uint64:
      return visit(std::uint64_t{});
    case ElementType::float64:
      return visit(double{});
    default:
      return visit(float{});
  }
}

template <class T>
T combine(ReductionOp op, T left, T right) {
  switch (op) {
    case ReductionOp::max:
      return left > right ? left : right;
    case ReductionOp::min:
      return left < right ? left : right;
    case ReductionOp::prod:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
      } else {
        return left * right;
      }
    case ReductionOp::bxor:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(left ^ right);
      [[fallthrough]];
    default:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
      } else {
        return left + right;
      }
  }
}

// Elements first to first + count of a rank's send buffer.
Bytes elements(const Case& drawn, int rank, std::size_t first, std::size_t count) {
  return with_type(drawn.type, [&](auto zero) {
    using T = decltype(zero);
    Bytes bytes(count * sizeof(T));
    for (std::size_t index = 0; index < count; ++index) {
      const T value = element<T>(drawn.seed, rank, first + index);
      std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

// Elements of ranks 0 to ranks - 1 combined from left to right.
Bytes combined(const Case& drawn, int ranks, std::size_t first, std::size_t count) {
  return with_type(drawn.type, [&](auto zero) {
    using T = decltype(zero);
    Bytes bytes(count * sizeof(T));
    for (std::size_t index = 0; index < count; ++index) {
      T value = element<T>(drawn.seed, 0, first + index);
      for (int rank = 1; rank < ranks; ++rank) {
        value = combine(drawn.op, value, element<T>(drawn.seed, rank, first + index));
      }
      std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

void put(const Bytes& bytes, std::byte* target) {
  if (!bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
}

std::string compare(const std::byte* found, const Bytes& expected) {
  for (std::size_t index = 0; index < expected.size(); ++index) {
    if (found[index] != expected[index]) {
      return "byte " + std::to_string(index) + " of " + std::to_string(expected.size()) +
             " differs";
    }
  }
  return "";
}

using Sizes = std::vector<std::size_t>;

// One run of one case on one rank.
class Trial {
 public:
  Trial(Collectives& communicator, const Case& drawn)
      : communicator_(communicator),
        case_(drawn),
        rank_(communicator.rank()),
        ranks_(communicator.size()),
        element_(size_of(drawn.type)) {}

  std::string run() {
    switch (case_.collective) {
      case Collective::barrier:
        call([](Collectives& on) { on.barrier(); });
        return "";
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
      case Collective::allgatherv:
      case Collective::gather:
      case Collective::gatherv:
        return gathering();
      case Collective::scatter:
      case Collective::scatterv:
        return scattering();
      case Collective::alltoall:
      case Collective::alltoallv:
        return all_to_all();
    }
    return "unknown collective";
  }

 private:
  bool bit(std::uint32_t mask) const { return (mask >> (rank_ % 32) & 1) != 0; }
  Memory send_memory(std::size_t count) const {
    return Memory(count * element_, bit(case_.send_in_arena), case_.skew * element_);
  }
  Memory receive_memory(std::size_t count) const {
    return Memory(count * element_, bit(case_.receive_in_arena), case_.skew * element_);
  }
  template <class Call>
  void call(Call&& what) {
    if (case_.nonblocking) {
      CollectiveRequest request = communicator_.start(what);
      if (!request.test()) request.wait();
    } else {
      what(communicator_);
    }
  }
  std::string verdict(const Memory& send, const Memory& receive, const Bytes& expected) const {
    if (!send.guards_hold()) return "memory around the send buffer was written";
    if (!receive.guards_hold()) return "memory around the receive buffer was written";
    return compare(receive.data(), expected);
  }
  // Starts of blocks, in elements, with gaps between them.
  Sizes starts(const Sizes& counts, std::size_t gap) const {
    Sizes result;
    std::size_t at = 0;
    for (const std::size_t count : counts) {
      result.push_back(at);
      at += count + gap;
    }
    result.push_back(at);
    return result;
  }
  Sizes in_bytes(Sizes sizes) const {
    for (std::size_t& size : sizes) size *= element_;
    return sizes;
  }
  Bytes untouched(std::size_t count) const { return Bytes(count * element_, guard); }

  std::string reduction() {
    const std::size_t count = case_.count;
    const bool rooted = case_.collective == Collective::reduce;
    const bool has_output = !rooted || rank_ == case_.root;
    const bool in_place_here = case_.in_place && has_output;
    const Memory send = send_memory(count);
    const Memory receive = receive_memory(count);
    put(elements(case_, rank_, 0, count), in_place_here ? receive.data() : send.data());
    const void* from = in_place_here ? in_place : send.data();
    Bytes expected = has_output ? combined(case_, ranks_, 0, count) : untouched(count);
    if (case_.collective == Collective::scan) expected = combined(case_, rank_ + 1, 0, count);
    if (case_.collective == Collective::exscan) {
      expected = rank_ > 0       ? combined(case_, rank_, 0, count)
                 : in_place_here ? elements(case_, 0, 0, count)
                                 : untouched(count);
    }
    call([&](Collectives& on) {
      switch (case_.collective) {
        case Collective::allreduce:
          return on.allreduce(from, receive.data(), count, case_.type, case_.op);
        case Collective::reduce:
          return on.reduce(from, has_output ? receive.data() : nullptr, count, case_.type, case_.op,
                           case_.root);
        case Collective::scan:
          return on.scan(from, receive.data(), count, case_.type, case_.op);
        default:
          return on.exscan(from, receive.data(), count, case_.type, case_.op);
      }
    });
    return verdict(send, receive, expected);
  }

  std::string scattered_reduction() {
    const bool block = case_.collective == Collective::reduce_scatter_block;
    const Sizes counts = block ? Sizes(ranks_, case_.count) : case_.counts;
    const Sizes start = starts(counts, 0);
    const std::size_t total = start.back();
    const Memory send = send_memory(total);
    const Memory receive = receive_memory(case_.in_place ? total : counts[rank_]);
    put(elements(case_, rank_, 0, total), case_.in_place ? receive.data() : send.data());
    const void* from = case_.in_place ? in_place : send.data();
    call([&](Collectives& on) {
      if (block) {
        on.reduce_scatter_block(from, receive.data(), case_.count, case_.type, case_.op);
      } else {
        on.reduce_scatter(from, receive.data(), counts.data(), case_.type, case_.op);
      }
    });
    return verdict(send, receive, combined(case_, ranks_, start[rank_], counts[rank_]));
  }

  std::string broadcast() {
    const Memory data = receive_memory(case_.count);
    if (rank_ == case_.root) put(elements(case_, rank_, 0, case_.count), data.data());
    call([&](Collectives& on) { on.broadcast(data.data(), case_.count * element_, case_.root); });
    return verdict(data, data, elements(case_, case_.root, 0, case_.count));
  }

  std::string gathering() {
    const bool equal =
        case_.collective == Collective::allgather || case_.collective == Collective::gather;
    const bool rooted =
        case_.collective == Collective::gather || case_.collective == Collective::gatherv;
    const bool has_output = !rooted || rank_ == case_.root;
    const bool in_place_here = case_.in_place && has_output;
    const Sizes counts = equal ? Sizes(ranks_, case_.count) : case_.counts;
    const Sizes start = starts(counts, equal ? 0 : 3);
    const std::size_t count = counts[rank_];
    const Memory send = send_memory(count);
    const Memory receive = receive_memory(start.back());
    put(elements(case_, rank_, 0, count),
        in_place_here ? receive.data() + start[rank_] * element_ : send.data());
    const void* from = in_place_here ? in_place : send.data();
    const Sizes bytes = in_bytes(counts);
    const Sizes displacements = in_bytes(start);
    call([&](Collectives& on) {
      switch (case_.collective) {
        case Collective::allgather:
          return on.allgather(from, receive.data(), bytes[rank_]);
        case Collective::allgatherv:
          return on.allgatherv(from, bytes[rank_], receive.data(), bytes.data(),
                               displacements.data());
        case Collective::gather:
          return on.gather(from, receive.data(), bytes[rank_], case_.root);
        default:
          return on.gatherv(from, bytes[rank_], receive.data(), bytes.data(), displacements.data(),
                            case_.root);
      }
    });
    Bytes expected = untouched(start.back());
    for (int peer = 0; has_output && peer < ranks_; ++peer) {
      put(elements(case_, peer, 0, counts[peer]), expected.data() + displacements[peer]);
    }
    return verdict(send, receive, expected);
  }

  std::string scattering() {
    const bool equal = case_.collective == Collective::scatter;
    const bool at_root = rank_ == case_.root;
    const Sizes counts = equal ? Sizes(ranks_, case_.count) : case_.counts;
    const Sizes start = starts(counts, equal ? 0 : 3);
    const Memory send = send_memory(at_root ? start.back() : 0);
    const Memory receive = receive_memory(counts[rank_]);
    if (at_root) put(elements(case_, rank_, 0, start.back()), send.data());
    const bool stays = case_.in_place && at_root;
    void* to = stays ? in_place : receive.data();
    const Sizes bytes = in_bytes(counts);
    const Sizes displacements = in_bytes(start);
    call([&](Collectives& on) {
      if (equal) {
        on.scatter(send.data(), to, bytes[rank_], case_.root);
      } else {
        on.scatterv(send.data(), bytes.data(), displacements.data(), to, bytes[rank_], case_.root);
      }
    });
    return verdict(send, receive,
                   stays ? untouched(counts[rank_])
                         : elements(case_, case_.root, start[rank_], counts[rank_]));
  }

  // Rank r sends case_.counts[(r + peer) % ranks] elements to peer, so that in place is legal.
  std::size_t block(int from, int to) const {
    return case_.collective == Collective::alltoall ? case_.count
                                                    : case_.counts[(from + to) % ranks_];
  }

  std::string all_to_all() {
    Sizes counts;
    for (int peer = 0; peer < ranks_; ++peer) counts.push_back(block(rank_, peer));
    const bool equal = case_.collective == Collective::alltoall;
    const std::size_t gap = equal ? 0 : 2;
    const Sizes start = starts(counts, gap);
    const Memory send = send_memory(start.back());
    const Memory receive = receive_memory(start.back());
    put(elements(case_, rank_, 0, start.back()), case_.in_place ? receive.data() : send.data());
    const void* from = case_.in_place ? in_place : send.data();
    const Sizes bytes = in_bytes(counts);
    const Sizes displacements = in_bytes(start);
    call([&](Collectives& on) {
      if (equal) {
        on.alltoall(from, receive.data(), case_.count * element_);
      } else {
        on.alltoallv(from, bytes.data(), displacements.data(), receive.data(), bytes.data(),
                     displacements.data());
      }
    });
    Bytes expected =
        case_.in_place ? elements(case_, rank_, 0, start.back()) : untouched(start.back());
    for (int peer = 0; peer < ranks_; ++peer) {
      Sizes theirs;
      for (int to = 0; to < ranks_; ++to) theirs.push_back(block(peer, to));
      put(elements(case_, peer, starts(theirs, gap)[rank_], counts[peer]),
          expected.data() + displacements[peer]);
    }
    return verdict(send, receive, expected);
  }

  Collectives& communicator_;
  const Case& case_;
  int rank_;
  int ranks_;
  std::size_t element_;
};

}  // namespace

std::string Case::text() const {
  return "collective " + std::to_string(static_cast<int>(collective)) + " type " + name(type) +
         " op " + name(op) + " count " + std::to_string(count) + " root " + std::to_string(root) +
         (in_place ? " in place" : "") + (nonblocking ? " nonblocking" : "") + " arena " +
         std::to_string(send_in_arena) + "/" + std::to_string(receive_in_arena) + " skew " +
         std::to_string(skew) + " seed " + std::to_string(seed);
}

Case draw(std::mt19937_64& random, int ranks, const Bounds& bounds) {
  constexpr ElementType types[] = {ElementType::int8,   ElementType::uint16,  ElementType::int32,
                                   ElementType::uint64, ElementType::float32, ElementType::float64};
  constexpr ReductionOp ops[] = {ReductionOp::sum, ReductionOp::max, ReductionOp::min,
                                 ReductionOp::prod};
  const auto up_to = [&](std::size_t limit) { return random() % (limit + 1); };
  const auto some_count = [&]() -> std::size_t {
    switch (random() % 4) {
      case 0:
        return up_to(3);
      case 1:
        return up_to(300);
      case 2:
        return up_to(bounds.count / 10);
      default:
        return up_to(bounds.count);
    }
  };
  const auto some_mask = [&]() -> std::uint32_t {
    switch (random() % 4) {
      case 0:
        return 0;
      case 1:
        return static_cast<std::uint32_t>(random());
      default:
        return ~0U;
    }
  };
  Case drawn;
  drawn.collective = static_cast<Collective>(random() % collective_count);
  drawn.type = types[random() % std::size(types)];
  drawn.op = ops[random() % std::size(ops)];
  drawn.count = some_count();
  drawn.root = static_cast<int>(random() % ranks);
  drawn.in_place = random() % 4 == 0;
  drawn.nonblocking = random() % 8 == 0;
  drawn.send_in_arena = some_mask();
  drawn.receive_in_arena = some_mask();
  drawn.skew = random() % 3;
  for (int rank = 0; rank < ranks; ++rank) drawn.counts.push_back(some_count() / ranks);
  drawn.seed = random();
  return drawn;
}

std::string run(Collectives& communicator, const Case& drawn) {
  try {
    return Trial(communicator, drawn).run();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace ropewalk::test
