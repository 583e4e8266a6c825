// A Layout says which sub-lattices the lanes are, and in which order sites lie in memory.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/fields.hpp"
#include "tables.hpp"

namespace ropewalk::lattice {

namespace {

std::size_t size_of(const Extents& extents) {
  std::size_t out = 1;
  for (const int extent : extents) out *= static_cast<std::size_t>(extent);
  return out;
}

bool all_even(const Extents& extents) {
  return std::all_of(extents.begin(), extents.end(), [](int n) { return n % 2 == 0; });
}

// A dimension may be cut into so many blocks: blocks of even extent keep the parity of all lanes of
// a vector equal, and where faces are exchanged two vectors of a face share one of the buffer.
bool may_cut(const Lattice& lattice, int d, int blocks) {
  if (blocks == 1) return true;
  if (lattice.divided(d) && blocks > 2) return false;
  return lattice.local()[d] % (2 * blocks) == 0;
}

// What a choice of blocks costs: the share of sites at the edges of sub-lattices, where lanes are
// permuted, and three times that where a received face has to be merged in, too. Among choices of
// the same cost, t is cut last, since sub-lattices that are long in t keep the slices in the cache
// small.
double cost(const Lattice& lattice, const Extents& blocks) {
  double out = 0;
  for (int d = 0; d < dimensions; ++d) {
    if (blocks[d] == 1) continue;
    const double share = static_cast<double>(blocks[d]) / lattice.local()[d];
    out += share * (lattice.divided(d) ? 3 : 1) * (1 + 0.01 * d);
  }
  return out;
}

// The shortest dimension runs fastest, so that neighbours in all but the slowest one or two are
// near. Where x is divided and so not cut, x as the fastest dimension costs 10 to 25 % beyond the
// caches. Of equally long dimensions, those that are divided come last, because their faces then
// lie in one piece.
Extents choose_order(const Lattice& lattice, const Extents& extents) {
  Extents order{0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (extents[a] != extents[b]) return extents[a] < extents[b];
    return lattice.divided(a) < lattice.divided(b);
  });
  return order;
}

// Cheapest way to make so many lanes; all zero where there is none.
Extents choose_blocks(const Lattice& lattice, int lanes) {
  Extents best{};
  double best_cost = 0;
  for (int x = 1; x <= lanes; x *= 2) {
    for (int y = 1; x * y <= lanes; y *= 2) {
      for (int z = 1; x * y * z <= lanes; z *= 2) {
        const Extents blocks{x, y, z, lanes / (x * y * z)};
        bool fits = true;
        for (int d = 0; d < dimensions; ++d) fits = fits && may_cut(lattice, d, blocks[d]);
        if (!fits) continue;
        const double price = cost(lattice, blocks);
        if (best[0] == 0 || price < best_cost) {
          best = blocks;
          best_cost = price;
        }
      }
    }
  }
  return best;
}

std::string found(const Lattice& lattice, int lanes) {
  return "lanes: found " + std::to_string(lanes) + " for the local lattice " +
         text(lattice.local()) + " (" + text(lattice.global()) + " over the rank grid " +
         text(lattice.rank_grid()) + ")";
}

[[noreturn]] void refuse_space(const Lattice& lattice, int lanes) {
  throw Error(
      ErrorCode::argument,
      found(lattice, lanes) +
          ", expected a number that its dimensions can be cut into: 2 in each whose local "
          "extent is a multiple of 4 (more in those not divided over ranks: 4 of a multiple "
          "of 8); take fewer lanes, another rank grid, or lanes 0 for the best that fits");
}

int fifth_lanes(const Lattice& lattice, std::size_t bytes, int fifth_extent, int lanes) {
  if (lanes == 0) {
    for (const int wide : kernels::lane_counts(bytes)) {
      if (fifth_extent % wide == 0) return wide;
    }
  }
  if (lanes < 1 || fifth_extent % lanes != 0) {
    throw Error(ErrorCode::argument, found(lattice, lanes) + ", fifth extent " +
                                         std::to_string(fifth_extent) +
                                         ", expected a divisor of the fifth extent; take a fifth "
                                         "extent that is a multiple of the lanes");
  }
  return lanes;
}

}  // namespace

struct Layout::State {
  Lattice lattice;
  Vectors vectors;
  int lanes = 1;
  int fifth_extent = 1;
  int inner = 1;
  Extents blocks{1, 1, 1, 1};
  Extents extents{};
  Extents order{};
  bool checkered = false;
  std::size_t half = 0;               // even vector sites
  std::vector<Extents> sites{};       // by vector site
  std::vector<std::size_t> vector{};  // by site_index in the sub-lattice

  int parity(const Extents& site) const {
    int sum = 0;
    for (int d = 0; d < dimensions; ++d) sum += site[d] + lattice.origin()[d];
    return sum & 1;
  }
  void choose_space(std::size_t bytes, int wanted);
  void place_sites();
};

