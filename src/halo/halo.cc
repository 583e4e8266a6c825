// Halo keeps what the public interface promises, on top of the carrier that was chosen when it was
// made.
#include "ropewalk/halo.hpp"

#include <string>
#include <utility>
#include <vector>

#include "halo/making.hpp"
#include "mpi/collectively.hpp"

namespace ropewalk {

struct Halo::State {
  halo::HaloParts parts;
  bool started = false;
};

template <class Request>
std::unique_ptr<Halo::State> Halo::make(const CartesianGrid& grid, Request&& request) {
  std::unique_ptr<State> out;
  mpi::collectively(halo::comm_of(grid), [&] {
    out = std::make_unique<State>();
    out->parts = halo::make_parts(request());
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
  state_->parts.start();
  state_->started = true;
}

bool Halo::test() {
  if (!state_->started) return true;
  if (!state_->parts.carrier->test()) return false;
  wait();
  return true;
}

void Halo::wait() {
  if (!state_->started) return;
  state_->started = false;
  state_->parts.carrier->wait();
}

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
