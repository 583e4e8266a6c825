// The buffers of a case, and both calls.
#include <algorithm>
#include <memory>

#include "cases.hpp"

namespace test {
namespace {

constexpr std::size_t guard_bytes = 64;

// A run of elements.
struct Block {
  std::int64_t first;
  int count;
};

// What a rank takes part with on one side.
struct Plan {
  const Type* type = nullptr;
  std::vector<Block> blocks;
  bool significant = true;  // else any garbage will do
  bool stays = false;       // MPI_IN_PLACE
  bool by_vector = false;
};

// Room for the blocks, with guards around it, from malloc or MPI_Alloc_mem.
class Memory {
 public:
  Memory(const Plan& plan, bool by_mpi, std::size_t skew) : by_mpi_(by_mpi) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (const Block& block : plan.blocks) {
      if (block.count == 0) continue;
      low = std::min(low, block.first * plan.type->extent + plan.type->low);
      high = std::max(high, (block.first + block.count - 1) * plan.type->extent + plan.type->high);
    }
    const auto before = (static_cast<std::size_t>(-low) + 63) / 64 * 64;
    offset_ = guard_bytes + before + skew * 16;
    bytes_ = offset_ + static_cast<std::size_t>(high) + guard_bytes;
    if (by_mpi) {
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes_), MPI_INFO_NULL, &start_);
    } else {
      start_ = static_cast<std::byte*>(std::malloc(bytes_));
    }
    std::memset(start_, 0x5a, bytes_);
  }
  ~Memory() {
    if (by_mpi_) {
      MPI_Free_mem(start_);
    } else {
      std::free(start_);
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return start_ + offset_; }
  void take(const Memory& from) { std::memcpy(start_, from.start_, bytes_); }
  bool same(const Memory& other) const { return std::memcmp(start_, other.start_, bytes_) == 0; }
  std::int64_t first_difference(const Memory& other) const {
    const auto at = std::mismatch(start_, start_ + bytes_, other.start_).first - start_;
    return at - static_cast<std::int64_t>(offset_);
  }

 private:
  bool by_mpi_;
  std::byte* start_ = nullptr;
  std::size_t offset_ = 0;
  std::size_t bytes_ = 0;
};

template <class Work>
void for_elements(const Plan& plan, const Memory& memory, const Work& work) {
  for (const Block& block : plan.blocks) {
    for (int i = 0; i < block.count; ++i) {
      work(memory.data() + (block.first + i) * plan.type->extent);
    }
  }
}

template <class T>
void put(std::byte* to, double value) {
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
}

void put_number(const Scalar& scalar, std::byte* to, double value) {
  if (scalar.kind == 'f' || scalar.kind == 'c') {
    if (scalar.bytes == 4) return put<float>(to, value);
    return scalar.bytes == 8 ? put<double>(to, value) : put<long double>(to, value);
  }
  if (scalar.bytes == 1) return put<std::int8_t>(to, value);
  if (scalar.bytes == 2) return put<std::int16_t>(to, value);
  return scalar.bytes == 4 ? put<std::int32_t>(to, value) : put<std::int64_t>(to, value);
}

// Numbers whose combination is exact in any order, and in range on eight ranks.
double value_of(Operation operation, Class of, std::size_t scalar, int rank, std::uint64_t random) {
  // Open MPI 5.0 takes MPI_OFFSET for unsigned.
  if (of == Class::shared_integer && operation < Operation::sum) return random % 100;
  if (of == Class::logical) return static_cast<double>(random % 2);
  const bool few = rank < 3;
  switch (operation) {
    case Operation::sum:
      return static_cast<double>(random % 8);
    case Operation::prod:
      if (of == Class::complex) return scalar == 0 ? 1 : static_cast<double>(few && random % 2);
      return random % 3 == 0 ? -1 : few ? 1 + static_cast<double>(random % 2) : 1;
    case Operation::land:
    case Operation::lor:
    case Operation::lxor:
      return static_cast<double>(random % 3);
    case Operation::maxloc:
    case Operation::minloc:
      return static_cast<double>(scalar == 0 ? random % 3 : random % 100);
    default:
      return static_cast<double>(random % 100) - 50;
  }
}

