#include "onesided.hpp"

#include <atomic>
#include <string>
#include <utility>

#include "handle_table.hpp"
#include "mpi/library.hpp"
#include "settings/value.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::preload::onesided {

namespace {

HandleTable<WindowEntry> windows;
std::atomic<int> served_windows{0};
// A window of MPI's, 0 for none. Calls on it have returned when its handle goes to another window.
std::atomic<Word> last_missed{0};

WindowEntry nothing_found;

}  // namespace

std::atomic<WindowEntry*> last_found{&nothing_found};

bool wanted() noexcept {
  const settings::Value value = settings::read(settings::Id::onesided);
  return value.is("on") && !value.malformed;
}

std::vector<WindowPart> parts_of_shared(Word window, int size) {
  std::vector<WindowPart> parts;
  for (int rank = 0; rank < size; ++rank) {
    const SharedPart part = shared_part(window, rank);
    parts.push_back({mpi::address(part.base), part.bytes, part.unit});
  }
  return parts;
}

ServedWindow::ServedWindow(Word window, mpi::Comm comm, bool crowded, WindowPlaces places)
    : window_(window),
      proc_null_(mpi::proc_null()),
      size_(mpi::size(comm)),
      streaming_bytes_(tuning::channel_limits(mpi::size(comm), crowded).streaming_bytes),
      places_(std::move(places)),
      epochs_(places_.board, static_cast<std::size_t>(mpi::rank(comm)), places_.peers, crowded) {}

void ServedWindow::throw_outside(int rank, Count first, Count bytes) const {
  throw Error(ErrorCode::argument,
              "target_disp: " + std::to_string(bytes) + " bytes at byte " + std::to_string(first) +
                  " of rank " + std::to_string(rank) + ", whose part of the window has " +
                  std::to_string(places_.parts[static_cast<std::size_t>(rank)].bytes) +
                  "; name a range inside of it");
}

ServedWindow* find_in_table(Word window) noexcept {
  if (served_windows.load(std::memory_order_relaxed) == 0) return nullptr;
  // Searching for a window of MPI's takes a lock.
  if (last_missed.load(std::memory_order_relaxed) == window) return nullptr;
  WindowEntry* entry = windows.find(window);
  if (entry == nullptr) {
    last_missed.store(window, std::memory_order_relaxed);
    return nullptr;
  }
  last_found.store(entry, std::memory_order_release);  // pairs with find()
  return entry->window.get();
}

bool any() noexcept { return served_windows.load(std::memory_order_relaxed) != 0; }

std::unique_ptr<ServedWindow> forget(Word window) noexcept {
  WindowEntry* entry = windows.find(window);
  if (entry == nullptr) return nullptr;
  std::unique_ptr<ServedWindow> window_left = std::move(entry->window);
  windows.erase(*entry);
  served_windows.fetch_sub(1, std::memory_order_relaxed);
  return window_left;
}

void put_back(std::unique_ptr<ServedWindow> window) noexcept {
  try {
    ReservedEntry entry;
    entry.reserve();
    entry.fill(std::move(window));
    entry.publish();
  } catch (...) {  // no memory
  }
}

ReservedEntry::~ReservedEntry() {
  if (entry_ == nullptr) return;
  entry_->window.reset();
  windows.erase(*entry_);
}
void ReservedEntry::reserve() { entry_ = &windows.take(); }
void ReservedEntry::fill(std::unique_ptr<ServedWindow> window) noexcept {
  entry_->window = std::move(window);
}
void ReservedEntry::publish() noexcept {
  last_missed.store(0, std::memory_order_relaxed);
  served_windows.fetch_add(1, std::memory_order_relaxed);
  windows.publish(*entry_, entry_->window->word());
  entry_ = nullptr;
}

bool give_complete(void* request) {
  const mpi::Library& library = mpi::library();
  // A receive from nobody is complete at once, in every MPI.
  mpi::check(library.call.irecv(nullptr, 0, mpi::byte_type().value, mpi::proc_null(), 0,
                                mpi::comm_self().value, static_cast<Word*>(request)),
             "MPI_Irecv");
  return true;
}

}  // namespace ropewalk::preload::onesided
