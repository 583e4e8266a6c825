#include "tuning/limits.hpp"

#include <algorithm>

#include "os/waiting.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::tuning {

HaloLimits halo_limits(int ranks, bool crowded) {
  const Values values(facts_of(ranks, crowded), profile());
  return {.streaming_bytes = values[Id::halo_streaming],
          .claimed_bytes = values[Id::halo_claimed],
          .kernel_bytes = values[Id::halo_kernel],
          .kernel_small_pages_bytes = values[Id::halo_kernel_small_pages],
          .kernel_run_bytes = values[Id::halo_kernel_run]};
}

std::size_t halo_worker_bytes(bool crowded) {
  return Values(facts_of(1, crowded), profile())[Id::halo_worker];
}

ChannelLimits channel_limits(int ranks, bool crowded) {
  const Values values(facts_of(ranks, crowded), profile());
  const os::WaitPolicy& wait = crowded ? os::wait_for_ranks_crowded : os::wait_for_ranks;
  return {.slot_bytes = values[Id::channel_slot],
          .private_slot_bytes = values[Id::channel_private_slot],
          .kernel_bytes = values[Id::channel_kernel],
          .both_bytes = values[Id::channel_both],
          .threaded_bytes = values[Id::channel_threaded],
          .piece_bytes = values[Id::channel_piece],
          .pipeline_piece_bytes = values[Id::channel_pipeline_piece],
          .device_piece_bytes = values[Id::channel_device_piece],
          .streaming_bytes = values[Id::node_streaming],
          .by_kernel_bytes = std::min(values[Id::node_cma], values[Id::channel_kernel]),
          .attach_bytes = values[Id::node_attach],
          .spins = wait.spins,
          .crowded = crowded};
}

EnvelopeLimits envelope_limits() {
  const Values values({}, profile());
  return {.least_bytes = values[Id::messages_envelope],
          .slots = values[Id::messages_slots],
          .patience_ns = static_cast<std::int64_t>(values[Id::messages_patience]) * 1000,
          .kept_bytes = values[Id::messages_kept]};
}

Limits limits_for(int ranks, bool crowded) {
  const Values values(facts_of(ranks, crowded), profile());
  return {.one_shot_bytes = values[Id::node_inlined],
          .gathered_bytes = values[Id::node_inlined_allgather],
          .rooted_bytes = values[Id::node_inlined_rooted],
          .copied_bytes = values[Id::node_copied],
          .piecewise_bytes = values[Id::node_piecewise],
          .alone_bytes = values[Id::node_piecewise_alone],
          .piece_bytes = values[Id::node_piece],
          .pushed_bytes = values[Id::node_pushed],
          .streaming_bytes = values[Id::node_streaming],
          .two_level_bytes = values[Id::node_two_level],
          .chunk_bytes = values[Id::node_staging_chunk],
          .cma_bytes = values[Id::node_cma],
          .attach_bytes = values[Id::node_attach]};
}

}  // namespace ropewalk::tuning
