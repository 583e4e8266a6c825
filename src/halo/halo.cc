// Halo: drafts an exchange, has it checked by all ranks, and runs it.
#include "ropewalk/halo.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "halo/checks.hpp"
#include "halo/choice.hpp"
#include "halo/draft.hpp"
#include "halo/joint.hpp"
#include "halo/neighbours.hpp"
#include "halo/own_faces.hpp"
#include "halo/streaming.hpp"

namespace ropewalk {

struct Halo::State {
  Buffer<std::byte> faces;  // of FaceSizes, where they are copied
  halo::Places places;      // of FaceSizes
  halo::Draft draft;
  Strategy strategy = Strategy::concurrent;
  bool started = false;
  std::size_t send_bytes = 0;
  int lanes = 1;  // that threads of the caller may drive
  // After the draft: their end waits for what is under way in the buffers. One of them is there.
  std::optional<MessagePlan> plan;
  std::unique_ptr<halo::Direct> direct;
  std::unique_ptr<halo::Put> put;

  std::size_t turn() const noexcept { return put ? put->exchange() % 2 : 0; }
};

namespace {

// Collective. Tags of their own for each halo, so that two exchanges under way on the same
// endpoints are never confused, however each orders its messages. They go round after 4096
// directions.
int reserve_tags(mpi::Comm comm, int directions) {
  static std::atomic<std::int64_t> next{0};
  std::array<std::int64_t, 1> first{next.load()};
  mpi::all_reduce(first, mpi::Combine::max, comm);
  std::int64_t seen = next.load();
  const std::int64_t after = first[0] + directions;
  while (seen < after && !next.compare_exchange_weak(seen, after)) {
  }
  return static_cast<int>(first[0] % halo::Labels::tag_count);
}

halo::Labels labels(const CartesianGrid& grid, const EndpointSet& endpoints, int directions) {
  return {reserve_tags(halo::comm_of(grid), directions), endpoints.lanes(), directions};
}

// Dimensions in which any field has ghosts; the same on all ranks, as check_fields made sure.
std::vector<bool> wide_dimensions(const CartesianGrid& grid, const std::vector<Field>& fields) {
  std::vector<bool> wide(grid.extents().size(), false);
  for (const Field& field : fields) {
    for (std::size_t d = 0; d < wide.size(); ++d) wide[d] = wide[d] || field.ghost[d] > 0;
  }
  return wide;
}

void run_all(const std::vector<halo::StridedCopy>& copies) {
  for (const halo::StridedCopy& copy : copies) copy.run();
}

// The steps that are the same for faces and fields. `draft(links)` gives messages and copies,
// `direct(scratch)` the exchange without messages, or its rehearsal.
struct Making {
  const CartesianGrid& grid;
  EndpointSet& endpoints;
  const halo::Links& links;
  Strategy wanted;
};

// Collective. `direct` is a candidate where every rank can have it.
template <class State, class Direct>
Strategy choose(const State& state, const Making& making, const Direct& direct) {
  Buffer<std::byte> scratch;
  std::unique_ptr<halo::Direct> rehearsal;
  try {
    rehearsal = direct(&scratch);
  } catch (const Error& error) {  // the same on all ranks
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::memory) throw;
  }
  return halo::fastest(halo::comm_of(making.grid), making.endpoints, state.draft, rehearsal.get());
}

template <class State, class Draft, class Direct>
void complete(State& state, const Making& making, const Draft& draft, const Direct& direct) {
  const mpi::Comm comm = halo::comm_of(making.grid);
  const auto settle_on_direct = [&] {
    state.direct = direct(nullptr);
    state.plan.reset();
    halo::jointly(comm, [&] { state.draft = draft(halo::to_itself(making.links)); });
    state.strategy = Strategy::direct;
    state.send_bytes = state.direct->bytes();
  };
  if (making.wanted == Strategy::direct) return settle_on_direct();
  halo::jointly(comm, [&] {
    state.draft = draft(making.links);
    state.plan = making.endpoints.plan(state.draft.messages);
  });
  state.strategy = making.wanted;
  if (making.wanted == Strategy::automatic) {
    state.strategy = choose(state, making, direct);
    if (state.strategy == Strategy::direct) return settle_on_direct();
  }
  state.send_bytes = state.plan->send_bytes();
  const bool packed = !state.draft.packs.empty() || !state.draft.unpacks.empty();
  if (state.strategy != Strategy::threaded && !packed) state.lanes = making.endpoints.lanes();
}

std::size_t bytes_to_others(const halo::Links& links, const FaceSizes& sizes) {
  std::size_t sum = 0;
  for (const halo::Link& link : links.present) {
    if (link.carrier != halo::Carrier::copy) sum += sizes.bytes[halo::face_index(link.offset)];
  }
  return sum;
}

// Collective. A halo for each strategy that is possible.
std::vector<Halo> candidates(const CartesianGrid& grid, EndpointSet& endpoints,
                             const FaceSizes& sizes) {
  std::array<std::int64_t, 1> threads{endpoints.has_threads() ? 1 : 0};
  mpi::all_reduce(threads, mpi::Combine::min, halo::comm_of(grid));
  std::vector<Halo> out;
  for (const Strategy strategy :
       {Strategy::put, Strategy::direct, Strategy::concurrent, Strategy::threaded}) {
    if (strategy == Strategy::threaded && threads[0] == 0) continue;
    try {
      out.emplace_back(grid, endpoints, sizes, HaloOptions{strategy, Corners::no});
    } catch (const Error& error) {  // the same on all ranks
      const bool can_do_without =
          error.code() == ErrorCode::memory
              ? !out.empty()
              : error.code() == ErrorCode::unsupported && strategy != Strategy::concurrent;
      if (!can_do_without) throw;
    }
  }
  return out;
}

}  // namespace

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const FaceSizes& sizes,
           const HaloOptions& options)
    : state_(std::make_unique<State>()) {
  halo::check_setup(grid, endpoints, options, halo::Form::sizes, 0);
  halo::check_sizes(grid, sizes);
  if (options.strategy == Strategy::automatic) {
    std::vector<Halo> all = candidates(grid, endpoints, sizes);
    state_ = std::move(all[halo::fastest_of(halo::comm_of(grid), all, sizes)].state_);
    return;
  }
  const std::vector<bool> wide(grid.extents().size(), true);
  const halo::Links links = halo::links(grid, Corners::no, wide);
  if (options.strategy == Strategy::put) {
    state_->put = halo::put_faces(grid, endpoints, links, sizes);
    state_->places = state_->put->places();
    state_->strategy = Strategy::put;
    state_->send_bytes = bytes_to_others(links, sizes);
    return;
  }
  halo::OwnFaces own;
  halo::jointly(halo::comm_of(grid), [&] { own = halo::own_faces(links, sizes); });
  state_ = std::move(Halo(grid, endpoints, own.packets, options).state_);
  state_->faces = std::move(own.memory);
  state_->places = halo::places_of(own.packets);
}

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const FacePackets& faces,
           const HaloOptions& options)
    : state_(std::make_unique<State>()) {
  halo::check_setup(grid, endpoints, options, halo::Form::faces, 0);
  halo::check_faces(grid, faces);
  const std::vector<bool> wide(grid.extents().size(), true);
  const halo::Links links = halo::links(grid, Corners::no, wide);
  const halo::Labels label = labels(grid, endpoints, links.directions);
  complete(
      *state_, {grid, endpoints, links, options.strategy},
      [&](const halo::Links& some) { return halo::draft_faces(some, faces, label); },
      [&](Buffer<std::byte>* scratch) {
        return halo::direct_faces(grid, endpoints, links, faces, scratch);
      });
}

