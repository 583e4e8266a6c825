// This file has the entry points that operate on elements of windows, atomically.
#include <algorithm>
#include <optional>
#include <vector>

#include "accumulation.hpp"
#include "ints.hpp"
#include "known_types.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/element_list.hpp"
#include "onesided.hpp"

namespace ropewalk::preload {
namespace {

using namespace onesided;

// Elements of the program's, or of the target.
struct ElementSide {
  const void* data;
  Count count;
  Word type;
};
struct Place {
  int target;
  Count displacement;
  Count count;
  Word type;
};
// `result` is null where nothing is fetched.
struct Accumulate {
  ElementSide operands;
  const ElementSide* result;
  Place place;
  Word op;
};

// A list of more takes hundreds of MB, and comes from a program's mistake.
constexpr std::size_t most_runs = std::size_t{1} << 24;

// The predefined elements that a side consists of, run by run.
class FlatSide {
 public:
  FlatSide(Count count, Word type) : count_(count) {
    const mpi::Datatype handle{clean(type)};
    auto list = mpi::element_list(handle, most_runs);
    if (!list) {
      throw Error(ErrorCode::unsupported,
                  "datatype: accumulates on windows take types that are made of one predefined "
                  "type, with up to 2^24 blocks; use another, or set "
                  "ROPEWALK_ONESIDED=off");
    }
    list_ = std::move(*list);
    extent_ = mpi::type_extent(handle).bytes;
    if (count_ > 0) join_all();
  }

  Word type() const noexcept { return list_.type.value; }
  Count extent() const noexcept { return list_.extent; }  // of one predefined element
  std::size_t elements() const noexcept {
    Count each = 0;
    for (const auto& run : list_.runs) each += run.count;
    return static_cast<std::size_t>(each * count_);
  }
  // The bytes that all of it reaches over, from the address of the first element.
  Count low() const noexcept {
    Count least = INT64_MAX;
    for (const auto& run : list_.runs) least = std::min(least, run.offset);
    return least + std::min<Count>((count_ - 1) * extent_, 0);
  }
  Count high() const noexcept {
    Count most = INT64_MIN;
    for (const auto& run : list_.runs) most = std::max(most, run.offset + run.count * list_.extent);
    return most + std::max<Count>((count_ - 1) * extent_, 0);
  }
  // Calls each(address, elements before it, elements) for each run, in the order of the type map.
  template <class Each>
  void for_each_run(const void* first, const Each& each) const {
    std::size_t before = 0;
    for (Count i = 0; i < count_; ++i) {
      for (const auto& run : list_.runs) {
        const auto at = static_cast<std::uintptr_t>(i * extent_ + run.offset);
        const auto elements = static_cast<std::size_t>(run.count);
        each(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(first) + at), before,
             elements);
        before += elements;
      }
    }
  }

 private:
  // Makes one run of elements side by side.
  void join_all() {
    if (list_.runs.size() != 1 || list_.runs[0].count * list_.extent != extent_) return;
    list_.runs[0].count *= count_;
    extent_ *= count_;
    count_ = 1;
  }