void fill(const Catalogue& catalogue, const Case& the_case, const Plan& plan, const Memory& memory,
          int rank, std::uint64_t salt) {
  std::uint64_t random = the_case.hash(23, salt << 20 ^ static_cast<unsigned>(rank));
  const Operation operation = catalogue.ops[the_case.op].operation;
  const bool numbers = the_case.reduction && operation < Operation::user_sum;
  for_elements(plan, memory, [&](std::byte* element) {
    for (std::size_t i = 0; i < plan.type->scalars.size(); ++i) {
      const Scalar& scalar = plan.type->scalars[i];
      random = random * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL;
      const std::uint64_t drawn = random >> 24;
      if (numbers) {
        put_number(scalar, element + scalar.offset,
                   value_of(operation, plan.type->of, i, rank, drawn));
      } else {
        for (int at = 0; at < scalar.bytes; ++at) {
          element[scalar.offset + at] = static_cast<std::byte>(drawn >> (at % 5 * 8));
        }
      }
    }
  });
}

// Bytes that are nobody's: MPI may move them or not.
void clear_padding(const Plan& plan, const Memory& memory) {
  if (plan.type == nullptr || plan.type->scalars.empty()) return;
  const Type& type = *plan.type;
  std::vector<std::int64_t> nobody;
  for (const Scalar& scalar : type.scalars) {
    for (int at = significant(scalar); at < scalar.bytes; ++at)
      nobody.push_back(scalar.offset + at);
  }
  if (type.of == Class::pair) {
    for (auto at = type.scalars[0].offset + type.scalars[0].bytes; at < type.scalars[1].offset;
         ++at)
      nobody.push_back(at);
    for (auto at = type.scalars[1].offset + type.scalars[1].bytes; at < type.extent; ++at)
      nobody.push_back(at);
  }
  if (nobody.empty()) return;
  for_elements(plan, memory, [&](std::byte* element) {
    for (const std::int64_t at : nobody) element[at] = std::byte{0};
  });
}

// ---- who sends and receives what

class Planner {
 public:
  Planner(const Catalogue& catalogue, const Case& the_case, const Comm& comm)
      : case_(the_case),
        comm_(comm),
        agreed_(catalogue.types[agreed_index(catalogue)]),
        root_(the_case.root(comm.size)),
        count_(the_case.count(agreed_, comm.size)) {
    send.type = &the_case.type_of(catalogue, comm.rank, 0);
    receive.type = &the_case.type_of(catalogue, comm.rank, 1);
    plan();
  }

  Plan send;
  Plan receive;

 private:
  std::size_t agreed_index(const Catalogue& catalogue) const {
    return case_.mixed ? catalogue.families[0][0] : case_.type;
  }
  int ours(std::uint64_t from, std::uint64_t to) const {
    return case_.count(agreed_, comm_.size, from, to);
  }
  bool at_root() const { return comm_.rank == root_; }
  static int elements(const Plan& side, int count) { return count * side.type->repeat; }

  void one(Plan& side, int count) const { side.blocks = {{0, elements(side, count)}}; }
  void equal(Plan& side) const {
    for (int i = 0; i < comm_.size; ++i) {
      side.blocks.push_back({std::int64_t{i} * elements(side, count_), elements(side, count_)});
    }
  }
  // Blocks apart from each other, backwards or forwards, before the buffer or behind.
  template <class Count>
  void apart(Plan& side, std::uint64_t salt, const Count& count) const {
    side.by_vector = true;
    const bool backwards = case_.hash(24, salt) % 2 == 0;
    std::int64_t next = static_cast<std::int64_t>(case_.hash(25, salt) % 40) - 30;
    for (int i = 0; i < comm_.size; ++i) {
      const int now = elements(side, count(static_cast<std::uint64_t>(i)));
      const auto gap = static_cast<std::int64_t>(case_.hash(26, salt << 8 ^ unsigned(i)) % 4);
      if (backwards) next -= now + gap;
      // A block of nothing may lie anywhere.
      side.blocks.push_back({now == 0 ? (case_.nothing ? -(1 << 28) : next) : next, now});
      if (!backwards) next += now + gap;
    }
  }

  void plan();
  void plan_reduction();
  void plan_movement(std::uint64_t self);
  void plan_rooted(std::uint64_t self);

  const Case& case_;
  const Comm& comm_;
  const Type& agreed_;
  int root_;
  int count_;
};

