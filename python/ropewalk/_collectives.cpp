// Collectives on arrays of others. collectives.py explains each; here they are checked and run.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "_both_sides.hpp"
#include "_core.hpp"
#include "_held_collectives.hpp"
#include "_pending.hpp"
#include "ropewalk/averages.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

// ---- calls --------------------------------------------------------------------------------------

// What this rank alone finds wrong in its arguments must be an error of the others, too, or they
// would wait for it: it takes part with a call that cannot be.
void tell_refusal(Collectives& on) noexcept {
  const nb::gil_scoped_release released;
  try {
    on.broadcast(nullptr, 1, 0);
  } catch (...) {  // the error that is wanted
  }
}

template <class Prepare>
auto prepared(Collectives& on, Prepare prepare) {
  try {
    return prepare();
  } catch (...) {
    tell_refusal(on);
    throw;
  }
}

// Runs `call` here, or on the communicator's thread where the caller does not wait.
template <class Call>
nb::object run(HeldCollectives& self, bool start, Buffers buffers, Call call) {
  Collectives& on = self.get();
  if (start) {
    self.started = true;
    auto end = std::make_shared<Completion>();
    CollectiveRequest request;
    {
      const nb::gil_scoped_release released;
      request = on.start(telling(end, std::move(call)));
    }
    return nb::cast(
        std::make_unique<Pending>(std::move(request), std::move(end), std::move(buffers)));
  }
  {
    const nb::gil_scoped_release released;
    call(on);
  }
  return std::move(buffers.result);
}

nb::object barrier(HeldCollectives& self, bool start) {
  return run(self, start, {{}, {}, nb::none(), {}}, [](Collectives& on) { on.barrier(); });
}

using Reduction = void (Collectives::*)(const void*, void*, std::size_t, ElementType, ReductionOp);

using Average = void (*)(Collectives&, const void*, void*, std::size_t, ElementType);
// The template serves allreduce, scan and exscan.
template <Reduction reduction, Average average = nullptr>
nb::object reduce_on_all(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle op,
                         bool start) {
  Collectives& on = self.get();
  const bool averages = average != nullptr && is_average(op);
  ReductionOp wanted = ReductionOp::sum;
  ElementType kind{};
  Sides sides = prepared(on, [&] {
    if (!averages) wanted = operation(op);
    Sides both = apart(sides_of(array, out, same_shape()));
    kind = type(both.send, array);
    return both;
  });
  const auto call = [&](auto made) { return run(self, start, std::move(sides.buffers), made); };
  const void* from = sides.send.data;
  void* to = sides.receive.data;
  const std::size_t count = sides.send.size;
  if constexpr (average != nullptr) {
    if (averages) return call([=](Collectives& here) { average(here, from, to, count, kind); });
  }
  return call([=](Collectives& here) { (here.*reduction)(from, to, count, kind, wanted); });
}

nb::object reduce(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle op,
                  nb::handle root_given, bool start) {
  Collectives& on = self.get();
  int root = 0;
  const bool averages = is_average(op);
  ReductionOp wanted = ReductionOp::sum;
  ElementType kind{};
  Sides sides = prepared(on, [&] {
    root = root_of(on, root_given);
    if (!averages) wanted = operation(op);
    Sides both = on.rank() == root ? apart(sides_of(array, out, same_shape())) : sent_only(array);
    kind = type(both.send, array);
    return both;
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, count = sides.send.size, kind,
              wanted, root, averages](Collectives& here) {
               if (averages) return reduce_average(here, from, to, count, kind, root);
               here.reduce(from, to, count, kind, wanted, root);
             });
}

nb::object reduce_scatter(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle op,
                          nb::handle counts, bool start) {
  Collectives& on = self.get();
  const bool averages = is_average(op);
  ReductionOp wanted = ReductionOp::sum;
  ElementType kind{};
  Counts elements;
  Sides sides = prepared(on, [&] {
    if (!averages) wanted = operation(op);
    Counts rows;
    Sides both = apart(sides_of(array, out, [&](const Side& send) {
      if (!counts.is_none()) {
        rows = counts_of(on, counts, "counts");
        check_dealt(send, rows, "counts");
      } else {
        rows.assign(static_cast<std::size_t>(on.size()), equal_rows(on, send, "array"));
      }
      return with_rows(send, rows[static_cast<std::size_t>(on.rank())]);
    }));
    kind = type(both.send, array);
    const std::size_t row = both.send.rows() == 0 ? 0 : both.send.size / both.send.rows();
    for (const std::size_t count : rows) elements.push_back(count * row);
    return both;
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, counts_ = std::move(elements), kind,
              wanted, averages](Collectives& here) {
               if (averages) return reduce_scatter_average(here, from, to, counts_.data(), kind);
               here.reduce_scatter(from, to, counts_.data(), kind, wanted);
             });
}