void Layout::State::choose_space(std::size_t bytes, int wanted) {
  if (wanted != 0) {
    blocks = choose_blocks(lattice, wanted);
    if (blocks[0] == 0) refuse_space(lattice, wanted);
    lanes = wanted;
    return;
  }
  for (const int wide : kernels::lane_counts(bytes)) {
    blocks = choose_blocks(lattice, wide);
    lanes = wide;
    if (blocks[0] != 0) return;
  }
}

// The even half comes first.
void Layout::State::place_sites() {
  const std::size_t count = size_of(extents);
  half = checkered ? count / 2 : 0;
  sites.resize(count);
  vector.resize(count);
  std::size_t next[2] = {0, half};
  for_each_site(order, {}, extents, [&](const Extents& at) {
    const std::size_t place = next[checkered ? parity(at) : 0]++;
    vector[site_index(extents, at)] = place;
    sites[place] = at;
  });
}

Layout::Layout(const Lattice& lattice, std::size_t bytes_per_real, Vectors vectors,
               int fifth_extent, int lanes) {
  if (fifth_extent < 1) {
    throw Error(ErrorCode::argument, "fifth_extent: found " + std::to_string(fifth_extent) +
                                         ", expected 1 or more; 1 is a four-dimensional field");
  }
  auto made = std::make_shared<State>(State{.lattice = lattice, .vectors = vectors});
  State& s = *made;
  s.fifth_extent = fifth_extent;
  if (vectors == Vectors::fifth) {
    s.lanes = fifth_lanes(lattice, bytes_per_real, fifth_extent, lanes);
    s.inner = fifth_extent / s.lanes;
  } else {
    s.choose_space(bytes_per_real, lanes);
    s.inner = fifth_extent;
  }
  for (int d = 0; d < dimensions; ++d) s.extents[d] = lattice.local()[d] / s.blocks[d];
  s.checkered = all_even(lattice.local()) && all_even(s.extents);
  s.order = choose_order(lattice, s.extents);
  s.place_sites();
  state_ = std::move(made);
}

const Lattice& Layout::lattice() const noexcept { return state_->lattice; }
Vectors Layout::vectors() const noexcept { return state_->vectors; }
int Layout::lanes() const noexcept { return state_->lanes; }
int Layout::fifth_extent() const noexcept { return state_->fifth_extent; }
int Layout::inner() const noexcept { return state_->inner; }
const Extents& Layout::blocks() const noexcept { return state_->blocks; }
const Extents& Layout::extents() const noexcept { return state_->extents; }
const Extents& Layout::order() const noexcept { return state_->order; }
bool Layout::checkered() const noexcept { return state_->checkered; }
std::size_t Layout::vector_sites() const noexcept { return state_->sites.size(); }

std::size_t Layout::vector_sites(Sites sites) const noexcept {
  if (sites == Sites::all) return state_->sites.size();
  return sites == Sites::even ? state_->half : state_->sites.size() - state_->half;
}

std::size_t Layout::first(Sites sites) const noexcept {
  return sites == Sites::odd ? state_->half : 0;
}

std::size_t Layout::vector(const Extents& site) const noexcept {
  return state_->vector[site_index(state_->extents, site)];
}

Layout::Place Layout::place(const Extents& local_site) const noexcept {
  Extents within{};
  int lane = 0;
  for (int d = dimensions - 1; d >= 0; --d) {
    within[d] = local_site[d] % state_->extents[d];
    lane = lane * state_->blocks[d] + local_site[d] / state_->extents[d];
  }
  return {vector(within), lane};
}

const Extents& Layout::sub_lattice_site(std::size_t vector) const noexcept {
  return state_->sites[vector];
}

Extents Layout::local_site(std::size_t vector, int lane) const noexcept {
  Extents out = state_->sites[vector];
  for (int d = 0; d < dimensions; ++d) {
    out[d] += lane % state_->blocks[d] * state_->extents[d];
    lane /= state_->blocks[d];
  }
  return out;
}

Sites Layout::parity(std::size_t vector) const noexcept {
  return state_->parity(state_->sites[vector]) == 0 ? Sites::even : Sites::odd;
}

bool Layout::operator==(const Layout& other) const noexcept {
  if (state_ == nullptr || other.state_ == nullptr) return false;  // moved from
  const State &a = *state_, &b = *other.state_;
  return &a == &b || (a.lattice.global() == b.lattice.global() &&
                      a.lattice.rank_grid() == b.lattice.rank_grid() && a.vectors == b.vectors &&
                      a.lanes == b.lanes && a.fifth_extent == b.fifth_extent &&
                      a.blocks == b.blocks && a.order == b.order);
}

}  // namespace ropewalk::lattice