void Planner::plan() {
  const auto self = static_cast<std::uint64_t>(comm_.rank);
  if (case_.reduction) {
    plan_reduction();
  } else if (case_.collective >= Collective::gather && case_.collective <= Collective::scatterv) {
    plan_rooted(self);
  } else {
    plan_movement(self);
  }
}

void Planner::plan_reduction() {
  send.stays = case_.in_place;
  int all = count_;
  int result = count_;
  if (case_.collective == Collective::reduce) {
    send.stays = case_.in_place && at_root();
    receive.significant = at_root();
  } else if (case_.collective == Collective::reduce_scatter_block) {
    all = count_ * comm_.size;
  } else if (case_.collective == Collective::reduce_scatter) {
    all = 0;
    for (int i = 0; i < comm_.size; ++i) all += ours(0, static_cast<std::uint64_t>(i));
    result = ours(0, static_cast<std::uint64_t>(comm_.rank));
  }
  one(send, all);
  one(receive, send.stays ? all : result);
}

void Planner::plan_rooted(std::uint64_t self) {
  const bool gathers =
      case_.collective == Collective::gather || case_.collective == Collective::gatherv;
  const bool vectors =
      case_.collective == Collective::gatherv || case_.collective == Collective::scatterv;
  Plan& single = gathers ? send : receive;
  Plan& many = gathers ? receive : send;
  single.stays = case_.in_place && at_root();
  many.significant = at_root();
  one(single, vectors ? ours(0, self) : count_);
  if (vectors) {
    apart(many, 1, [&](std::uint64_t i) { return ours(0, i); });
  } else {
    equal(many);
  }
}

void Planner::plan_movement(std::uint64_t self) {
  send.stays = case_.in_place;
  const bool stays = send.stays;
  switch (case_.collective) {
    case Collective::bcast:
      send.significant = false;
      send.stays = false;
      return one(receive, count_);
    case Collective::allgather:
      one(send, count_);
      return equal(receive);
    case Collective::allgatherv:
      one(send, ours(0, self));
      return apart(receive, 1, [&](std::uint64_t i) { return ours(0, i); });
    case Collective::alltoall:
      equal(send);
      return equal(receive);
    case Collective::alltoallv: {
      apart(send, 2 + self, [&](std::uint64_t i) { return ours(self, i); });
      // In place, what goes there is as much as what comes from there.
      return apart(receive, 99 + self, [&](std::uint64_t i) {
        return stays ? ours(std::min(self, i), std::max(self, i)) : ours(i, self);
      });
    }
    default:
      send.significant = receive.significant = false;
  }
}

// ---- arguments

// The block at an absolute address, as a type.
MPI_Datatype absolute(const Type& type, int count, const void* data) {
  MPI_Aint address = 0;
  PMPI_Get_address(data, &address);
  MPI_Datatype placed;
  PMPI_Type_create_hindexed(1, &count, &address, type.handle, &placed);
  MPI_Datatype made;
  PMPI_Type_create_resized(placed, 0, count * type.extent, &made);
  PMPI_Type_free(&placed);
  PMPI_Type_commit(&made);
  return made;
}