Halo::Halo(const CartesianGrid& grid, EndpointSet& endpoints, const std::vector<Field>& fields,
           const HaloOptions& options)
    : state_(std::make_unique<State>()) {
  halo::check_setup(grid, endpoints, options, halo::Form::fields, fields.size());
  halo::check_fields(grid, fields);
  const halo::Links links = halo::links(grid, options.corners, wide_dimensions(grid, fields));
  const halo::Labels label = labels(grid, endpoints, links.directions);
  complete(
      *state_, {grid, endpoints, links, options.strategy},
      [&](const halo::Links& some) { return halo::draft_fields(some, fields, label); },
      [&](Buffer<std::byte>* scratch) {
        return halo::direct_fields(grid, endpoints, links, fields, scratch);
      });
}

Halo::Halo(Halo&&) noexcept = default;
Halo& Halo::operator=(Halo&&) noexcept = default;
Halo::~Halo() = default;

void Halo::start() {
  if (state_->started) {
    throw Error(ErrorCode::argument,
                "halo: started while an exchange is under way, expected none; wait for it first");
  }
  halo::complete_streaming_stores();  // whoever reads the faces: a neighbour or another thread
  if (state_->put) {
    state_->put->start();
  } else if (state_->direct) {
    state_->direct->start();
  } else {
    run_all(state_->draft.packs);
    state_->plan->start(state_->strategy);
  }
  state_->started = true;
  run_all(state_->draft.copies);
}

bool Halo::test() {
  if (!state_->started) return true;
  const bool done = state_->put      ? state_->put->test()
                    : state_->direct ? state_->direct->test()
                                     : state_->plan->test();
  if (!done) return false;
  wait();
  return true;
}

void Halo::wait() {
  if (!state_->started) return;
  state_->started = false;
  if (state_->put) return state_->put->wait();
  if (state_->direct) return state_->direct->wait();
  state_->plan->wait();
  run_all(state_->draft.unpacks);
}

void Halo::exchange_lane(int lane) {
  if (lane < 0 || lane >= state_->lanes) {
    throw Error(ErrorCode::argument, "lane: " + std::to_string(lane) + ", expected 0 to " +
                                         std::to_string(state_->lanes - 1) +
                                         "; ask lanes() how many this exchange has");
  }
  if (state_->lanes == 1) return exchange();
  halo::complete_streaming_stores();
  if (lane == 0) run_all(state_->draft.copies);
  state_->plan->exchange_lane(lane);
}

int Halo::lanes() const noexcept { return state_->lanes; }

void* Halo::send_buffer(int direction) const noexcept {
  if (state_->put && state_->put->failed()) return nullptr;
  const std::vector<void*>& send = state_->places.send[1 - state_->turn()];
  const auto i = static_cast<std::size_t>(direction);
  return i < send.size() ? send[i] : nullptr;
}

const void* Halo::receive_buffer(int direction) const noexcept {
  const std::vector<void*>& receive = state_->places.receive[state_->turn()];
  const auto i = static_cast<std::size_t>(direction);
  return i < receive.size() ? receive[i] : nullptr;
}

const void* Halo::next_receive_buffer(int direction) const noexcept {
  const std::vector<void*>& receive = state_->places.receive[1 - state_->turn()];
  const auto i = static_cast<std::size_t>(direction);
  return i < receive.size() ? receive[i] : nullptr;
}

Strategy Halo::strategy() const noexcept { return state_->strategy; }

std::size_t Halo::send_bytes() const noexcept { return state_->send_bytes; }

}  // namespace ropewalk
