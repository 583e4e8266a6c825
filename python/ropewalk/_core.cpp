// This is the compiled part of the Python package: memory, endpoints and halos by address. The
// Python classes around it (arrays.py, exchange.py, reduction.py) check shapes, and say which
// arrays are to be kept alive.
//
// Whatever may wait for another rank releases the GIL: the application's other threads go on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_core.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/process.hpp"
#include "ropewalk/schedule.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

// ---- errors -------------------------------------------------------------------------------------

// In the order of ErrorCode, from argument = 1.
constexpr std::array exception_names = {"ArgumentError", "MemoryError",   "SystemError",
                                        "MpiError",      "PeerDeadError", "UnsupportedError",
                                        "InternalError"};

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const auto index = static_cast<std::size_t>(error.code()) - 1;
    const char* name = index < exception_names.size() ? exception_names[index] : "Error";
    const nb::object type = nb::module_::import_("ropewalk.exceptions").attr(name);
    // Texts quote what was found, which need not be UTF-8.
    const char* what = error.what();
    const auto size = static_cast<Py_ssize_t>(std::strlen(what));
    const auto text = nb::steal(PyUnicode_DecodeUTF8(what, size, "replace"));
    PyErr_SetObject(type.ptr(), text.ptr());
  }
}

// ---- memory -------------------------------------------------------------------------------------

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// Allocates an array that gives its block back when the last view of it is gone.
Bytes allocate(std::size_t bytes) {
  void* data = nullptr;
  {
    const nb::gil_scoped_release released;  // first touch of new pages takes 0.1 to 0.5 s/GiB
    data = Arena::process().allocate(std::max<std::size_t>(bytes, 1));
  }
  const nb::capsule owner(data, [](void* block) noexcept { Arena::process().deallocate(block); });
  return Bytes(data, {bytes}, owner);
}

// Allocates an array outside of the arena, on memory of a NUMA node or of a kind.
Bytes allocate_placed(std::size_t bytes, std::optional<int> node,
                      const std::optional<std::string>& kind) {
  MemoryOptions options;
  options.node = node;
  if (kind) options.kind = memory_kind(*kind);
  std::unique_ptr<PageBlock> block;
  {
    const nb::gil_scoped_release released;
    block = std::make_unique<PageBlock>(bytes, options);
  }
  void* data = block->data();
  const nb::capsule owner(block.get(),
                          [](void* one) noexcept { delete static_cast<PageBlock*>(one); });
  static_cast<void>(block.release());  // the capsule's
  return Bytes(data, {bytes}, owner);
}

auto arena_statistics() {
  const Arena& arena = Arena::process();
  const ArenaStatistics found = arena.statistics();
  return std::tuple(found.allocations, found.cache_hits, found.cache_misses, found.live_bytes,
                    found.cached_bytes, found.committed_bytes, found.huge_bytes,
                    std::string(name(arena.source())), arena.downgrade());
}

auto inspect_range(std::uintptr_t address, std::size_t bytes) {
  const Inspection found = inspect(reinterpret_cast<const void*>(address), bytes);
  std::vector<std::tuple<std::size_t, std::size_t>> pages;
  for (const PageUse& use : found.pages) pages.emplace_back(use.page_bytes, use.bytes);
  return std::tuple(found.bytes, found.resident_bytes, pages, found.node_bytes, found.peers_can_map,
                    found.alignment, found.method, found.all_huge());
}

// ---- MPI ----------------------------------------------------------------------------------------

// Set by start_mpi, cleared by end_mpi at exit. A plain pointer: a static destructor would end MPI,
// and wait for the other ranks, when end_mpi was left out on purpose.
Process* started = nullptr;
OfProcess starter;  // the process that did so; what a child of fork has is its parent's
void start_mpi() {
  if (started != nullptr) return;
  started = new Process;
  starter = OfProcess();
}
void end_mpi() {
  if (starter.is_own()) delete std::exchange(started, nullptr);
}