nb::object broadcast(HeldCollectives& self, nb::handle array, nb::handle root_given, bool start) {
  Collectives& on = self.get();
  int root = 0;
  Side side = prepared(on, [&] {
    root = root_of(on, root_given);
    // The root's array is only read.
    return on.rank() == root ? input(array) : output(array, "array");
  });
  Buffers buffers{side.view, {}, nb::borrow(array), side.array};
  return run(self, start, std::move(buffers),
             [data = side.data, bytes = side.bytes(), root](Collectives& here) {
               here.broadcast(data, bytes, root);
             });
}

nb::object allgather(HeldCollectives& self, nb::handle array, nb::handle out, bool start) {
  Collectives& on = self.get();
  Sides sides = prepared(on, [&] {
    return apart(sides_of(array, out, [&](const Side& send) { return stacked(on, send); }),
                 on.rank());
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data,
              bytes = sides.send.bytes()](Collectives& here) { here.allgather(from, to, bytes); });
}

nb::object gather(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle root_given,
                  bool start) {
  Collectives& on = self.get();
  int root = 0;
  Sides sides = prepared(on, [&] {
    root = root_of(on, root_given);
    if (on.rank() == root) {
      return apart(sides_of(array, out, [&](const Side& send) { return stacked(on, send); }),
                   on.rank());
    }
    return sent_only(array);
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes = sides.send.bytes(),
              root](Collectives& here) { here.gather(from, to, bytes, root); });
}

nb::object scatter(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle root_given,
                   bool start) {
  Collectives& on = self.get();
  int root = 0;
  Sides sides = prepared(on, [&] {
    root = root_of(on, root_given);
    if (on.rank() == root) {
      Sides both = sides_of(array, out, [&](const Side& send) {
        const auto ranks = static_cast<std::size_t>(on.size());
        if (send.shape.empty() || send.shape[0] != ranks) {
          refuse("array: expected a first axis of " + std::to_string(ranks) + ", one row a rank");
        }
        return Shape(send.shape.begin() + 1, send.shape.end());
      });
      return apart(std::move(both), root);
    }
    return received_only(out);
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes = sides.receive.bytes(),
              root](Collectives& here) { here.scatter(from, to, bytes, root); });
}

nb::object alltoall(HeldCollectives& self, nb::handle array, nb::handle out, bool start) {
  Collectives& on = self.get();
  std::size_t bytes = 0;
  Sides sides = prepared(on, [&] {
    Sides both = apart(sides_of(array, out, same_shape()));
    bytes = equal_rows(on, both.send, "array") * both.send.row_bytes();
    return both;
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes](Collectives& here) {
               here.alltoall(from, to, bytes);
             });
}

// ---- blocks of different lengths: rows of the first axis ----------------------------------------

// This rank's rows, and those of all.
Sides of_all_rows(const Collectives& on, nb::handle array, nb::handle out, const Counts& counts) {
  Sides sides = sides_of(array, out, [&](const Side& send) {
    check_own_rows(send, counts[static_cast<std::size_t>(on.rank())]);
    return with_rows(send, sum(counts));
  });
  const std::size_t row = dealt_row(sides.receive, counts);
  return apart(std::move(sides), counts, row, on.rank());
}

// What the ranks tell each other of the rows that they send.
Counts told_rows(Collectives& on, std::size_t mine) {
  Counts told(static_cast<std::size_t>(on.size()));
  on.allgather(&mine, told.data(), sizeof mine);
  return told;
}
// The rows of an array, which is not copied for that where it has a shape.
std::size_t rows_of(nb::handle array) {
  const nb::object shape = nb::getattr(array, "shape", nb::none());
  if (!nb::isinstance<nb::tuple>(shape) || nb::len(shape) == 0) return input(array).rows();
  return nb::cast<std::size_t>(shape[0]);
}
Counts ask_rows(Collectives& on, nb::handle array) {
  const std::size_t mine = prepared(on, [&] { return rows_of(array); });
  const nb::gil_scoped_release released;
  return told_rows(on, mine);
}

