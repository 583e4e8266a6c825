#include "tuning/limits.hpp"

#include <algorithm>

#include "topology/machine.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::tuning {
namespace {

// What virtual machines are told of the last-level cache may be the host's: no more than 64 MiB are
// believed, and no less than 16. Read once, since it is a walk over sysfs.
std::size_t believed_cache_bytes() {
  static const std::size_t cache =
      topology::read_machine().last_level_cache_bytes(topology::usable_cpus().cpus.front());
  return std::clamp<std::size_t>(cache, std::size_t{16} << 20, std::size_t{64} << 20);
}

}  // namespace

Limits limits_for(int ranks, bool crowded) {
  const Values values({ranks, crowded, believed_cache_bytes()}, profile());
  return {.one_shot_bytes = values[Id::node_inlined],
          .gathered_bytes = values[Id::node_inlined_allgather],
          .rooted_bytes = values[Id::node_inlined_rooted],
          .copied_bytes = values[Id::node_copied],
          .piecewise_bytes = values[Id::node_piecewise],
          .alone_bytes = values[Id::node_piecewise_alone],
          .piece_bytes = values[Id::node_piece],
          .streaming_bytes = values[Id::node_streaming],
          .two_level_bytes = values[Id::node_two_level],
          .chunk_bytes = values[Id::node_staging_chunk],
          .cma_bytes = values[Id::node_cma],
          .attach_bytes = values[Id::node_attach]};
}

}  // namespace ropewalk::tuning
