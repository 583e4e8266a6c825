#include "collectives/nodes/choice.hpp"

#include <cstdlib>

#include "mpi/mpi.hpp"
#include "settings/value.hpp"

namespace ropewalk::collectives::nodes {
namespace {

struct Entry {
  Algorithm algorithm;
  std::unique_ptr<ChunkExchange> (*make)(const ExchangeSetup&);
};
// These algorithms take a vector in chunks.
constexpr Entry table[] = {{Algorithm::halving, &make_halving},
                           {Algorithm::ring, &make_ring},
                           {Algorithm::mpi, &make_by_mpi}};

}  // namespace

bool wishes_all_sizes() { return settings::get(settings::Id::movements).is("nodes"); }

// Where Open MPI's eager limit is set, as `ropewalk run` does for several rails, longer messages
// are what is shared among them.
tuning::Values values_for_nodes() {
  const bool openmpi = mpi::family() == mpi::Family::openmpi;
  const bool eager = std::getenv("OMPI_MCA_btl_tcp_eager_limit") == nullptr;
  return tuning::values_over_nodes({.openmpi = openmpi, .openmpi_eager = openmpi && eager});
}

std::unique_ptr<ChunkExchange> make_exchange(Algorithm algorithm, const ExchangeSetup& setup,
                                             bool rooted) {
  if (rooted) return make_chain(setup);
  for (const Entry& entry : table) {
    if (entry.algorithm == algorithm) return entry.make(setup);
  }
  throw Error(ErrorCode::internal, "allreduce: an algorithm that has no chunks");
}

}  // namespace ropewalk::collectives::nodes