nb::object allgatherv(HeldCollectives& self, nb::handle array, nb::handle out,
                      nb::handle counts_given, bool start) {
  Collectives& on = self.get();
  Counts counts;
  if (counts_given.is_none()) counts = ask_rows(on, array);
  Sides sides = prepared(on, [&] {
    if (!counts_given.is_none()) counts = counts_of(on, counts_given, "counts");
    return of_all_rows(on, array, out, counts);
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes = sides.send.bytes(),
              layout = Layout(counts, dealt_row(sides.receive, counts))](Collectives& here) {
               here.allgatherv(from, bytes, to, layout.counts.data(), layout.displacements.data());
             });
}

// Ranks do not know whether the root has counts, so they tell it their rows in every call: at once
// where the root needs them for its result, else as part of the call.
void check_told_rows(Collectives& on, std::size_t mine, const Counts& expected) {
  const Counts told = told_rows(on, mine);
  if (expected.empty() || told == expected) return;
  const auto [rows, wanted] = std::mismatch(told.begin(), told.end(), expected.begin());
  try {
    on.broadcast(nullptr, 1, 0);  // an error of all, who are in the call by now
  } catch (const Error&) {
  }
  refuse("counts: " + std::to_string(*wanted) + " for rank " + std::to_string(rows - told.begin()) +
         ", expected " + std::to_string(*rows) + ", the rows of its array");
}

nb::object gatherv(HeldCollectives& self, nb::handle array, nb::handle out, nb::handle counts_given,
                   nb::handle root_given, bool start) {
  Collectives& on = self.get();
  const int root = prepared(on, [&] { return root_of(on, root_given); });
  const bool is_root = on.rank() == root;
  const bool asks = is_root && counts_given.is_none();
  Counts counts;
  if (asks) counts = ask_rows(on, array);
  Sides sides = prepared(on, [&] {
    if (!is_root) return sent_only(array);
    if (!asks) counts = counts_of(on, counts_given, "counts");
    return of_all_rows(on, array, out, counts);
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes = sides.send.bytes(),
              rows = sides.send.rows(), layout = Layout(counts, dealt_row(sides.receive, counts)),
              counts, root, asks](Collectives& here) {
               if (!asks) check_told_rows(here, rows, counts);
               here.gatherv(from, bytes, to, layout.counts.data(), layout.displacements.data(),
                            root);
             });
}

nb::object scatterv(HeldCollectives& self, nb::handle array, nb::handle out,
                    nb::handle counts_given, nb::handle root_given, bool start) {
  Collectives& on = self.get();
  int root = 0;
  Counts counts;
  Sides sides = prepared(on, [&] {
    root = root_of(on, root_given);
    if (on.rank() == root) {
      counts = counts_of(on, counts_given, "counts");
      Sides both = sides_of(array, out, [&](const Side& send) {
        check_dealt(send, counts, "counts");
        return with_rows(send, counts[static_cast<std::size_t>(root)]);
      });
      const std::size_t row = dealt_row(both.send, counts);
      return apart(std::move(both), counts, row, root);
    }
    return received_only(out);
  });
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, bytes = sides.receive.bytes(),
              layout = Layout(counts, dealt_row(sides.send, counts)), root](Collectives& here) {
               here.scatterv(from, layout.counts.data(), layout.displacements.data(), to, bytes,
                             root);
             });
}