  mpi::ElementList list_;
  Count count_;
  Count extent_ = 0;
};

bool is_single(Word type) { return mpi::is_predefined({clean(type)}); }

// Whether all sides have as many elements of the same predefined type. MPI_NO_OP leaves the
// operands out of account.
bool is_even(const Accumulate& a, bool reads_operands) {
  const Place& p = a.place;
  const Word type = clean(p.type);
  const auto as_target = [&](const ElementSide& side) {
    return clean(side.type) == type && side.count == p.count;
  };
  return (!reads_operands || as_target(a.operands)) &&
         (a.result == nullptr || as_target(*a.result));
}

std::byte* before_of(const Accumulate& a) {
  if (a.result == nullptr) return nullptr;
  return static_cast<std::byte*>(const_cast<void*>(a.result->data));
}

// Elements side by side on all sides.
bool accumulate_gapless(ServedWindow& window, const Accumulate& a, const Accumulation& how) {
  const Place& p = a.place;
  const auto count = static_cast<std::size_t>(p.count);
  std::byte* there = window.at(p.target, p.displacement, 0, how.reach(p.count));
  const Alone alone(window, p.target);
  how.apply(there, static_cast<const std::byte*>(a.operands.data), before_of(a), count);
  return true;
}

bool accumulate_known(ServedWindow& window, const Accumulate& a, const KnownAccumulation& known) {
  const Place& p = a.place;
  const auto each = static_cast<Count>(known.all->bytes());
  const bool few = known.few != nullptr && p.count <= static_cast<Count>(few_bytes) / each;
  if (!few && (known.kernel == nullptr || a.result != nullptr)) {
    return accumulate_gapless(window, a, *known.all);
  }
  std::byte* there = window.at(p.target, p.displacement, 0, p.count * each);
  const Alone alone(window, p.target);
  const auto count = static_cast<std::size_t>(p.count);
  if (few) {
    known.few(there, static_cast<const std::byte*>(a.operands.data), before_of(a), count);
  } else {
    void* const outputs[] = {there};
    const void* const inputs[] = {there, a.operands.data};
    known.kernel(outputs, 1, inputs, 2, count, kernels::Stores::temporal);
  }
  return true;
}

// The elements of a side as an array.
std::vector<std::byte> gathered(const ElementSide& side, const FlatSide& flat,
                                const Accumulation& how) {
  std::vector<std::byte> all(flat.elements() * how.bytes());
  flat.for_each_run(side.data, [&](const std::byte* at, std::size_t before, std::size_t count) {
    how.copy(all.data() + before * how.bytes(), at, count);
  });
  return all;
}

bool accumulate_typed(ServedWindow& window, const Accumulate& a) {
  const Place& p = a.place;
  const FlatSide target(p.count, p.type);
  if (target.elements() == 0) return true;
  const Accumulation how(target.type(), a.op);
  if (!how.usable()) return false;
  const std::size_t bytes = how.bytes();
  const std::size_t elements = target.elements();
  std::vector<std::byte> operands;
  if (how.reads_operands()) {
    const FlatSide own(a.operands.count, a.operands.type);
    if (own.elements() != elements || own.extent() != target.extent()) return false;
    operands = gathered(a.operands, own, how);
  }
  std::optional<FlatSide> result;
  if (a.result != nullptr) {
    result.emplace(a.result->count, a.result->type);
    if (result->elements() != elements || result->extent() != target.extent()) return false;
  }
  std::vector<std::byte> before(result ? elements * bytes : 0);
  std::byte* const was = result ? before.data() : nullptr;
  // Behind the last element there may be no room for its gap.
  const Count high = target.high() - target.extent() + how.reach(1);
  const void* there = window.at(p.target, p.displacement, target.low(), high);
  {
    const Alone alone(window, p.target);
    target.for_each_run(there, [&](std::byte* at, std::size_t first, std::size_t count) {
      how.apply(at, operands.data() + first * bytes, was == nullptr ? nullptr : was + first * bytes,
                count);
    });
  }
  if (!result) return true;
  result->for_each_run(a.result->data, [&](std::byte* at, std::size_t first, std::size_t count) {
    how.copy(at, before.data() + first * bytes, count);
  });
  return true;
}

bool accumulate(ServedWindow& window, const Accumulate& a) {
  const Place& p = a.place;
  const KnownAccumulation* known = known_accumulation(clean(p.type), clean(a.op));
  if (known != nullptr && p.count > 0 && is_even(a, known->all->reads_operands())) [[likely]] {
    return accumulate_known(window, a, *known);
  }
  const bool reads = clean(a.op) != mpi::op(ReductionOp::no_op).value;
  if (p.count < 0 || (reads && a.operands.count < 0)) return false;
  if (a.result != nullptr && a.result->count < 0) return false;
  if (p.count == 0) return true;
  if (!is_single(p.type) || !is_even(a, reads)) return accumulate_typed(window, a);
  const Accumulation how(p.type, a.op);
  if (!how.usable()) return false;
  return accumulate_gapless(window, a, how);
}

bool serve_accumulate(ServedWindow& window, const Accumulate& a) {
  if (window.is_nobody(a.place.target)) return true;
  if (!window.open_to(a.place.target) || !accumulate(window, a)) return false;
  if (a.result != nullptr) window.epochs().breathe();
  return true;
}

std::size_t bytes_of(Count count, Word type) {
  if (statistics == Statistics::off || count < 0) return 0;
  const FoundElements elements = elements_of(type);
  return elements ? static_cast<std::size_t>(count) * elements->bytes : 0;
}

// `request` is null for the forms without one.
template <class Pass>
int run(const Accumulate& a, Word word, void* request, Pass pass) {
  return on_window(
      a.result == nullptr ? Function::accumulate : Function::get_accumulate,
      bytes_of(a.place.count, a.place.type), word,
      [&](ServedWindow& window) {
        return serve_accumulate(window, a) && (request == nullptr || give_complete(request));
      },
      pass);
}

// An MPI without functions with 64-bit counts.
int narrow(Count count) { return fits_int(count) ? static_cast<int>(count) : -1; }

}  // namespace

