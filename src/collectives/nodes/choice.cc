// Which algorithm a reduction over nodes takes: a table, and its lookup.
#include <algorithm>
#include <cstdlib>

#include "collectives/nodes/choice.hpp"
#include "mpi/mpi.hpp"
#include "settings/value.hpp"

namespace ropewalk::collectives::nodes {
namespace {

struct Entry {
  const char* name;  // in ROPEWALK_ALLREDUCE
  Algorithm algorithm;
  std::unique_ptr<ChunkExchange> (*make)(const ExchangeSetup&);
};
constexpr Entry table[] = {
    {"whole", Algorithm::whole, nullptr},       {"flat", Algorithm::flat, nullptr},
    {"doubling", Algorithm::doubling, nullptr}, {"halving", Algorithm::halving, &make_halving},
    {"ring", Algorithm::ring, &make_ring},      {"mpi", Algorithm::mpi, &make_by_mpi},
};

// Measured in the box, 4 nodes of 2 ranks on 2 cores: below the first size doubling among
// all ranks is the fastest, below the second the MPI's own call between the leaders; from there on
// the ring is as good, and with several nodes a core better. docs/explanation/nodes.md has the
// figures.
constexpr std::size_t flat_bytes = std::size_t{16} << 10;
constexpr std::size_t ring_bytes = std::size_t{256} << 10;
// To a root the MPI's own call has one message less for small vectors.
constexpr std::size_t chain_bytes = std::size_t{64} << 10;
// A slice is worth a leader from this size on.
constexpr std::size_t least_slice_bytes = std::size_t{32} << 10;
constexpr int slice_limit = 16;
// Of one message of the ring: long enough for the line, short enough that several are under way.
constexpr std::size_t least_message = std::size_t{32} << 10;
constexpr std::size_t most_message = std::size_t{256} << 10;
// Open MPI sends at once what is below 64 KiB with its header (btl_tcp_eager_limit). Above, it asks
// first, and the answer waits behind the data of the other direction: 2 nodes of 2 ranks reach 83 %
// of the line with 256 KiB, 99 % with these. Where that limit is set, as `ropewalk run` does for
// several rails, longer messages are what is shared among them.
constexpr std::size_t most_openmpi_message = std::size_t{60} << 10;

}  // namespace

int wished_algorithm() {
  const settings::Value wish = settings::get(settings::Id::allreduce);
  for (const Entry& entry : table) {
    if (wish.is(entry.name)) return static_cast<int>(entry.algorithm);
  }
  return -1;
}

bool wishes_all_sizes() { return settings::get(settings::Id::movements).is("nodes"); }

std::size_t longest_message() {
  const bool eager = mpi::family() == mpi::Family::openmpi &&
                     std::getenv("OMPI_MCA_btl_tcp_eager_limit") == nullptr;
  return eager ? most_openmpi_message : most_message;
}

int most_slices(const Layout& layout) { return std::min(layout.most, slice_limit); }

Choice choose(const Layout& layout, const ReductionRequest& asked) {
  const auto nodes = static_cast<std::size_t>(layout.count());
  const std::size_t bytes = asked.bytes;
  Algorithm algorithm = bytes < flat_bytes   ? Algorithm::flat
                        : bytes < ring_bytes ? Algorithm::mpi
                                             : Algorithm::ring;
  if (asked.rooted) algorithm = bytes < chain_bytes ? Algorithm::whole : Algorithm::ring;
  if (asked.wish >= 0 && !asked.rooted) algorithm = static_cast<Algorithm>(asked.wish);
  const auto worth =
      static_cast<int>(std::min<std::size_t>(slice_limit, bytes / least_slice_bytes));
  const int slices = std::clamp(worth, 1, most_slices(layout));
  const std::size_t slice_bytes = bytes / static_cast<std::size_t>(slices) + 1;
  // Four chunks, so that one is reduced while others travel.
  const std::size_t messages = asked.rooted ? 1 : nodes;
  const std::size_t chunk =
      std::clamp(slice_bytes / 4, messages * least_message, messages * asked.longest_message);
  return {algorithm, slices, chunk};
}

std::unique_ptr<ChunkExchange> make_exchange(Algorithm algorithm, const ExchangeSetup& setup,
                                             bool rooted) {
  if (rooted) return make_chain(setup);
  for (const Entry& entry : table) {
    if (entry.algorithm == algorithm && entry.make != nullptr) return entry.make(setup);
  }
  throw Error(ErrorCode::internal, "allreduce: an algorithm that has no chunks");
}

}  // namespace ropewalk::collectives::nodes
