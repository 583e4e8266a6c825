// Tests the table of handles with several threads and invented handles: an entry that is found is
// filled, and belongs to the handle. The thread sanitizer runs this.
#include "handle_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace {

using ropewalk::mpi::Word;
using ropewalk::preload::HandleTable;

struct Entry {
  std::atomic<Word> handle{0};
  Word copy = 0;  // what it was filled with: no atomic, so that a race is one
};

// While `exhausted`, no memory can be had for an entry.
bool exhausted = false;
struct Scarce : Entry {
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return exhausted ? nullptr : ::operator new(bytes, std::nothrow);
  }
  static void operator delete(void* place) noexcept { ::operator delete(place); }
};

// Tables live as long as the process, as those of the drop-in do: they never free an entry.
HandleTable<Entry>& make_table() {
  static auto* const kept = new std::vector<HandleTable<Entry>*>;
  return *kept->emplace_back(new HandleTable<Entry>);
}

// As in preload/mpi/datatypes.cc, whoever comes first makes the entry.
class Users {
 public:
  Entry& of(Word handle) {
    if (Entry* known = table.find_near(handle)) return *known;
    const std::lock_guard lock(making_);
    if (Entry* meanwhile = table.find(handle)) return *meanwhile;
    Entry& entry = table.take();
    entry.copy = handle;
    table.publish(entry, handle);
    ++made;
    return entry;
  }

  HandleTable<Entry>& table = make_table();
  int made = 0;

 private:
  std::mutex making_;
};

template <class Work>
void in_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(HandleTable, FindsEveryHandleOfAFullSet) {
  HandleTable<Entry>& table = make_table();
  for (Word handle = 1; handle <= 5000; ++handle) {
    Entry& entry = table.take();
    entry.copy = handle;
    table.publish(entry, handle);
  }
  for (Word handle = 1; handle <= 5000; ++handle) {
    Entry* found = table.find(handle);
    ASSERT_NE(found, nullptr) << handle;
    EXPECT_EQ(found->copy, handle);
    table.erase(*found);
    EXPECT_EQ(table.find(handle), nullptr) << handle;
  }
}

TEST(HandleTable, UsesEntriesOfFreedHandlesAgain) {
  HandleTable<Entry>& table = make_table();
  Entry& first = table.take();
  table.publish(first, 8);
  table.erase(first);
  EXPECT_EQ(&table.take(), &first);
  EXPECT_EQ(table.find(8), nullptr);
}

TEST(HandleTable, GivesBackWhatWasNeverPublished) {
  HandleTable<Entry>& table = make_table();
  Entry& taken = table.take();
  table.erase(taken);
  EXPECT_EQ(&table.take(), &taken);
}

// The next handles find entries all the same, and all of them are told apart.
TEST(HandleTable, HasEntriesLeftWhereMemoryIsNot) {
  static auto& table = *new HandleTable<Scarce>;  // never freed, as the drop-in's
  for (const bool begun : {false, true}) {
    exhausted = true;
    std::vector<Scarce*> taken;
    try {
      for (Word handle = 1; handle <= 1000; ++handle) {
        Scarce& entry = *taken.emplace_back(&table.take());
        table.publish(entry, handle);
      }
    } catch (const std::bad_alloc&) {
    }
    EXPECT_GE(taken.size(), 5U) << begun;
    EXPECT_LT(taken.size(), 1000U) << begun;
    for (Word handle = 1; handle <= taken.size(); ++handle) {
      EXPECT_EQ(table.find(handle), taken[handle - 1]);
      table.erase(*taken[handle - 1]);
    }
    exhausted = false;
    Scarce& entry = table.take();
    table.erase(entry);
  }
}

// Each fresh handle is met by several threads at once: it gets one entry, filled for whoever finds
// it.
TEST(HandleTable, ThreadsThatMeetAFreshHandleFindOneFilledEntry) {
  constexpr Word handles = 2000;
  Users users;
  std::atomic<int> wrong{0};
  in_threads(4, [&](int) {
    for (Word handle = 1; handle <= handles; ++handle) {
      if (users.of(handle).copy != handle) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(users.made, static_cast<int>(handles));
}

// Each thread frees and makes handles of its own, of few sets: entries pass from one to another.
TEST(HandleTable, EntriesPassFromThreadToThread) {
  Users users;
  std::atomic<int> wrong{0};
  in_threads(4, [&](int thread) {
    for (int round = 0; round < 5000; ++round) {
      const Word handle = static_cast<Word>(1 + thread + 4 * (round % 3));
      Entry& entry = users.of(handle);
      if (entry.copy != handle) ++wrong;
      if (round % 2 == 1) users.table.erase(entry);
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
