// This file defines what ropewalk/torch calls: the collectives and messages of a RankGroup, which
// take addresses.
//
// Where `keep` is None, a collective is made at once, with the GIL released. Otherwise it is
// started, and keeps the object until it is complete. Messages are always started.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "_core.hpp"
#include "_key_value_store.hpp"
#include "_rank_group.hpp"
#include "ropewalk/error.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

using Address = std::uintptr_t;
using Sizes = std::vector<std::size_t>;

void* at(Address address) { return reinterpret_cast<void*>(address); }
// Returns the address of the data that a call sends, or `in_place` where it receives there as well.
const void* sent(Address send, Address receive) { return send == receive ? in_place : at(send); }

// ---- what is under way --------------------------------------------------------------------------

// Gives back the memory of a call or a message that is over, and throws what it has thrown. The
// group would keep the memory until its next call.
void conclude(auto& state) {
  state.kept.give_back();
  state.completion.check();
}

struct StartedCall {
  RankGroup::StartedPointer state;
  bool test() const {
    if (!state->completion.done()) return false;
    conclude(*state);
    return true;
  }
  void wait() const {
    {
      const nb::gil_scoped_release released;
      state->completion.wait();
    }
    conclude(*state);
  }
};

struct StartedMessage {
  std::shared_ptr<Messenger> messenger;
  Messenger::MessagePointer state;

  bool test() const {
    {
      const nb::gil_scoped_release released;
      if (!messenger->test(*state)) return false;
    }
    conclude(*state);
    return true;
  }
  // Returns false where the message is not complete after `seconds`.
  bool wait(double seconds) const {
    {
      const nb::gil_scoped_release released;
      if (!messenger->wait(*state, seconds)) return false;
    }
    conclude(*state);
    return true;
  }
};

nb::object run(RankGroup& self, nb::handle keep, RankGroup::Call call) {
  self.forget();
  if (keep.is_none()) {
    const nb::gil_scoped_release released;
    self.run(call);
    return nb::none();
  }
  PyObject* kept = keep.inc_ref().ptr();
  StartedCall started;
  {
    const nb::gil_scoped_release released;
    started.state = self.start(std::move(call), kept);
  }
  return nb::cast(std::move(started));
}

// ---- collectives --------------------------------------------------------------------------------

nb::object barrier(RankGroup& self, nb::handle keep) {
  return run(self, keep, [](Collectives& on) { on.barrier(); });
}

nb::object allreduce(RankGroup& self, Address send, Address receive, std::size_t count, int type,
                     int op, nb::handle keep) {
  return run(self, keep, [=](Collectives& on) {
    on.allreduce(sent(send, receive), at(receive), count, static_cast<ElementType>(type),
                 static_cast<ReductionOp>(op));
  });
}

nb::object reduce(RankGroup& self, Address send, Address receive, std::size_t count, int type,
                  int op, int root, nb::handle keep) {
  return run(self, keep, [=](Collectives& on) {
    const void* from = on.rank() == root ? sent(send, receive) : at(send);
    on.reduce(from, at(receive), count, static_cast<ElementType>(type),
              static_cast<ReductionOp>(op), root);
  });
}

nb::object reduce_scatter(RankGroup& self, Address send, Address receive, Sizes counts, int type,
                          int op, nb::handle keep) {
  return run(self, keep, [=, counts = std::move(counts)](Collectives& on) {
    on.reduce_scatter(at(send), at(receive), counts.data(), static_cast<ElementType>(type),
                      static_cast<ReductionOp>(op));
  });
}

nb::object broadcast(RankGroup& self, Address data, std::size_t bytes, int root, nb::handle keep) {
  return run(self, keep, [=](Collectives& on) { on.broadcast(at(data), bytes, root); });
}

nb::object allgather(RankGroup& self, Address send, Address receive, std::size_t bytes,
                     nb::handle keep) {
  return run(self, keep, [=](Collectives& on) {
    const Address own = receive + static_cast<std::size_t>(on.rank()) * bytes;
    on.allgather(send == own ? in_place : at(send), at(receive), bytes);
  });
}

nb::object gather(RankGroup& self, Address send, Address receive, std::size_t bytes, int root,
                  nb::handle keep) {
  return run(self, keep, [=](Collectives& on) { on.gather(at(send), at(receive), bytes, root); });
}

nb::object scatter(RankGroup& self, Address send, Address receive, std::size_t bytes, int root,
                   nb::handle keep) {
  return run(self, keep, [=](Collectives& on) { on.scatter(at(send), at(receive), bytes, root); });
}

nb::object alltoall(RankGroup& self, Address send, Address receive, std::size_t bytes,
                    nb::handle keep) {
  return run(self, keep, [=](Collectives& on) { on.alltoall(at(send), at(receive), bytes); });
}

