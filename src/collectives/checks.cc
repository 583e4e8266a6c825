#include "collectives/checks.hpp"

#include <cstdint>

namespace ropewalk::collectives {

void tell_refusal(NodeCommunicator::State& state, const std::string& message) {
  if (state.engine != nullptr) state.engine->arrivals().refuse();
  if (state.nodes != nullptr) state.nodes->refuse(message.c_str());
}

void leave(NodeCommunicator::State& state) noexcept {
  try {
    if (state.engine != nullptr) state.engine->arrivals().leave_for_good();
    if (state.nodes != nullptr) state.nodes->leave_for_good();
  } catch (...) {  // the dead are known to the others, too
  }
}

void refuse(NodeCommunicator::State& state, const std::string& message) {
  tell_refusal(state, message);
  throw Error(ErrorCode::argument, message);
}

std::size_t bytes_of(NodeCommunicator::State& state, std::size_t count, std::size_t element_bytes) {
  if (element_bytes > 0 && count > PTRDIFF_MAX / element_bytes) {
    refuse(state, "count: " + std::to_string(count) + " elements are more than memory can hold");
  }
  return count * element_bytes;
}

}  // namespace ropewalk::collectives

namespace ropewalk {

// Over nodes what fails inside a call is told there (Nodes::run).
void NodeCommunicator::State::rescue(std::uint64_t before) noexcept {
  if (engine != nullptr) engine->rescue(before);
  if (nodes != nullptr && nodes->calls() == before) nodes->refuse("see its error");
}

void NodeCommunicator::State::refuse(void* state) noexcept {
  try {
    collectives::tell_refusal(*static_cast<State*>(state));
  } catch (...) {  // the dead are known to the others, too
  }
}

}  // namespace ropewalk