nb::object alltoallv(HeldCollectives& self, nb::handle array, nb::handle out,
                     nb::handle sends_given, nb::handle receives_given, bool start) {
  Collectives& on = self.get();
  Counts send_counts;
  Counts receive_counts;
  Sides sides = prepared(on, [&] {
    send_counts = counts_of(on, sends_given, "send_counts");
    receive_counts = counts_of(on, receives_given, "receive_counts");
    return apart(sides_of(array, out, [&](const Side& send) {
      check_dealt(send, send_counts, "send_counts");
      return with_rows(send, sum(receive_counts));
    }));
  });
  // Where a rank sends or receives no rows at all, its other side tells what a row is; else both
  // tell the same, since sides_of() has compared their elements.
  const std::size_t row =
      std::max(dealt_row(sides.send, send_counts), dealt_row(sides.receive, receive_counts));
  return run(self, start, std::move(sides.buffers),
             [from = sides.send.data, to = sides.receive.data, sends = Layout(send_counts, row),
              receives = Layout(receive_counts, row)](Collectives& here) {
               here.alltoallv(from, sends.counts.data(), sends.displacements.data(), to,
                              receives.counts.data(), receives.displacements.data());
             });
}

// For `ropewalk bench numpy`: the seconds of `calls` calls in place, without Python.
double time_allreduce(HeldCollectives& self, nb::handle array, int calls) {
  Collectives& on = self.get();
  const InCall one(self.calls);
  const Side side = output(array);
  const ElementType kind = type(side, array);
  const nb::gil_scoped_release released;
  const auto begun = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) {
    on.allreduce(side.data, side.data, side.size, kind, ReductionOp::sum);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// ---- the module ---------------------------------------------------------------------------------

void define_pending(nb::module_& module) {
  nb::class_<Pending>(module, "PendingCollective")
      .def("test", &Pending::test, release_gil())
      .def("wait", &Pending::wait, release_gil())
      .def("result", &Pending::result);
}

void define_questions(nb::class_<HeldCollectives>& collectives) {
  collectives.def("rank", [](const HeldCollectives& self) { return self.get().rank(); })
      .def("size", [](const HeldCollectives& self) { return self.get().size(); })
      .def("nodes", [](const HeldCollectives& self) { return self.get().nodes(); })
      .def("direct", [](const HeldCollectives& self) { return self.get().direct(); })
      .def("reason", [](const HeldCollectives& self) { return self.get().reason(); })
      .def("last_path",
           [](const HeldCollectives& self) { return std::string(name(self.get().last_path())); })
      .def("closed", [](const HeldCollectives& self) { return self.value == nullptr; })
      .def("own_handle",
           [](const HeldCollectives& self) {
             return self.own == nullptr ? std::nullopt
                                        : std::optional(self.own->communicator().handle());
           })
      .def("split", &split, nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg())
      .def("close", &HeldCollectives::close)
      .def("end", &HeldCollectives::end);
}

// Calls of others must not end the communicator while a thread is in this one.
template <class... Given>
auto counted(nb::object (*call)(HeldCollectives&, Given...)) {
  return [call](HeldCollectives& self, Given... given) {
    const InCall one(self.calls);
    return call(self, given...);
  };
}

}  // namespace

void define_collectives(nb::module_& module) {
  define_pending(module);
  nb::class_<HeldCollectives> collectives(module, "Collectives");
  define_questions(collectives);
  collectives.def("barrier", counted(&barrier)).def("time_allreduce", &time_allreduce);
  // None may stand for any argument but the last.
  const auto method = [&](const char* name, auto function, auto... arguments) {
    collectives.def(name, counted(function), arguments..., nb::arg());
  };
  const auto any = nb::arg().none();
  method("allreduce", &reduce_on_all<&Collectives::allreduce, &allreduce_average>, any, any, any);
  method("scan", &reduce_on_all<&Collectives::scan>, any, any, any);
  method("exscan", &reduce_on_all<&Collectives::exscan>, any, any, any);
  method("reduce", &reduce, any, any, any, any);
  method("reduce_scatter", &reduce_scatter, any, any, any, any);
  method("broadcast", &broadcast, any, any);
  method("allgather", &allgather, any, any);
  method("gather", &gather, any, any, any);
  method("scatter", &scatter, any, any, any);
  method("alltoall", &alltoall, any, any);
  method("allgatherv", &allgatherv, any, any, any);
  method("gatherv", &gatherv, any, any, any, any);
  method("scatterv", &scatterv, any, any, any, any);
  method("alltoallv", &alltoallv, any, any, any, any);
  module.def("collectives", &make_collectives, "handle"_a.none(), "threads"_a, release_gil());
}

}  // namespace ropewalk::python