using HeldPlan = Held<MessagePlan>;
// A halo and its threads, of which the caller's is the first.
struct HaloWithThreads {
  ThreadTeam team;  // outlives the halo
  Halo halo;

  template <class Faces>
  HaloWithThreads(const CartesianGrid& grid, EndpointSet& endpoints, const Faces& faces,
                  HaloOptions options)
      : team(grid.communicator(), {.threads = options.workers}),
        halo(grid, endpoints, faces, with_workers(options, team.size())) {}

  void start() {
    team.run([this](int worker) { halo.start_worker(worker); });
  }
  void wait() {
    team.run([this](int worker) { halo.wait_worker(worker); });
  }
  void exchange() {
    if (halo.parts() > 0) return halo.exchange();  // nothing is copied
    start();
    wait();
  }

 private:
  static HaloOptions with_workers(HaloOptions options, int workers) {
    options.workers = workers;
    return options;
  }
};
using HeldHalo = Held<HaloWithThreads>;

}  // namespace

bool& abandoned() {
  static bool flag = false;
  return flag;
}

void check_not_in_call(int calls, const char* object) {
  if (calls == 0) return;
  throw Error(ErrorCode::argument, std::string(object) +
                                       ": another thread is in a call of it, expected none; close "
                                       "it when that call has returned");
}

std::vector<nb::object> objects_of(Keep sequence) {
  std::vector<nb::object> objects;
  for (const nb::handle each : sequence) objects.push_back(nb::borrow(each));
  return objects;
}

Communicator communicator(std::optional<std::uintptr_t> handle) {
  if (handle) return Communicator(*handle);
  start_mpi();
  return Communicator::world();
}

