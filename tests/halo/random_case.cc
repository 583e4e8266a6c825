#include "halo/random_case.hpp"

#include <sstream>
#include <stdexcept>
#include <thread>

#include "os/relax.hpp"

namespace ropewalk::test {

namespace {

constexpr std::uint8_t mark = 0xa5;  // of ghosts nobody has filled

std::size_t draw(std::mt19937_64& random, std::size_t least, std::size_t most) {
  return least + random() % (most - least + 1);  // not std's distribution: the same everywhere
}

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

FieldCase random_field(std::mt19937_64& random, const std::vector<int>& extents,
                       const CaseLimits& limits) {
  static constexpr std::size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 24, 40, 64};
  const bool small = extents.size() > 3;
  FieldCase out{sizes[random() % std::size(sizes)], {}, {}};
  for (int extent : extents) {
    const std::size_t width = draw(random, 0, small ? 1 : limits.widest);
    out.ghost.push_back(width);
    std::vector<std::size_t> cells;
    for (int c = 0; c < extent; ++c) {
      const std::size_t least = width == 0 ? 1 : width;
      cells.push_back(least + draw(random, 0, small ? 1 : limits.slack));
    }
    out.cells.push_back(std::move(cells));
  }
  return out;
}

// Half of the time it does nothing, else it computes for up to some 10 us, and seldom gives up the
// core.
void dawdle(std::mt19937_64& random) {
  if (random() % 2 == 0) return;
  for (std::size_t pause = random() % 300; pause > 0; --pause) os::relax();
  if (random() % 16 == 0) std::this_thread::yield();
}

template <class Values>
std::string join(const Values& values) {
  std::ostringstream out;
  for (const auto& value : values) out << (out.tellp() > 0 ? "." : "") << value;
  return out.str();
}

}  // namespace

std::vector<int> random_extents(std::mt19937_64& random, int ranks, int dimensions) {
  std::vector<int> extents(static_cast<std::size_t>(dimensions), 1);
  for (int factor = 2; ranks > 1; ++factor) {
    while (ranks % factor == 0) {
      extents[random() % extents.size()] *= factor;
      ranks /= factor;
    }
  }
  return extents;
}

std::string HaloCase::text() const {
  std::ostringstream out;
  out << "seed " << seed << ", grid " << join(extents) << ", periodic " << join(periodic)
      << ", strategy " << name(strategy) << ", lanes " << lanes << (threads ? " threads" : "")
      << (corners == Corners::yes ? ", corners" : "") << (arena ? ", in the arena" : "");
  for (const FieldCase& field : fields) {
    out << ", field of " << field.element_bytes << " B, ghosts " << join(field.ghost);
  }
  return out.str();
}

HaloCase random_case(std::uint64_t seed, int ranks, const CaseLimits& limits) {
  std::mt19937_64 random(mix(seed));
  HaloCase out{};
  out.seed = seed;
  const int dimensions =
      static_cast<int>(draw(random, 1, static_cast<std::size_t>(limits.dimensions)));
  out.extents = random_extents(random, ranks, dimensions);
  for (int d = 0; d < dimensions; ++d) out.periodic.push_back(random() % 2 == 0);
  const std::size_t fields = draw(random, 1, 3);
  for (std::size_t f = 0; f < fields; ++f) {
    out.fields.push_back(random_field(random, out.extents, limits));
  }
  // Corners in 5 and 6 dimensions are up to 728 messages a rank: seldom.
  const bool corners = random() % 2 == 0 && (dimensions < 5 || random() % 4 == 0);
  out.corners = corners ? Corners::yes : Corners::no;
  out.lanes = static_cast<int>(draw(random, 1, 3));
  out.threads = limits.threads && random() % 2 == 0;
  out.strategy = static_cast<Strategy>(random() % (out.threads ? 4 : 3));
  out.rounds = draw(random, 1, 4);
  out.arena = random() % 2 == 0;
  if (random() % 2 == 0) out.strategy = Strategy::direct;
  out.workers = static_cast<int>(draw(random, 1, 4));
  return out;
}

LocalField::LocalField(const HaloCase& halo, std::size_t index, const std::vector<int>& coordinates)
    : case_(halo), index_(index), ghost_(halo.fields[index].ghost) {
  const FieldCase& field = halo.fields[index];
  std::size_t total = field.element_bytes;
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    std::size_t start = 0;
    std::size_t all = 0;
    for (std::size_t c = 0; c < field.cells[d].size(); ++c) {
      if (c < static_cast<std::size_t>(coordinates[d])) start += field.cells[d][c];
      all += field.cells[d][c];
    }
    start_.push_back(start);
    global_.push_back(all);
    interior_.push_back(field.cells[d][static_cast<std::size_t>(coordinates[d])]);
    total *= interior_[d] + 2 * ghost_[d];
  }
  size_ = total;
  if (halo.arena) {
    shared_ = Buffer<std::uint8_t>(total);
  } else {
    private_.resize(total);
  }
  bytes_ = halo.arena ? shared_.data() : private_.data();
}

Field LocalField::field() {
  return {bytes_, case_.fields[index_].element_bytes, interior_, ghost_};
}