class Side {
 public:
  Side(const Case& the_case, const Plan& plan, const Memory& memory) {
    if (plan.stays) argument.data = MPI_IN_PLACE;
    if (!plan.significant || plan.stays) {
      if (the_case.nothing) {
        garbage(plan.stays);
        return;
      }
      if (!plan.stays) argument.data = memory.data();
    } else {
      argument.data = memory.data();
    }
    argument.type = plan.type->handle;
    argument.count = plan.blocks.empty() ? 0 : plan.blocks.front().count;
    if (the_case.bottom && plan.significant && !plan.stays && argument.count > 0) {
      argument.type = absolute(*plan.type, argument.count, memory.data());
      argument.count = 1;
      argument.data = MPI_BOTTOM;
      own_type_ = true;
    }
    if (!plan.by_vector) return;
    for (const Block& block : plan.blocks) {
      argument.counts.push_back(block.count);
      argument.displacements.push_back(static_cast<int>(block.first));
    }
  }
  ~Side() {
    if (own_type_) PMPI_Type_free(&argument.type);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  Argument argument;

 private:
  void garbage(bool stays) {
    if (!stays) argument.data = nullptr;
    argument.count = -7;
    argument.type = MPI_DATATYPE_NULL;
  }
  bool own_type_ = false;
};

// The buffers of one of the two calls.
struct Buffers {
  Buffers(const Case& the_case, const Planner& plan, std::uint64_t salt)
      : send(plan.send, the_case.hash(27, salt) % 2 == 0, the_case.hash(28, salt) % 3),
        receive(plan.receive, the_case.hash(29, salt) % 2 == 0, the_case.hash(30, salt) % 3) {}
  Memory send;
  Memory receive;
};

int call(const Catalogue& catalogue, const Case& the_case, const Comm& comm, const Planner& plan,
         const Buffers& buffers, Through through) {
  Side send(the_case, plan.send, buffers.send);
  Side receive(the_case, plan.receive, buffers.receive);
  if (the_case.reduction) {
    // One type and count for both sides, those of the result.
    const Plan& counted = plan.send;
    receive.argument.type = counted.type->handle;
    const int count = the_case.count(*counted.type, comm.size);
    receive.argument.count = count * counted.type->repeat;
    if (the_case.collective == Collective::reduce_scatter) {
      for (int i = 0; i < comm.size; ++i) {
        receive.argument.counts.push_back(
            the_case.count(*counted.type, comm.size, 0, static_cast<std::uint64_t>(i)) *
            counted.type->repeat);
      }
    }
  }
  return make({the_case.collective, send.argument, receive.argument,
               catalogue.ops[the_case.op].handle, the_case.root(comm.size), comm.handle},
              through);
}

// What lies behind the result of a reduce_scatter in place is anything.
Plan behind_result(const Case& the_case, const Comm& comm, const Plan& receive) {
  Plan behind = receive;
  const int ranks = comm.size;
  const auto self = static_cast<std::uint64_t>(comm.rank);
  int result = 0;
  if (the_case.collective == Collective::reduce_scatter) {
    result = the_case.count(*receive.type, ranks, 0, self);
  } else {
    result = the_case.count(*receive.type, ranks);
  }
  result *= receive.type->repeat;
  behind.blocks = {{result, receive.blocks.front().count - result}};
  return behind;
}

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  PMPI_Error_string(code, text.data(), &length);
  return text.data();
}

std::string compare(const char* which, const Plan& plan, const Memory& ours, const Memory& theirs) {
  if (!plan.significant) return "";
  clear_padding(plan, ours);
  clear_padding(plan, theirs);
  if (ours.same(theirs)) return "";
  return std::string(which) + " buffer: first difference at byte " +
         std::to_string(ours.first_difference(theirs)) + " of it";
}

}  // namespace

std::string run(const Catalogue& catalogue, const Case& the_case, const Comm& comm) {
  const Planner plan(catalogue, the_case, comm);
  const auto salt = static_cast<std::uint64_t>(comm.rank);
  const Buffers ours(the_case, plan, 2 * salt);
  // The same skew: the bytes are compared from the beginning of the memory.
  Buffers theirs(the_case, plan, 2 * salt);
  fill(catalogue, the_case, plan.send, ours.send, comm.rank, 1);
  fill(catalogue, the_case, plan.receive, ours.receive, comm.rank, 2);
  theirs.send.take(ours.send);
  theirs.receive.take(ours.receive);
  use_layout(*plan.send.type);
  const Through us = the_case.large ? Through::mpi_x_large : Through::mpi_x;
  const auto by_mpi = [&] {
    return call(catalogue, the_case, comm, plan, theirs, Through::pmpi_x);
  };
  int theirs_code = 0;
  if (the_case.mpi_first) theirs_code = by_mpi();
  const int code = call(catalogue, the_case, comm, plan, ours, us);
  if (!the_case.mpi_first) theirs_code = by_mpi();
  if (the_case.in_place && the_case.scatters()) {
    const Plan behind = behind_result(the_case, comm, plan.receive);
    fill(catalogue, the_case, behind, ours.receive, comm.rank, 3);
    fill(catalogue, the_case, behind, theirs.receive, comm.rank, 3);
  }
  if (theirs_code != MPI_SUCCESS) return "MPI itself: " + error_text(theirs_code);
  if (code != MPI_SUCCESS) return error_text(code);
  if (wrong_types > 0) return "an operation of the user was called with another type";
  const std::string sent = compare("send", plan.send, ours.send, theirs.send);
  return sent.empty() ? compare("receive", plan.receive, ours.receive, theirs.receive) : sent;
}

}  // namespace test