namespace {

// ---- endpoints ----------------------------------------------------------------------------------

// The set is closed explicitly, because the destructor is collective and Python's moment for it is
// not.
struct Endpoints : Held<EndpointSet> {
  using Held::Held;
  EndpointSet& get() const {
    if (value == nullptr) {
      throw Error(ErrorCode::argument, "endpoints: closed, expected an open EndpointSet");
    }
    return *value;
  }
};

std::unique_ptr<Endpoints> make_endpoints(std::optional<std::uintptr_t> handle, int lanes,
                                          bool threads, bool pin,
                                          std::optional<std::size_t> split_bytes, Keep keep) {
  EndpointOptions options;
  options.lanes = lanes;
  options.threads = threads;
  options.pin = pin;
  options.split_bytes = split_bytes;
  std::unique_ptr<EndpointSet> made;
  {
    const nb::gil_scoped_release released;
    made = std::make_unique<EndpointSet>(communicator(handle), options);
  }
  return std::make_unique<Endpoints>(std::move(made), objects_of(keep));
}

// (is a send, address, bytes, peer, tag, lane, step)
using MessageWords = std::tuple<bool, std::uintptr_t, std::size_t, int, int, int, int>;

HeldPlan make_plan(Endpoints& endpoints, const std::vector<MessageWords>& words, Keep keep) {
  std::vector<Message> messages;
  messages.reserve(words.size());
  for (const auto& [send, address, bytes, peer, tag, lane, step] : words) {
    messages.push_back({send ? Message::Kind::send : Message::Kind::receive,
                        reinterpret_cast<void*>(address), bytes, peer, tag, lane, step});
  }
  return HeldPlan(std::make_unique<MessagePlan>(endpoints.get().plan(std::move(messages))),
                  objects_of(keep));
}

void define_endpoints(nb::module_& module) {
  nb::class_<HeldPlan>(module, "MessagePlan", nb::type_slots(kept_slots<HeldPlan>))
      .def(
          "start",
          [](HeldPlan& plan, const std::string& wanted) { plan.value->start(strategy(wanted)); },
          release_gil())
      .def(
          "test", [](HeldPlan& plan) { return plan.value->test(); }, release_gil())
      .def(
          "wait", [](HeldPlan& plan) { plan.value->wait(); }, release_gil())
      .def("send_bytes", [](const HeldPlan& plan) { return plan.value->send_bytes(); });
  nb::class_<Endpoints>(module, "Endpoints", nb::type_slots(kept_slots<Endpoints>))
      .def("lanes", [](const Endpoints& self) { return self.get().lanes(); })
      .def("rank", [](const Endpoints& self) { return self.get().rank(); })
      .def("size", [](const Endpoints& self) { return self.get().size(); })
      .def("has_threads", [](const Endpoints& self) { return self.get().has_threads(); })
      .def("plan", &make_plan)
      .def(
          "send",
          [](Endpoints& self, int lane, std::uintptr_t data, std::size_t bytes, int peer, int tag) {
            self.get().send(lane, reinterpret_cast<const void*>(data), bytes, peer, tag);
          },
          release_gil())
      .def(
          "receive",
          [](Endpoints& self, int lane, std::uintptr_t data, std::size_t bytes, int peer, int tag) {
            self.get().receive(lane, reinterpret_cast<void*>(data), bytes, peer, tag);
          },
          release_gil())
      .def(
          "close", [](Endpoints& self) { self.value.reset(); }, release_gil());
  module.def("endpoints", &make_endpoints, "handle"_a.none(), "lanes"_a, "threads"_a, "pin"_a,
             "split_bytes"_a.none(), "keep"_a);
}

// ---- halo ---------------------------------------------------------------------------------------

std::unique_ptr<CartesianGrid> make_grid(std::optional<std::uintptr_t> handle,
                                         std::vector<int> extents,
                                         const std::vector<bool>& periodic, bool by_node) {
  return std::make_unique<CartesianGrid>(communicator(handle), std::move(extents), periodic,
                                         by_node ? RankOrder::by_node : RankOrder::row_major);
}

// Makes a halo that keeps the objects of `keep`.
HeldHalo make_halo(const CartesianGrid& grid, Endpoints& endpoints, const auto& faces,
                   const HaloOptions& options, Keep keep) {
  std::unique_ptr<HaloWithThreads> made;
  {
    const nb::gil_scoped_release released;
    made = std::make_unique<HaloWithThreads>(grid, endpoints.get(), faces, options);
  }
  return HeldHalo(std::move(made), objects_of(keep));
}

HaloOptions halo_options(const std::string& wanted, bool corners, int parts, int threads) {
  return {strategy(wanted), corners ? Corners::yes : Corners::no, parts, threads};
}

// The words are (address, bytes of an element, interior, ghost widths).
using FieldWords =
    std::tuple<std::uintptr_t, std::size_t, std::vector<std::size_t>, std::vector<std::size_t>>;

HeldHalo make_field_halo(const CartesianGrid& grid, Endpoints& endpoints,
                         const std::vector<FieldWords>& words, const std::string& wanted,
                         bool corners, int threads, Keep keep) {
  std::vector<Field> fields;
  fields.reserve(words.size());
  for (const auto& [address, element_bytes, interior, ghost] : words) {
    fields.push_back({reinterpret_cast<void*>(address), element_bytes, interior, ghost});
  }
  return make_halo(grid, endpoints, fields, halo_options(wanted, corners, 0, threads), keep);
}

HeldHalo make_face_halo(const CartesianGrid& grid, Endpoints& endpoints,
                        const std::vector<std::uintptr_t>& send,
                        const std::vector<std::uintptr_t>& receive,
                        const std::vector<std::size_t>& bytes, const std::string& wanted,
                        int threads, Keep keep) {
  FacePackets packets;
  for (const std::uintptr_t address : send) {
    packets.send.push_back(reinterpret_cast<const void*>(address));
  }
  for (const std::uintptr_t address : receive) {
    packets.receive.push_back(reinterpret_cast<void*>(address));
  }
  packets.bytes = bytes;
  return make_halo(grid, endpoints, packets, halo_options(wanted, false, 0, threads), keep);
}

// A halo that owns its faces; `bytes` of each direction.
HeldHalo make_buffer_halo(const CartesianGrid& grid, Endpoints& endpoints,
                          std::vector<std::size_t> bytes, const std::string& wanted, int parts,
                          int threads, Keep keep) {
  return make_halo(grid, endpoints, HaloBuffers{std::move(bytes)},
                   halo_options(wanted, false, parts, threads), keep);
}

std::uintptr_t word(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void define_halo(nb::module_& module) {
  nb::class_<CartesianGrid>(module, "Grid")
      .def("extents", &CartesianGrid::extents)
      .def("periodic", &CartesianGrid::periodic)
      .def("coordinates", &CartesianGrid::coordinates)
      .def("rank", &CartesianGrid::rank)
      .def("size", &CartesianGrid::size)
      .def("neighbour",
           nb::overload_cast<const std::vector<int>&>(&CartesianGrid::neighbour, nb::const_));
  nb::class_<HeldHalo>(module, "Halo", nb::type_slots(kept_slots<HeldHalo>))
      .def(
          "start", [](HeldHalo& halo) { halo.value->start(); }, release_gil())
      .def(
          "test", [](HeldHalo& halo) { return halo.value->halo.test(); }, release_gil())
      .def(
          "wait", [](HeldHalo& halo) { halo.value->wait(); }, release_gil())
      .def(
          "exchange", [](HeldHalo& halo) { halo.value->exchange(); }, release_gil())
      .def("ready",
           [](HeldHalo& halo, int direction, int part) { halo.value->halo.ready(direction, part); })
      .def("arrived", [](const HeldHalo& halo, int direction,
                         int part) { return halo.value->halo.arrived(direction, part); })
      .def("threads", [](const HeldHalo& halo) { return halo.value->team.size(); })
      .def("parts", [](const HeldHalo& halo) { return halo.value->halo.parts(); })
      .def("strategy",
           [](const HeldHalo& halo) { return std::string(name(halo.value->halo.strategy())); })
      .def("send_bytes", [](const HeldHalo& halo) { return halo.value->halo.send_bytes(); })
      .def("wire_bytes", [](const HeldHalo& halo) { return halo.value->halo.wire_bytes(); })
      // 0 in a direction without a face.
      .def("send_buffer",
           [](const HeldHalo& halo, int at) { return word(halo.value->halo.send_buffer(at)); })
      .def("receive_buffer",
           [](const HeldHalo& halo, int at) { return word(halo.value->halo.receive_buffer(at)); });
  module.def("grid", &make_grid, "handle"_a.none(), "extents"_a, "periodic"_a, "by_node"_a = false,
             release_gil());
  module.def("check_strategy", [](const std::string& wanted) { (void)strategy(wanted); });
  module.def("field_halo", &make_field_halo);
  module.def("face_halo", &make_face_halo);
  module.def("buffer_halo", &make_buffer_halo);
}

}  // namespace

void define(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("allocate", &allocate);
  module.def("allocate_placed", &allocate_placed, nb::arg("bytes"), nb::arg("node").none(),
             nb::arg("kind").none());
  module.def(
      "trim", [] { Arena::process().trim(); }, release_gil());
  module.def("arena_statistics", &arena_statistics);
  module.def("inspect", &inspect_range, release_gil());
  module.def("start_mpi", &start_mpi, release_gil());
  module.def("end_mpi", &end_mpi, release_gil());
  module.def("abandon", [] { abandoned() = true; });
  define_endpoints(module);
  define_halo(module);
  define_channel(module);
  define_collectives(module);
  define_irregular(module);
  define_library_blocks(module);
  define_subarrays(module);
  define_process_group(module);
  define_reduction(module);
  define_settings(module);
  define_tuning(module);
  define_window(module);
}

}  // namespace ropewalk::python

NB_MODULE(_core, module) {
  // torch's device meshes keep process groups until the process ends, which is no fault of a user's
  // that nanobind should report.
  nanobind::set_leak_warnings(false);
  ropewalk::python::define(module);
}
