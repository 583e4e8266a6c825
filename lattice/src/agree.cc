#include "agree.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <new>
#include <utility>

namespace ropewalk::lattice {
namespace {

std::string broadcast_from(Collectives& ranks, std::string text, int root) {
  std::uint64_t length = text.size();
  ranks.broadcast(&length, sizeof length, root);
  text.resize(length);
  ropewalk::meet(ranks);
  if (length > 0) ranks.broadcast(text.data(), text.size(), root);
  return text;
}

// The values one after the other; a zero ends each, as no value has one.
std::string joined(const std::vector<AgreedFact>& facts) {
  std::string out;
  for (const AgreedFact& fact : facts) out += fact.value + '\0';
  return out;
}

void compare(const std::vector<AgreedFact>& facts, const std::string& first, int rank) {
  std::size_t begin = 0;
  for (const AgreedFact& fact : facts) {
    const std::string there = first.substr(begin, first.find('\0', begin) - begin);
    begin += there.size() + 1;
    if (there == fact.value) continue;
    throw Error(ErrorCode::argument,
                fact.name + ": found " + fact.value + " on rank " + std::to_string(rank) + " and " +
                    there + " on rank 0, expected the same on all ranks; " + fact.remedy);
  }
}

}  // namespace

void collectively(const Lattice& lattice, const Work& work) {
  if (lattice.size() > 1) return ropewalk::collectively(lattice.collectives(), work);
  try {
    work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory, "lattice: no memory left; use more ranks or a smaller lattice");
  }
}

void meet(const Lattice& lattice) {
  if (lattice.size() > 1) ropewalk::meet(lattice.collectives());
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

void agree(Collectives& ranks, const std::vector<AgreedFact>& facts) {
  ropewalk::collectively(ranks, [&] {
    const std::string own = joined(facts);
    ropewalk::meet(ranks);
    compare(facts, broadcast_from(ranks, own, 0), ranks.rank());
  });
}

void agree(const Lattice& lattice, const std::vector<AgreedFact>& facts) {
  if (lattice.size() > 1) agree(lattice.collectives(), facts);
}

void on_rank_zero(const Lattice& lattice, const Work& work) {
  collectively(lattice, [&] {
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
