#include "collectives/cases.hpp"

#include <memory_resource>
#include <vector>

#include "generator/loops.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::test {
namespace {

using generator::Buffers;
using generator::Memory;
using generator::Side;
using Sizes = std::vector<std::size_t>;
using E = ElementType;

// The types are in the order of the catalogue: floating-point numbers come last.
constexpr E types[] = {E::int8,   E::uint8, E::int16,  E::uint16,  E::int32,
                       E::uint32, E::int64, E::uint64, E::float32, E::float64};

generator::Catalogue make_catalogue(bool only_integers) {
  generator::Catalogue catalogue;
  for (const E type : types) {
    const bool is_float = type == E::float32 || type == E::float64;
    if (is_float && only_integers) continue;
    const char kind = is_float ? 'f' : static_cast<int>(type) % 2 == 0 ? 'i' : 'u';
    catalogue.add(name(type), is_float ? generator::Class::real : generator::Class::integer, kind,
                  static_cast<int>(size_of(type)));
  }
  return catalogue;
}

const generator::Catalogue& catalogue() {
  static const generator::Catalogue all = make_catalogue(false);
  return all;
}

// In the arena, or of the default memory resource, which some tests replace.
generator::Allocator memory() {
  return {[](std::size_t bytes, bool shared) {
            return shared ? Arena::process().allocate(bytes)
                          : std::pmr::get_default_resource()->allocate(bytes);
          },
          [](void* memory, std::size_t bytes, bool shared) {
            if (shared) {
              Arena::process().deallocate(memory);
            } else {
              std::pmr::get_default_resource()->deallocate(memory, bytes);
            }
          }};
}

// Holds one side as the C++ interface takes it: movements are in bytes.
struct Passed {
  Passed(const Side& side, const Memory& memory, std::size_t bytes)
      : data(side.stays ? in_place : memory.data()) {
    if (!side.significant) data = nullptr;
    for (const generator::Block& block : side.blocks) {
      counts.push_back(static_cast<std::size_t>(block.count) * bytes);
      places.push_back(static_cast<std::size_t>(block.first) * bytes);
    }
  }
  std::size_t count() const { return counts.empty() ? 0 : counts[0]; }
  void* data;
  Sizes counts;
  Sizes places;
};

// One run of one case on one rank.
class Trial {
 public:
  Trial(Collectives& communicator, const Case& drawn)
      : communicator_(communicator),
        case_(drawn),
        rank_(communicator.rank()),
        ranks_(communicator.size()),
        root_(drawn.root(ranks_)),
        type_(types[drawn.type]),
        plan_(generator::plan(catalogue(), drawn, rank_, ranks_)),
        buffers_(memory(), drawn, plan_, rank_),
        expected_(generator::private_memory(), drawn, plan_, rank_),
        send_(plan_.send, buffers_.send, size_of(type_)),
        receive_(plan_.receive, buffers_.receive, size_of(type_)),
        shares_(generator::shares(drawn, catalogue().types[drawn.type], ranks_)),
        counts_(shares_.each.begin(), shares_.each.end()) {}

  std::string run() {
    const auto call = [this](Collectives& on) { return case_.reduces() ? reduce(on) : move(on); };
    if (case_.nonblocking) {
      CollectiveRequest request = communicator_.start(call);
      if (!case_.tested || !request.test()) request.wait();
    } else {
      call(communicator_);
    }
    generator::apply(catalogue(), case_, rank_, ranks_, expected_.receive);
    for (const Buffers* buffers : {&buffers_, &expected_}) {
      fill_behind(catalogue(), case_, plan_.receive, buffers->receive, rank_, ranks_);
    }
    const std::string sent = buffers_.send.difference("send", plan_.send, expected_.send);
    if (!sent.empty()) return sent;
    return buffers_.receive.difference("receive", plan_.receive, expected_.receive);
  }

 private:
  void reduce(Collectives& on) const {
    const void* from = send_.data;
    void* to = receive_.data;
    const std::size_t n = counts_[0];
    const auto op = static_cast<ReductionOp>(case_.op);
    switch (case_.collective) {
      case Collective::allreduce:
        return on.allreduce(from, to, n, type_, op);
      case Collective::reduce:
        return on.reduce(from, to, n, type_, op, root_);
      case Collective::scan:
        return on.scan(from, to, n, type_, op);
      case Collective::exscan:
        return on.exscan(from, to, n, type_, op);
      case Collective::reduce_scatter:
        return on.reduce_scatter(from, to, counts_.data(), type_, op);
      default:
        return on.reduce_scatter_block(from, to, n, type_, op);
    }
  }

  void move(Collectives& on) const {
    const Passed& s = send_;
    const Passed& r = receive_;
    switch (case_.collective) {
      case Collective::barrier:
        return on.barrier();
      case Collective::bcast:
        return on.broadcast(r.data, r.count(), root_);
      case Collective::allgather:
        return on.allgather(s.data, r.data, s.count());
      case Collective::allgatherv:
        return on.allgatherv(s.data, s.count(), r.data, r.counts.data(), r.places.data());
      case Collective::gather:
        return on.gather(s.data, r.data, s.count(), root_);
      case Collective::gatherv:
        return on.gatherv(s.data, s.count(), r.data, r.counts.data(), r.places.data(), root_);
      case Collective::scatter:
        return on.scatter(s.data, r.data, r.count(), root_);
      case Collective::scatterv:
        return on.scatterv(s.data, s.counts.data(), s.places.data(), r.data, r.count(), root_);
      case Collective::alltoall:
        return on.alltoall(s.data, r.data, r.count());
      default:
        return on.alltoallv(s.data, s.counts.data(), s.places.data(), r.data, r.counts.data(),
                            r.places.data());
    }
  }

  Collectives& communicator_;
  const Case& case_;
  int rank_;
  int ranks_;
  int root_;
  ElementType type_;
  generator::Plan plan_;
  Buffers buffers_;
  Buffers expected_;
  Passed send_;
  Passed receive_;
  generator::Shares shares_;
  Sizes counts_;
};

}  // namespace

Case draw(std::mt19937_64& random, const Bounds& bounds) {
  static const generator::Catalogue integers = make_catalogue(true);
  generator::Limits limits{generator::Interface::cpp};
  limits.most_bytes = bounds.bytes;
  limits.large_percent = bounds.large_percent;
  return {bounds.only_integers ? integers : catalogue(), random(), limits};
}

void set_type(Case& drawn, ElementType type) {
  while (types[drawn.type] != type) drawn.type = (drawn.type + 1) % std::size(types);
}

std::string text(const Case& drawn, const Collectives& communicator) {
  return drawn.text(catalogue(), communicator.rank(), communicator.size()) + ", seed " +
         std::to_string(drawn.seed);
}

std::string run(Collectives& communicator, const Case& drawn) {
  try {
    return Trial(communicator, drawn).run();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace ropewalk::test
