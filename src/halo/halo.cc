// Halo keeps what the public interface promises, on top of the carrier that was chosen when it was
// made.
#include "ropewalk/halo.hpp"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "halo/making.hpp"
#include "mpi/collectively.hpp"

namespace ropewalk {

namespace {

void check_part(const halo::HaloParts& parts, int part_count, int direction, int part) {
  if (part_count == 0) {
    halo::refuse(
        "halo: faces are handed over as a whole, expected a halo with parts; make it with "
        "HaloOptions::parts");
  }
  if (halo::place(parts.places.receive[0], direction) == nullptr) {
    halo::refuse("direction: " + std::to_string(direction) +
                 ", expected one with a face; those without have no receive_buffer()");
  }
  if (part < 0 || part >= part_count) {
    halo::refuse("part: " + std::to_string(part) + ", expected 0 to " +
                 std::to_string(part_count - 1) + "; ask parts() how many a face has");
  }
}

void check_worker(const halo::Workers& workers, int worker) {
  if (worker >= 0 && worker < workers.count()) return;
  throw Error(ErrorCode::argument,
              "worker: " + std::to_string(worker) + ", expected 0 to " +
                  std::to_string(workers.count() - 1) +
                  "; make the halo with HaloOptions::workers for as many threads as call it");
}

}  // namespace

struct Halo::State {
  halo::HaloParts parts;
  int part_count = 0;
  bool started = false;
  std::exception_ptr failure;  // of the last exchange, until the next start

  // The ghosts of an exchange that has failed are not those of the neighbours, whoever asks.
  void require_success() const {
    if (failure) std::rethrow_exception(failure);
  }
  template <class Ask>
  bool ends_by(Ask ask) {
    try {
      return ask(*parts.carrier);
    } catch (...) {
      started = false;
      failure = std::current_exception();
      throw;
    }
  }
};

template <class Request>
std::unique_ptr<Halo::State> Halo::make(const CartesianGrid& grid, Request&& request) {
  std::unique_ptr<State> out;
  mpi::collectively(halo::comm_of(grid), [&] {
    out = std::make_unique<State>();
    halo::HaloRequest what = request();
    out->part_count = what.options.parts;
    out->parts = halo::make_parts(std::move(what));
  });
  out->parts.carrier->settle();
  return out;
}

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const FacePackets& faces,
           const HaloOptions& options)
    : state_(make(grid, [&] {
        return halo::HaloRequest{grid, endpoints, options, halo::Form::faces, faces, {}};
      })) {}

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const HaloBuffers& buffers,
           const HaloOptions& options)
    : state_(make(grid, [&] {
        return halo::HaloRequest{
            grid, endpoints, options, halo::Form::buffers, {{}, {}, buffers.bytes}, {}};
      })) {}

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const std::vector<Field>& fields,
           const HaloOptions& options)
    : state_(make(grid, [&] {
        return halo::HaloRequest{grid, endpoints, options, halo::Form::fields, {}, fields};
      })) {}

Halo::Halo(Halo&&) noexcept = default;
Halo& Halo::operator=(Halo&&) noexcept = default;
Halo::~Halo() = default;

void Halo::start() {
  if (state_->started) {
    throw Error(ErrorCode::argument,
                "halo: started while an exchange is under way, expected none; wait for it first");
  }
  try {
    state_->parts.start();
  } catch (...) {
    state_->failure = std::current_exception();
    throw;
  }
  state_->failure = nullptr;
  state_->started = true;
}

bool Halo::test() {
  if (!state_->started) return state_->require_success(), true;
  if (!state_->ends_by([](halo::Carrier& carrier) { return carrier.test(); })) return false;
  wait();
  return true;
}

void Halo::wait() {
  if (!state_->started) return state_->require_success();
  if (const std::optional<halo::PartOfFace> part = state_->parts.carrier->missing()) {
    throw Error(ErrorCode::argument, "halo: wait() while part " + std::to_string(part->part) +
                                         " of direction " + std::to_string(part->direction) +
                                         " is not ready, expected all parts handed over; call "
                                         "ready() for each before");
  }
  state_->ends_by([](halo::Carrier& carrier) { return carrier.wait(), true; });
  state_->started = false;
}

void Halo::exchange() {
  start();
  for (int i = 0; state_->part_count > 0 && i < 2 * CartesianGrid::max_dimensions; ++i) {
    if (halo::place(state_->parts.places.send[0], i) == nullptr) continue;
    for (int part = 0; part < state_->part_count; ++part) ready(i, part);
  }
  wait();
}

void Halo::ready(int direction, int part) {
  check_part(state_->parts, state_->part_count, direction, part);
  if (!state_->started) {
    throw Error(ErrorCode::argument,
                "halo: ready() with no exchange under way, expected one; call start() before");
  }
  if (state_->parts.carrier->ready(direction, part)) return;
  throw Error(ErrorCode::argument, "part: " + std::to_string(part) + " of direction " +
                                       std::to_string(direction) +
                                       " was handed over before, expected once in an exchange; "
                                       "let one thread call ready() for it");
}

bool Halo::arrived(int direction, int part) const {
  check_part(state_->parts, state_->part_count, direction, part);
  return state_->parts.carrier->arrived(direction, part);
}

int Halo::parts() const noexcept { return state_->part_count; }

void Halo::start_worker(int worker) {
  halo::Workers& workers = *state_->parts.workers;
  check_worker(workers, worker);
  if (worker > 0) return workers.help(worker);
  workers.lead([&] {
    workers.gather();
    start();
  });
}

void Halo::wait_worker(int worker) {
  halo::Workers& workers = *state_->parts.workers;
  check_worker(workers, worker);
  if (worker > 0) return workers.help(worker);
  workers.lead([this] { wait(); });
}

int Halo::workers() const noexcept { return state_->parts.workers->count(); }

void Halo::exchange_lane(int lane) {
  halo::Carrier& carrier = *state_->parts.carrier;
  if (lane < 0 || lane >= carrier.lanes()) {
    throw Error(ErrorCode::argument, "lane: " + std::to_string(lane) + ", expected 0 to " +
                                         std::to_string(carrier.lanes() - 1) +
                                         "; ask lanes() how many this exchange has");
  }
  if (carrier.lanes() == 1) return exchange();
  halo::complete_streaming_stores();
  if (lane == 0) state_->parts.run_own_copies();
  carrier.exchange_lane(lane);
}

int Halo::lanes() const noexcept { return state_->parts.carrier->lanes(); }

void* Halo::send_buffer(int direction) const noexcept {
  const halo::HaloParts& parts = state_->parts;
  if (!parts.carrier->writable()) return nullptr;
  return halo::place(parts.places.send[1 - parts.carrier->turn()], direction);
}

const void* Halo::receive_buffer(int direction) const noexcept {
  const halo::HaloParts& parts = state_->parts;
  return halo::place(parts.places.receive[parts.carrier->turn()], direction);
}

const void* Halo::next_receive_buffer(int direction) const noexcept {
  const halo::HaloParts& parts = state_->parts;
  return halo::place(parts.places.receive[1 - parts.carrier->turn()], direction);
}

Strategy Halo::strategy() const noexcept { return state_->parts.carrier->strategy(); }

std::size_t Halo::send_bytes() const noexcept { return state_->parts.carrier->send_bytes(); }

std::size_t Halo::wire_bytes() const noexcept { return state_->parts.wire_bytes; }

}  // namespace ropewalk
