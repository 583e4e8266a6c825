// This file has the entry points for windows whose ranks share a node: their one-sided operations
// are loads and stores of the origin, and no other rank takes part.
//
// MPI makes such a window as one of shared memory, which every rank maps, and keeps it: what the
// program asks of the window itself (its group, its attributes, its error handler) MPI answers.
// Operations and epochs are ropewalk's alone, those of one window all together, so that all
// accumulates are atomic to each other. docs/explanation/drop-in-windows.md has the reasons.
//
// The parts are window_making.cc (which windows are served), window_epochs.hpp (locks and epochs),
// onesided_moves.cc and onesided_accumulates.cc (operations), onesided_epochs.cc (entry points).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "datatypes.hpp"
#include "functions.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"
#include "shared_area.hpp"
#include "statistics.hpp"
#include "window_epochs.hpp"
#include "window_mpi.hpp"

namespace ropewalk::preload::onesided {

// Says whether ROPEWALK_ONESIDED asks for such windows.
bool wanted() noexcept;

// The functions that make windows which can be served.
enum class WindowKind : std::uint8_t { create, allocate, allocate_shared };
// What the program asks of a window that it makes.
struct WindowRequest {
  Count bytes;
  Count unit;
  Word info;
  Word comm;
  WindowKind kind;
};
// Collective. Makes a window that is served, or returns false on all ranks and makes none. `base`
// is the memory of the program (create), or where its address goes.
bool make(const WindowRequest&, void* base, void* window) noexcept;

// A rank's memory in a window, as it is mapped here.
struct WindowPart {
  std::uintptr_t base;
  Count bytes;
  Count unit;
};

// Where the memory of a window lies, and that of the board.
struct WindowPlaces {
  WindowKind kind = WindowKind::allocate;
  std::vector<WindowPart> parts;  // by rank, as are these:
  WindowEpochs::Peers peers;      // while they are kept their arenas stay mapped
  WindowBoard board;
  std::unique_ptr<SharedArea> area{};  // rank 0's is the board
};
// The parts of all ranks in a window of shared memory. Local.
std::vector<WindowPart> parts_of_shared(Word window, int size);

class ServedWindow {
 public:
  // Local.
  ServedWindow(Word window, mpi::Comm comm, bool crowded, WindowPlaces places);

  int size() const noexcept { return size_; }
  bool is_rank(int rank) const noexcept { return rank >= 0 && rank < size(); }
  bool is_nobody(int rank) const noexcept { return rank == proc_null_; }
  bool open_to(int rank) const noexcept {
    return is_rank(rank) && epochs_.open_to(static_cast<std::size_t>(rank));
  }
  // Returns the address of elements in the memory of a rank. `low` and `high` bound their bytes,
  // from that address. Throws Error(argument) where the memory does not hold them.
  std::byte* at(int rank, Count displacement, Count low, Count high) const {
    const WindowPart& part = places_.parts[static_cast<std::size_t>(rank)];
    Count first = 0;
    const bool wraps = __builtin_mul_overflow(displacement, part.unit, &first);
    if (wraps || first + low < 0 || first > part.bytes - high) [[unlikely]] {
      throw_outside(rank, first + low, high - low);
    }
    return reinterpret_cast<std::byte*>(part.base + static_cast<std::uintptr_t>(first));
  }
  WindowEpochs& epochs() noexcept { return epochs_; }
  const WindowEpochs& epochs() const noexcept { return epochs_; }
  WindowKind kind() const noexcept { return places_.kind; }
  std::size_t streaming_bytes() const noexcept { return streaming_bytes_; }
  Word word() const noexcept { return window_; }

 private:
  [[noreturn]] void throw_outside(int rank, Count first, Count bytes) const;

  Word window_;
  int proc_null_;
  int size_;
  std::size_t streaming_bytes_;
  WindowPlaces places_;
  WindowEpochs epochs_;
};

struct WindowEntry {
  std::atomic<Word> handle{0};
  std::unique_ptr<ServedWindow> window;
};
// The entry that was found last, which is never given back to the allocator.
extern std::atomic<WindowEntry*> last_found;
ServedWindow* find_in_table(Word window) noexcept;
// Returns null for a window that MPI serves.
inline ServedWindow* find(Word window) noexcept {
  // These acquires pair with those who have filled the entry and have found it, as in
  // handle_table.hpp: the window is there.
  const WindowEntry* last = last_found.load(std::memory_order_acquire);
  if (last->handle.load(std::memory_order_acquire) == window) [[likely]] {
    return last->window.get();
  }
  return find_in_table(window);
}
// Whether any window is served.
bool any() noexcept;
// The window is not served any more. Returns what is left to free once MPI's window is gone, or to
// be put back where MPI keeps it.
std::unique_ptr<ServedWindow> forget(Word window) noexcept;
void put_back(std::unique_ptr<ServedWindow>) noexcept;

// The place of a window that is being made: none finds it before it is published.
class ReservedEntry {
 public:
  ReservedEntry() = default;
  ~ReservedEntry();
  ReservedEntry(const ReservedEntry&) = delete;
  ReservedEntry& operator=(const ReservedEntry&) = delete;
  void reserve();  // std::bad_alloc
  void fill(std::unique_ptr<ServedWindow>) noexcept;
  void publish() noexcept;

 private:
  WindowEntry* entry_ = nullptr;
};

// serve(window) returns false, before it has done anything, for what MPI must judge.
template <class Serve, class Pass>
int on_window(Function function, std::size_t bytes, Word word, Serve serve, Pass pass) noexcept {
  Watch watch(function, bytes);
  ServedWindow* window = find(clean(word));
  if (window == nullptr) {
    const int code = pass();
    watch.passed(Reason::window);
    return code;
  }
  try {
    if (serve(*window)) {
      watch.served(Path::mapped);
      return 0;
    }
  } catch (const std::exception& error) {
    return raise_on_window(clean(word), error.what());
  } catch (...) {
    return raise_on_window(clean(word), "unknown exception");
  }
  const int code = pass();
  watch.passed(Reason::arguments);
  return code;
}

// Gives the program a request that is complete, as the operation that it stands for is; returns
// true.
bool give_complete(void* request);

}  // namespace ropewalk::preload::onesided