template <class Visit>
void LocalField::each_cell(Visit&& visit) const {
  std::vector<std::size_t> cell(interior_.size(), 0);
  const std::size_t size = case_.fields[index_].element_bytes;
  for (std::size_t at = 0; at < size_; at += size) {
    for (std::size_t byte = 0; byte < size; ++byte) visit(cell, byte, at + byte);
    for (std::size_t d = cell.size(); d-- > 0;) {
      if (++cell[d] < interior_[d] + 2 * ghost_[d]) break;
      cell[d] = 0;
    }
  }
}

std::uint8_t LocalField::expected(std::uint64_t round, const std::vector<std::size_t>& cell,
                                  std::size_t byte) const {
  std::size_t outside = 0;  // dimensions in which the cell is a ghost
  std::uint64_t global_index = 0;
  for (std::size_t d = 0; d < cell.size(); ++d) {
    if (cell[d] < ghost_[d] || cell[d] >= ghost_[d] + interior_[d]) ++outside;
    // Shifted by the ghost width, to stay unsigned.
    const std::size_t shifted = start_[d] + cell[d];
    const bool beyond = shifted < ghost_[d] || shifted >= global_[d] + ghost_[d];
    if (beyond && !case_.periodic[d]) return mark;
    const std::size_t position = (shifted + global_[d] - ghost_[d] % global_[d]) % global_[d];
    global_index = global_index * global_[d] + position;
  }
  if (outside > 1 && case_.corners == Corners::no) return mark;
  const std::uint64_t key = global_index * 64 + byte;
  return static_cast<std::uint8_t>(mix(key ^ mix(index_ ^ mix(round))));
}

void LocalField::fill(std::uint64_t round) {
  each_cell([&](const std::vector<std::size_t>& cell, std::size_t byte, std::size_t at) {
    bool ghost = false;
    for (std::size_t d = 0; d < cell.size(); ++d) {
      ghost = ghost || cell[d] < ghost_[d] || cell[d] >= ghost_[d] + interior_[d];
    }
    bytes_[at] = ghost ? mark : expected(round, cell, byte);
  });
}

void LocalField::check(std::uint64_t round) {
  each_cell([&](const std::vector<std::size_t>& cell, std::size_t byte, std::size_t at) {
    if (bytes_[at] == expected(round, cell, byte)) return;
    throw std::runtime_error("wrong byte " + std::to_string(byte) + " of cell " + join(cell) +
                             " of field " + std::to_string(index_) + " in round " +
                             std::to_string(round) + ": " + case_.text());
  });
}

namespace {

// start(), test() and wait() with all workers of the rank, of which this thread is the first.
void run_workers(Halo& exchange, std::mt19937_64& random) {
  std::vector<std::thread> others;
  for (int worker = 1; worker < exchange.workers(); ++worker) {
    others.emplace_back([&exchange, worker] {
      try {
        exchange.start_worker(worker);
        exchange.wait_worker(worker);
      } catch (const Error&) {  // worker 0 throws the same
      }
    });
  }
  try {
    exchange.start_worker(0);
    for (std::size_t tests = draw(random, 0, 10); tests > 0 && !exchange.test(); --tests) {
      dawdle(random);
    }
    exchange.wait_worker(0);
  } catch (...) {
    for (std::thread& other : others) other.join();
    throw;
  }
  for (std::thread& other : others) other.join();
}

void run_alone(Halo& exchange, std::mt19937_64& random) {
  exchange.start();
  for (std::size_t tests = draw(random, 0, 10); tests > 0 && !exchange.test(); --tests) {
    dawdle(random);
  }
  dawdle(random);
  exchange.wait();
}

}  // namespace

void run_case(const HaloCase& halo, Communicator communicator) {
  const CartesianGrid grid(communicator, halo.extents, halo.periodic);
  EndpointOptions options;
  options.lanes = halo.lanes;
  options.threads = halo.threads;
  options.pin = false;
  options.split_bytes = 4096;  // low, so that some messages are split
  EndpointSet endpoints(communicator, options);
  std::vector<LocalField> locals;
  std::vector<Field> fields;
  for (std::size_t f = 0; f < halo.fields.size(); ++f) {
    locals.emplace_back(halo, f, grid.coordinates());
  }
  for (LocalField& local : locals) fields.push_back(local.field());
  for (LocalField& local : locals) local.fill(0);
  const int workers = 1 + grid.rank() % halo.workers;
  Halo exchange(grid, endpoints, fields,
                {.strategy = halo.strategy, .corners = halo.corners, .workers = workers});
  exchange.exchange();
  for (LocalField& local : locals) local.check(0);
  // No barrier between the rounds: who is early fills while others still wait.
  std::mt19937_64 random(mix(halo.seed ^ mix(static_cast<std::uint64_t>(grid.rank()))));
  for (std::uint64_t round = 1; round <= halo.rounds; ++round) {
    for (LocalField& local : locals) local.fill(round);
    dawdle(random);
    workers > 1 ? run_workers(exchange, random) : run_alone(exchange, random);
    for (LocalField& local : locals) local.check(round);
  }
}

}  // namespace ropewalk::test
