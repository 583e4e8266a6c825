#include "agree.hpp"

#include <cstdint>

namespace ropewalk::lattice {
namespace {

struct Outcome {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // empty when all went well
};

Outcome attempt(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::memory, "lattice: no memory left; use more ranks or a smaller lattice"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, std::string("lattice: ") + error.what()};
  }
}

std::string broadcast_from(const Lattice& lattice, std::string text, int root) {
  std::uint64_t length = text.size();
  lattice.node().broadcast(&length, sizeof length, root);
  text.resize(length);
  if (length > 0) lattice.node().broadcast(text.data(), text.size(), root);
  return text;
}

}  // namespace

void together(const Lattice& lattice, const std::function<void()>& work) {
  Outcome own = attempt(work);
  if (lattice.size() > 1) {
    const int voice = own.message.empty() ? lattice.size() : lattice.rank();
    int speaker = 0;
    lattice.node().allreduce(&voice, &speaker, 1, ElementType::int32, ReductionOp::min);
    if (speaker == lattice.size()) return;
    auto code = static_cast<std::int32_t>(own.code);
    lattice.node().broadcast(&code, sizeof code, speaker);
    own = {static_cast<ErrorCode>(code), broadcast_from(lattice, own.message, speaker)};
  }
  if (!own.message.empty()) throw Error(own.code, own.message);
}

void on_rank_zero(const Lattice& lattice, const std::function<void()>& work) {
  together(lattice, [&] {
    if (lattice.rank() == 0) work();
  });
}

std::string broadcast(const Lattice& lattice, const std::string& text) {
  return lattice.size() > 1 ? broadcast_from(lattice, text, 0) : text;
}

}  // namespace ropewalk::lattice