namespace serve {

int Accumulate(const void* data, int n, Word type, int target, Count at, int m, Word remote,
               Word op, Word win) {
  return run({{data, n, type}, nullptr, {target, at, m, remote}, op}, win, nullptr,
             [&] { return next.Accumulate(data, n, type, target, at, m, remote, op, win); });
}
int Raccumulate(const void* data, int n, Word type, int target, Count at, int m, Word remote,
                Word op, Word win, void* request) {
  return run({{data, n, type}, nullptr, {target, at, m, remote}, op}, win, request, [&] {
    return next.Raccumulate(data, n, type, target, at, m, remote, op, win, request);
  });
}
int Get_accumulate(const void* data, int n, Word type, void* result, int r, Word result_type,
                   int target, Count at, int m, Word remote, Word op, Word win) {
  const ElementSide fetched{result, r, result_type};
  return run({{data, n, type}, &fetched, {target, at, m, remote}, op}, win, nullptr, [&] {
    return next.Get_accumulate(data, n, type, result, r, result_type, target, at, m, remote, op,
                               win);
  });
}
int Rget_accumulate(const void* data, int n, Word type, void* result, int r, Word result_type,
                    int target, Count at, int m, Word remote, Word op, Word win, void* request) {
  const ElementSide fetched{result, r, result_type};
  return run({{data, n, type}, &fetched, {target, at, m, remote}, op}, win, request, [&] {
    return next.Rget_accumulate(data, n, type, result, r, result_type, target, at, m, remote, op,
                                win, request);
  });
}

int Accumulate_c(const void* data, Count n, Word type, int target, Count at, Count m, Word remote,
                 Word op, Word win) {
  return run({{data, n, type}, nullptr, {target, at, m, remote}, op}, win, nullptr, [&] {
    if (next.Accumulate_c == nullptr) {
      return next.Accumulate(data, narrow(n), type, target, at, narrow(m), remote, op, win);
    }
    return next.Accumulate_c(data, n, type, target, at, m, remote, op, win);
  });
}
int Raccumulate_c(const void* data, Count n, Word type, int target, Count at, Count m, Word remote,
                  Word op, Word win, void* request) {
  return run({{data, n, type}, nullptr, {target, at, m, remote}, op}, win, request, [&] {
    if (next.Raccumulate_c == nullptr) {
      return next.Raccumulate(data, narrow(n), type, target, at, narrow(m), remote, op, win,
                              request);
    }
    return next.Raccumulate_c(data, n, type, target, at, m, remote, op, win, request);
  });
}
int Get_accumulate_c(const void* data, Count n, Word type, void* result, Count r, Word result_type,
                     int target, Count at, Count m, Word remote, Word op, Word win) {
  const ElementSide fetched{result, r, result_type};
  return run({{data, n, type}, &fetched, {target, at, m, remote}, op}, win, nullptr, [&] {
    if (next.Get_accumulate_c == nullptr) {
      return next.Get_accumulate(data, narrow(n), type, result, narrow(r), result_type, target, at,
                                 narrow(m), remote, op, win);
    }
    return next.Get_accumulate_c(data, n, type, result, r, result_type, target, at, m, remote, op,
                                 win);
  });
}
int Rget_accumulate_c(const void* data, Count n, Word type, void* result, Count r, Word result_type,
                      int target, Count at, Count m, Word remote, Word op, Word win,
                      void* request) {
  const ElementSide fetched{result, r, result_type};
  return run({{data, n, type}, &fetched, {target, at, m, remote}, op}, win, request, [&] {
    if (next.Rget_accumulate_c == nullptr) {
      return next.Rget_accumulate(data, narrow(n), type, result, narrow(r), result_type, target, at,
                                  narrow(m), remote, op, win, request);
    }
    return next.Rget_accumulate_c(data, n, type, result, r, result_type, target, at, m, remote, op,
                                  win, request);
  });
}

int Fetch_and_op(const void* data, void* result, Word type, int target, Count at, Word op,
                 Word win) {
  const ElementSide fetched{result, 1, type};
  return on_window(
      Function::fetch_and_op, bytes_of(1, type), win,
      [&](ServedWindow& window) {
        return serve_accumulate(window, {{data, 1, type}, &fetched, {target, at, 1, type}, op});
      },
      [&] { return next.Fetch_and_op(data, result, type, target, at, op, win); });
}

int Compare_and_swap(const void* desired, const void* expected, void* before, Word type, int target,
                     Count at, Word win) {
  return on_window(
      Function::compare_and_swap, bytes_of(1, type), win,
      [&](ServedWindow& window) {
        if (window.is_nobody(target)) return true;
        if (!window.open_to(target)) return false;
        if (!compare_and_swap(window, target, at, type, expected, desired, before)) return false;
        window.epochs().breathe();
        return true;
      },
      [&] { return next.Compare_and_swap(desired, expected, before, type, target, at, win); });
}

}  // namespace serve
}  // namespace ropewalk::preload