// This holds the sizes in bytes of blocks that lie one behind the other, and where each begins.
struct Blocks {
  explicit Blocks(Sizes its) : counts(std::move(its)) {
    std::size_t end = 0;
    for (const std::size_t count : counts) {
      displacements.push_back(end);
      end += count;
    }
  }
  Sizes counts;
  Sizes displacements;
};

nb::object alltoallv(RankGroup& self, Address send, Sizes send_bytes, Address receive,
                     Sizes receive_bytes, nb::handle keep) {
  return run(self, keep,
             [=, sends = Blocks(std::move(send_bytes)),
              receives = Blocks(std::move(receive_bytes))](Collectives& on) {
               on.alltoallv(at(send), sends.counts.data(), sends.displacements.data(), at(receive),
                            receives.counts.data(), receives.displacements.data());
             });
}

// ---- messages -----------------------------------------------------------------------------------

StartedMessage begun(RankGroup& self, nb::handle keep, auto begin) {
  self.forget();
  PyObject* kept = keep.inc_ref().ptr();
  const nb::gil_scoped_release released;
  return {self.messenger(), begin(*self.messenger(), kept)};
}

StartedMessage send(RankGroup& self, Address data, std::size_t bytes, int to, int tag,
                    nb::handle keep) {
  return begun(self, keep, [=](Messenger& messenger, PyObject* kept) {
    return messenger.send(at(data), bytes, to, tag, kept);
  });
}

StartedMessage receive(RankGroup& self, Address data, std::size_t bytes, int from, int tag,
                       nb::handle keep) {
  return begun(self, keep, [=](Messenger& messenger, PyObject* kept) {
    return messenger.receive(at(data), bytes, from, tag, kept);
  });
}

// ---- the module ---------------------------------------------------------------------------------

std::unique_ptr<RankGroup> make(nb::object store, int rank, int size,
                                std::optional<std::uintptr_t> handle, int timeout_s) {
  std::shared_ptr<KeyValueStore> held = store.is_none() ? nullptr : key_value_store(store);
  const nb::gil_scoped_release released;
  return std::make_unique<RankGroup>(std::move(held), rank, size, handle, timeout_s);
}

void define_started(nb::module_& module) {
  nb::class_<StartedCall>(module, "StartedCall")
      .def("test", &StartedCall::test)
      .def("wait", &StartedCall::wait)
      .def("tell", [](const StartedCall& self, nb::object function) {
        self.state->completion.tell(std::move(function));
      });
  nb::class_<StartedMessage>(module, "StartedMessage")
      .def("test", &StartedMessage::test)
      .def("wait", &StartedMessage::wait)
      .def("source", [](const StartedMessage& self) { return self.state->source; })
      .def("tell", [](const StartedMessage& self, nb::object function) {
        self.state->completion.tell(std::move(function));
      });
}

// Defines a method that returns what `question` says of the collectives.
void define_question(nb::class_<RankGroup>& group, const char* name, auto question) {
  group.def(
      name, [question](RankGroup& self) { return self.ask(question); }, release_gil());
}

void define_questions(nb::class_<RankGroup>& group) {
  define_question(group, "rank", [](const Collectives& on) { return on.rank(); });
  define_question(group, "size", [](const Collectives& on) { return on.size(); });
  define_question(group, "nodes", [](const Collectives& on) { return on.nodes(); });
  define_question(group, "direct", [](const Collectives& on) { return on.direct(); });
  define_question(group, "reason", [](const Collectives& on) { return std::string(on.reason()); });
  define_question(group, "last_path",
                  [](const Collectives& on) { return std::string(name(on.last_path())); });
  group.def("closed", &RankGroup::closed)
      .def("broken", &RankGroup::broken)
      .def("calls", &RankGroup::calls)
      .def("refuse", &RankGroup::refuse, release_gil())
      .def("close", &RankGroup::close, release_gil());
}

}  // namespace

void define_process_group(nb::module_& module) {
  define_started(module);
  nb::class_<RankGroup> group(module, "RankGroup");
  define_questions(group);
  const auto any = nb::arg().none();
  const auto method = [&](const char* name, auto function, auto... arguments) {
    group.def(name, function, arguments..., any);
  };
  const nb::arg number;
  method("barrier", &barrier);
  method("allreduce", &allreduce, number, number, number, number, number);
  method("reduce", &reduce, number, number, number, number, number, number);
  method("reduce_scatter", &reduce_scatter, number, number, number, number, number);
  method("broadcast", &broadcast, number, number, number);
  method("allgather", &allgather, number, number, number);
  method("gather", &gather, number, number, number, number);
  method("scatter", &scatter, number, number, number, number);
  method("alltoall", &alltoall, number, number, number);
  method("alltoallv", &alltoallv, number, number, number, number);
  constexpr nb::keep_alive<0, 1> group_stays;
  group.def("send", &send, group_stays).def("receive", &receive, group_stays);
  module.def("rank_group", &make, "store"_a.none(), "rank"_a, "size"_a, "handle"_a.none(),
             "timeout_s"_a);
}

}  // namespace ropewalk::python
