// This file reduces mapped buffers of ranks in several cache domains: each domain first reduces
// among its own ranks, then its ranks combine the domains' results and write them to their own
// domain.
//
// If each of p ranks in D domains read all inputs and wrote all outputs, (D - 1) / D of 2ps bytes
// would cross between caches. Here only partial results do: D(D - 1)s bytes. That costs one more
// exchange of flags for each chunk. Within a domain elements are combined in the order of ranks,
// then domains in the order of their lowest ranks: the same bits on all ranks and in every run that
// places its ranks alike.
#include <algorithm>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

// So much of the vector is reduced at a time: the partial results of a chunk stay in the caches.
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

struct Levels {
  Engine& engine;
  const std::vector<Shown>& shown;
  const Operation& operation;
  int root;
  const node::Domains& domains;
  std::size_t grain;       // slices end at multiples of so many elements
  std::size_t area_bytes;  // of one rank's partial results of one chunk
  kernels::Stores stores;  // of results

  const std::vector<int>& members(int domain) const {
    return domains.members[static_cast<std::size_t>(domain)];
  }
  Range slice_of(std::size_t count, int domain, std::size_t member) const {
    return slice(count, static_cast<int>(member), static_cast<int>(members(domain).size()), grain);
  }
  int own_domain() const { return domains.of[static_cast<std::size_t>(engine.rank())]; }
  std::size_t own_member() const {
    const auto& ranks = members(own_domain());
    return static_cast<std::size_t>(std::ranges::find(ranks, engine.rank()) - ranks.begin());
  }
  // Two areas a rank, used in turn.
  std::byte* partial(int rank, std::size_t chunk) const {
    return engine.team().staging().of(rank) + chunk % 2 * area_bytes;
  }

  // Reduces this rank's slice of a chunk over the inputs of its domain.
  void reduce_inside(std::size_t chunk, std::size_t first, std::size_t count) const {
    const auto& ranks = members(own_domain());
    const Range part = slice_of(count, own_domain(), own_member());
    const std::size_t offset = (first + part.begin) * operation.element_bytes;
    const std::size_t bytes = part.length() * operation.element_bytes;
    for (std::size_t index = 0; index < ranks.size(); ++index) {
      const int rank = ranks[index];
      engine.inputs[index] =
          engine.resolve(rank, shown[static_cast<std::size_t>(rank)].send + offset, bytes);
    }
    void* output = partial(engine.rank(), chunk);
    operation.partial().combine(std::span(&output, 1), std::span(engine.inputs).first(ranks.size()),
                                part.length(), kernels::Stores::temporal);
  }

  // Finds where the elements of `part` lie among a domain's partial results, and shortens `part`
  // where they end earlier.
  const std::byte* find(int domain, std::size_t chunk, std::size_t count, Range& part) const {
    for (std::size_t member = 0; member < members(domain).size(); ++member) {
      const Range there = slice_of(count, domain, member);
      if (part.begin >= there.end) continue;
      part.end = std::min(part.end, there.end);
      return partial(members(domain)[member], chunk) +
             (part.begin - there.begin) * operation.element_bytes;
    }
    return nullptr;  // not reached: the slices cover the chunk
  }

  // This rank's slice of a chunk, of the partial results of all domains, to the outputs of its own.
  void combine_domains(std::size_t chunk, std::size_t first, std::size_t count) const {
    const Range own = slice_of(count, own_domain(), own_member());
    // Domains of other sizes cut elsewhere: what lies in one slice of each is combined at once.
    for (Range part = own; part.begin < own.end; part = {part.end, own.end}) {
      for (int domain = 0; domain < domains.count(); ++domain) find(domain, chunk, count, part);
      for (int domain = 0; domain < domains.count(); ++domain) {
        engine.inputs[static_cast<std::size_t>(domain)] = find(domain, chunk, count, part);
      }
      const std::size_t offset = (first + part.begin) * operation.element_bytes;
      const std::size_t bytes = part.length() * operation.element_bytes;
      std::size_t outputs = 0;
      for (const int rank : members(own_domain())) {
        if (root >= 0 && rank != root) continue;
        engine.outputs[outputs++] =
            engine.resolve(rank, shown[static_cast<std::size_t>(rank)].receive + offset, bytes);
      }
      operation.combine(std::span(engine.outputs).first(outputs),
                        std::span(engine.inputs).first(static_cast<std::size_t>(domains.count())),
                        part.length(), engine.stores(count * operation.element_bytes));
    }
  }
};

}  // namespace

bool has_levels(Engine& engine, std::size_t bytes, const Operation& operation) {
  const node::Domains& domains = engine.team().domains();
  if (domains.count() < 2 || domains.count() == engine.size()) return false;
  if (bytes < engine.limits().two_level_bytes) return false;
  return domains.contiguous || !operation.by_mpi;  // MPI's may depend on the order of ranks
}

void two_level_reduce(Engine& engine, const std::vector<Shown>& shown, std::size_t count,
                      const Operation& operation, int root) {
  node::Team& team = engine.team();
  const std::size_t element = operation.element_bytes;
  const std::size_t step = std::max<std::size_t>(1, chunk_bytes / element);
  const Levels levels{engine,
                      shown,
                      operation,
                      root,
                      team.domains(),
                      std::max<std::size_t>(1, node::flag_stride / element),
                      std::min(step, count) * element,
                      engine.stores(count * element)};
  // Every rank has arrived, so every rank has left the last call that read this area.
  engine.duties().reserve_staging(2 * levels.area_bytes);
  const bool writes =
      root < 0 || team.domains().of[static_cast<std::size_t>(root)] == levels.own_domain();
  std::size_t chunk = 0;
  for (std::size_t first = 0; first < count; first += step, ++chunk) {
    const std::size_t length = std::min(step, count - first);
    // The area was last read for chunk - 2, by ranks that have since finished a phase.
    levels.reduce_inside(chunk, first, length);
    engine.duties().synchronize();
    if (writes) levels.combine_domains(chunk, first, length);
  }
  engine.leave();
}

}  // namespace ropewalk::collectives
