#include "agree.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <new>

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

std::string broadcast_from(NodeCommunicator& ranks, std::string text, int root) {
  std::uint64_t length = text.size();
  ranks.broadcast(&length, sizeof length, root);
  text.resize(length);
  if (length > 0) ranks.broadcast(text.data(), text.size(), root);
  return text;
}

// The values one after the other; a zero ends each, as no value has one.
std::string joined(const std::vector<Fact>& facts) {
  std::string out;
  for (const Fact& fact : facts) out += fact.value + '\0';
  return out;
}

void compare(const std::vector<Fact>& facts, const std::string& first, int rank) {
  std::size_t begin = 0;
  for (const Fact& fact : facts) {
    const std::string there = first.substr(begin, first.find('\0', begin) - begin);
    begin += there.size() + 1;
    if (there == fact.value) continue;
    throw Error(ErrorCode::argument,
                fact.name + ": found " + fact.value + " on rank " + std::to_string(rank) + " and " +
                    there + " on rank 0, expected the same on all ranks; " + fact.remedy);
  }
}

}  // namespace

void together(NodeCommunicator& ranks, const std::function<void()>& work) {
  Outcome own = attempt(work);
  const int voice = own.message.empty() ? ranks.size() : ranks.rank();
  int speaker = 0;
  ranks.allreduce(&voice, &speaker, 1, ElementType::int32, ReductionOp::min);
  if (speaker == ranks.size()) return;
  auto code = static_cast<std::int32_t>(own.code);
  ranks.broadcast(&code, sizeof code, speaker);
  throw Error(static_cast<ErrorCode>(code), broadcast_from(ranks, own.message, speaker));
}

void together(const Lattice& lattice, const std::function<void()>& work) {
  if (lattice.size() > 1) return together(lattice.node(), work);
  const Outcome own = attempt(work);
  if (!own.message.empty()) throw Error(own.code, own.message);
}

std::string exactly(double value) {
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%.17g", value);
  return out.data();
}

void agree(NodeCommunicator& ranks, const std::vector<Fact>& facts) {
  const std::string first = broadcast_from(ranks, joined(facts), 0);
  together(ranks, [&] { compare(facts, first, ranks.rank()); });
}

void agree(const Lattice& lattice, const std::vector<Fact>& facts) {
  if (lattice.size() > 1) agree(lattice.node(), facts);
}

void on_rank_zero(const Lattice& lattice, const std::function<void()>& work) {
  together(lattice, [&] {
    if (lattice.rank() == 0) work();
  });
}

std::string broadcast(const Lattice& lattice, const std::string& text) {
  return lattice.size() > 1 ? broadcast_from(lattice.node(), text, 0) : text;
}

}  // namespace ropewalk::lattice
