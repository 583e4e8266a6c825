#include "round_plan.hpp"

namespace ropewalk::preload {

std::vector<bool> RoundPlan::sources(int size) const {
  std::vector<bool> found(static_cast<std::size_t>(size), waits_for_all);
  for (const ReceivedBlock& block : received) {
    if (block.bytes != 0) found[static_cast<std::size_t>(block.from)] = true;
  }
  return found;
}

void RoundPlan::receive(std::span<const void* const> inputs) const {
  if (!operation) {
    for (std::size_t i = 0; i < received.size(); ++i) {
      kernels::copy(received[i].to, inputs[i], received[i].bytes, kernels::Stores::temporal);
    }
    if (unpacked != nullptr) unpacked->unpack();
    return;
  }
  if (received.empty() || received.front().bytes == 0) return;
  const std::size_t bytes = received.front().bytes;
  void* const to = received.front().to;
  if (inputs.size() == 1) {
    kernels::copy(to, inputs.front(), bytes, kernels::Stores::temporal);
    return;
  }
  operation->combine({&to, 1}, inputs, bytes / operation->element_bytes, kernels::Stores::temporal);
}

}  // namespace ropewalk::preload
