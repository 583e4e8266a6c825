#include "agree.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <new>

namespace ropewalk::lattice {
namespace {

// The outcome of one rank in the form in which it is sent. It allocates nothing: there may be no
// memory left.
struct Outcome {
  std::int32_t code = 0;  // ErrorCode; 0: well
  std::array<char, 1020> text{};
};

Outcome failed(ErrorCode code, const char* text) {
  Outcome out{static_cast<std::int32_t>(code), {}};
  std::snprintf(out.text.data(), out.text.size(), "%s", text);
  return out;
}

Outcome attempt(const Work& work) {
  try {
    work();
    return {};
  } catch (const JointError&) {
    throw;
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ErrorCode::memory,
                  "lattice: no memory left; use more ranks or a smaller lattice");
  } catch (const std::exception& error) {
    return failed(ErrorCode::internal, error.what());
  }
}

// Open while work is done together, on the thread that does it.
class Open {
 public:
  explicit Open(Collectives& ranks) noexcept : ranks_(&ranks), outer_(innermost) {
    innermost = this;
  }
  ~Open() { innermost = outer_; }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  static bool on(const Collectives& ranks) noexcept {
    return innermost != nullptr && innermost->ranks_ == &ranks;
  }

 private:
  static thread_local Open* innermost;
  const Collectives* ranks_;
  Open* outer_;
};
thread_local Open* Open::innermost = nullptr;

std::string broadcast_from(Collectives& ranks, std::string text, int root) {
  std::uint64_t length = text.size();
  ranks.broadcast(&length, sizeof length, root);
  text.resize(length);
  meet(ranks);
  if (length > 0) ranks.broadcast(text.data(), text.size(), root);
  return text;
}

// Throws on every rank what the lowest has failed with.
void share(Collectives& ranks, const Outcome& own) {
  const int voice = own.code == 0 ? ranks.size() : ranks.rank();
  int speaker = 0;
  ranks.allreduce(&voice, &speaker, 1, ElementType::int32, ReductionOp::min);
  if (speaker == ranks.size()) return;
  Outcome first = own;
  ranks.broadcast(&first, sizeof first, speaker);
  throw JointError(static_cast<ErrorCode>(first.code), first.text.data());
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

void together(Collectives& ranks, const Work& work) {
  const Outcome own = attempt([&] {
    const Open open(ranks);
    work();
  });
  share(ranks, own);
}

void together(const Lattice& lattice, const Work& work) {
  if (lattice.size() > 1) return together(lattice.collectives(), work);
  const Outcome own = attempt(work);
  if (own.code != 0) throw Error(static_cast<ErrorCode>(own.code), own.text.data());
}

void meet(Collectives& ranks) {
  if (Open::on(ranks)) share(ranks, {});
}

void meet(const Lattice& lattice) {
  if (lattice.size() > 1) meet(lattice.collectives());
}

std::string exactly(double value) {
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%.17g", value);
  return out.data();
}

void require_finite(const char* name, double value) {
  if (std::isfinite(value)) return;
  throw Error(ErrorCode::argument, std::string(name) + ": found " + exactly(value) +
                                       ", expected a finite number; correct it");
}

void require_inverse(const char* name, double value, double divisor, const char* because) {
  constexpr double rounding = 1e-14;
  if (std::abs(divisor) > rounding) return;
  throw Error(ErrorCode::argument, std::string(name) + ": found " + exactly(value) + ", where " +
                                       because +
                                       ", expected an operator that can be solved; take another");
}

void agree(Collectives& ranks, const std::vector<Fact>& facts) {
  together(ranks, [&] {
    const std::string own = joined(facts);
    meet(ranks);
    compare(facts, broadcast_from(ranks, own, 0), ranks.rank());
  });
}

void agree(const Lattice& lattice, const std::vector<Fact>& facts) {
  if (lattice.size() > 1) agree(lattice.collectives(), facts);
}

void on_rank_zero(const Lattice& lattice, const Work& work) {
  together(lattice, [&] {
    if (lattice.rank() == 0) work();
  });
}

std::string broadcast(const Lattice& lattice, const std::string& text) {
  if (lattice.size() == 1) return text;
  std::string copy = text;
  meet(lattice);
  return broadcast_from(lattice.collectives(), std::move(copy), 0);
}

}  // namespace ropewalk::lattice
