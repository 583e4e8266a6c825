// This file has the entry points that copy to and from windows.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collectives/pattern.hpp"
#include "ints.hpp"
#include "kernels/kernels.hpp"
#include "known_types.hpp"
#include "mpi/datatypes.hpp"
#include "onesided.hpp"

namespace ropewalk::preload {
namespace {

using namespace onesided;
using collectives::TypedPart;

// The arguments of a movement: elements of this rank, and those of the target.
struct Movement {
  bool puts;
  void* data;
  Count count;
  Word type;
  int target;
  Count displacement;
  Count target_count;
  Word target_type;
};

// Small copies are a few instructions; the kernels' threshold for stores past the caches is for
// large ones.
void copy(void* to, const void* from, std::size_t bytes, std::size_t streaming_bytes) {
  constexpr std::size_t small = 4096;
  // One store each: the target may look for the value, and change it at once.
  if (bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
    return;
  }
  if (bytes == sizeof(std::uint32_t)) {
    std::memcpy(to, from, sizeof(std::uint32_t));
    return;
  }
  if (bytes < small) {
    std::memcpy(to, from, bytes);
    return;
  }
  kernels::copy(to, from, bytes,
                bytes >= streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal);
}

// Through packed bytes, where nobody but MPI knows the layout of a type.
void move_packed(const TypedPart& from, const TypedPart& to) {
  std::vector<std::byte> packed(std::max(from.bytes(), to.bytes()));
  from.pack(packed.data());
  to.unpack(packed.data());
}

void move_elements(const TypedPart& from, const TypedPart& to) {
  if (!from.pattern->known || !to.pattern->known) return move_packed(from, to);
  collectives::copy_elements(from.elements(), to.elements(), from.bytes(),
                             kernels::Stores::temporal);
}

// The bytes that elements reach over, from the address of the first.
std::array<Count, 2> bounds(const collectives::Pattern& pattern, Count count) {
  Count low = pattern.low;
  Count high = pattern.high;
  if (!pattern.known) {
    const mpi::TypeExtent extent = mpi::type_extent(pattern.type);
    low = extent.true_lower;
    high = low + extent.true_bytes;
  }
  const Count last = (count - 1) * pattern.extent;
  return {low + std::min<Count>(last, 0), high + std::max<Count>(last, 0)};
}

bool move_typed(const ServedWindow& window, const Movement& m) {
  const KeptPattern local = pattern_of(m.type);
  const KeptPattern remote = pattern_of(m.target_type);
  if (local == nullptr || remote == nullptr) return false;
  const std::size_t bytes = static_cast<std::size_t>(m.count) * local->bytes;
  if (bytes != static_cast<std::size_t>(m.target_count) * remote->bytes) return false;
  if (bytes == 0) return true;
  const auto [low, high] = bounds(*remote, m.target_count);
  const TypedPart here{m.data, static_cast<std::size_t>(m.count), local.get()};
  const TypedPart there{window.at(m.target, m.displacement, low, high),
                        static_cast<std::size_t>(m.target_count), remote.get()};
  m.puts ? move_elements(here, there) : move_elements(there, here);
  return true;
}

// Bytes that lie side by side on both sides.
bool move_bytes(const ServedWindow& window, const Movement& m, std::size_t bytes) {
  if (bytes == 0) return true;
  std::byte* there = window.at(m.target, m.displacement, 0, static_cast<Count>(bytes));
  const std::size_t streaming = window.streaming_bytes();
  m.puts ? copy(there, m.data, bytes, streaming) : copy(m.data, there, bytes, streaming);
  return true;
}

bool move(const ServedWindow& window, const Movement& m) {
  if (m.type == m.target_type && m.count == m.target_count) [[likely]] {
    const std::size_t each = known_bytes(clean(m.type));
    if (each != 0) return move_bytes(window, m, static_cast<std::size_t>(m.count) * each);
  }
  const FoundElements local = elements_of(m.type);
  const FoundElements remote = elements_of(m.target_type);
  if (!local || !remote) return false;
  if (local->packed || remote->packed || local->gaps || remote->gaps) [[unlikely]] {
    return move_typed(window, m);
  }
  const std::size_t bytes = static_cast<std::size_t>(m.count) * local->bytes;
  if (bytes != static_cast<std::size_t>(m.target_count) * remote->bytes) return false;
  return move_bytes(window, m, bytes);
}

bool serve_movement(ServedWindow& window, const Movement& m) {
  if (window.is_nobody(m.target)) return true;
  if (!window.open_to(m.target) || m.count < 0 || m.target_count < 0) return false;
  if (!move(window, m)) return false;
  m.puts ? window.epochs().note_stores() : window.epochs().breathe();
  return true;
}

std::size_t bytes_of(Count count, Word type) {
  if (statistics == Statistics::off || count < 0) return 0;
  const FoundElements elements = elements_of(type);
  return elements ? static_cast<std::size_t>(count) * elements->bytes : 0;
}

// `request` is null for the forms without one.
template <class Pass>
int run(const Movement& m, Word word, void* request, Pass pass) {
  return on_window(
      m.puts ? Function::put : Function::get, bytes_of(m.count, m.type), word,
      [&](ServedWindow& window) {
        return serve_movement(window, m) && (request == nullptr || give_complete(request));
      },
      pass);
}

// An MPI without functions with 64-bit counts.
int narrow(Count count) { return fits_int(count) ? static_cast<int>(count) : -1; }

Movement put(const void* data, Count n, Word type, int target, Count at, Count m, Word remote) {
  return {true, const_cast<void*>(data), n, type, target, at, m, remote};
}
Movement get(void* data, Count n, Word type, int target, Count at, Count m, Word remote) {
  return {false, data, n, type, target, at, m, remote};
}

}  // namespace

namespace serve {

int Put(const void* data, int n, Word type, int target, Count at, int m, Word remote, Word win) {
  return run(put(data, n, type, target, at, m, remote), win, nullptr,
             [&] { return next.Put(data, n, type, target, at, m, remote, win); });
}
int Get(void* data, int n, Word type, int target, Count at, int m, Word remote, Word win) {
  return run(get(data, n, type, target, at, m, remote), win, nullptr,
             [&] { return next.Get(data, n, type, target, at, m, remote, win); });
}
int Rput(const void* data, int n, Word type, int target, Count at, int m, Word remote, Word win,
         void* request) {
  return run(put(data, n, type, target, at, m, remote), win, request,
             [&] { return next.Rput(data, n, type, target, at, m, remote, win, request); });
}
int Rget(void* data, int n, Word type, int target, Count at, int m, Word remote, Word win,
         void* request) {
  return run(get(data, n, type, target, at, m, remote), win, request,
             [&] { return next.Rget(data, n, type, target, at, m, remote, win, request); });
}

int Put_c(const void* data, Count n, Word type, int target, Count at, Count m, Word remote,
          Word win) {
  return run(put(data, n, type, target, at, m, remote), win, nullptr, [&] {
    if (next.Put_c == nullptr) {
      return next.Put(data, narrow(n), type, target, at, narrow(m), remote, win);
    }
    return next.Put_c(data, n, type, target, at, m, remote, win);
  });
}
int Get_c(void* data, Count n, Word type, int target, Count at, Count m, Word remote, Word win) {
  return run(get(data, n, type, target, at, m, remote), win, nullptr, [&] {
    if (next.Get_c == nullptr) {
      return next.Get(data, narrow(n), type, target, at, narrow(m), remote, win);
    }
    return next.Get_c(data, n, type, target, at, m, remote, win);
  });
}
int Rput_c(const void* data, Count n, Word type, int target, Count at, Count m, Word remote,
           Word win, void* request) {
  return run(put(data, n, type, target, at, m, remote), win, request, [&] {
    if (next.Rput_c == nullptr) {
      return next.Rput(data, narrow(n), type, target, at, narrow(m), remote, win, request);
    }
    return next.Rput_c(data, n, type, target, at, m, remote, win, request);
  });
}
int Rget_c(void* data, Count n, Word type, int target, Count at, Count m, Word remote, Word win,
           void* request) {
  return run(get(data, n, type, target, at, m, remote), win, request, [&] {
    if (next.Rget_c == nullptr) {
      return next.Rget(data, narrow(n), type, target, at, narrow(m), remote, win, request);
    }
    return next.Rget_c(data, n, type, target, at, m, remote, win, request);
  });
}

}  // namespace serve
}  // namespace ropewalk::preload
