// The protocol of flags and the copies between.
#include "halo/direct.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "ropewalk/error.hpp"
#include "topology/machine.hpp"

namespace ropewalk::halo {

namespace {

constexpr unsigned tests_per_look = 64;  // at MPI and the others' lives: 0.1 to 1 us a time

// Runs longer than the last-level cache are stored around it: the reader of one face would find its
// beginning evicted anyway.
std::size_t last_level_bytes() {
  static const std::size_t bytes = [] {
    constexpr std::size_t usual = std::size_t{16} << 20;
    const std::vector<int> cpus = topology::usable_cpus().cpus;
    const std::size_t found =
        cpus.empty() ? 0 : topology::read_machine().last_level_cache_bytes(cpus.front());
    return found > 0 ? found : usual;
  }();
  return bytes;
}

[[noreturn]] void neighbour_gave_up(int peer) {
  throw Error(ErrorCode::mpi, "halo: rank " + std::to_string(peer) +
                                  " gave up an exchange, expected its data; see its error, and "
                                  "make new endpoints and halos on all ranks");
}

}  // namespace

Direct::Direct(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, FlagBlock flags,
               std::vector<Incoming> incoming, std::vector<int> outgoing)
    : lanes_(std::move(lanes)),
      team_(team),
      flags_(std::move(flags)),
      incoming_(std::move(incoming)),
      outgoing_(std::move(outgoing)),
      streaming_bytes_(last_level_bytes()),
      exceptions_before_(std::uncaught_exceptions()) {
  for (const Incoming& link : incoming_) {
    for (const StridedCopy& copy : link.copies) bytes_ += copy.bytes();
  }
}

Direct::~Direct() {
  // In a child of fork neither the team nor the neighbours' memory is there.
  if (!lanes_->is_here()) flags_.abandon();
  if (!started_ || !lanes_->is_here()) return;
  if (!failed_ && std::uncaught_exceptions() <= exceptions_before_) {
    try {
      wait();
    } catch (...) {  // a neighbour has died or given up
    }
  }
  if (started_) give_up();
}

void Direct::give_up() noexcept {
  lanes_->mark_broken();
  flags_.ready().exchange.store(withdrawn, std::memory_order_release);
  for (Incoming& link : incoming_) {
    if (link.taken != exchange_) link.done->exchange.store(exchange_, std::memory_order_release);
  }
  if (team_ != nullptr) team_->wake_sleepers();
  flags_.abandon();
}

template <class Body>
void Direct::guarded(Body&& body) {
  try {
    body();
  } catch (...) {
    failed_ = true;
    lanes_->mark_broken();
    throw;
  }
}

void Direct::start() {
  lanes_->require_usable();
  ++exchange_;
  started_ = true;
  if (team_ == nullptr) return;
  // Pairs with the acquire in take_all() of the neighbours: they see what this rank has written.
  flags_.ready().exchange.store(exchange_, std::memory_order_release);
  team_->wake_sleepers();
}

bool Direct::test() {
  if (!started_) return true;
  if (!lanes_->is_here()) lanes_->require_usable();
  guarded([this] {
    started_ = !advance();
    if (started_ && ++tests_ % tests_per_look == 0) team_->look_around();
  });
  return !started_;
}

void Direct::wait() {
  if (!started_) return;
  if (!lanes_->is_here()) lanes_->require_usable();
  if (team_ != nullptr) {
    guarded([this] { team_->wait_until([this] { return advance(); }); });
  }
  started_ = false;
}

bool Direct::advance() { return take_all() && released(); }

// Copies from every neighbour that is ready; true when nothing is left to copy.
bool Direct::take_all() {
  bool all = true;
  bool any = false;
  for (Incoming& link : incoming_) {
    if (link.taken == exchange_) continue;
    // Pairs with the release in start() of the neighbour.
    const std::uint64_t ready = link.ready->exchange.load(std::memory_order_acquire);
    if (ready == withdrawn) neighbour_gave_up(link.peer);
    if (ready < exchange_) {
      all = false;
      continue;
    }
    for (const StridedCopy& copy : link.copies) copy.run(streaming_bytes_);
    link.taken = exchange_;
    // Releases the reads before it: the neighbour that acquires it in released() may write again.
    link.done->exchange.store(exchange_, std::memory_order_release);
    any = true;
  }
  if (any) team_->wake_sleepers();
  return all;
}

bool Direct::released() const noexcept {
  return std::all_of(outgoing_.begin(), outgoing_.end(), [this](int direction) {
    // Pairs with the release in take_all() of the neighbour.
    return flags_.done(direction).exchange.load(std::memory_order_acquire) >= exchange_;
  });
}

}  // namespace ropewalk::halo
