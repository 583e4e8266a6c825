// Registration traces and their replay, against a simulation that is as simple as can be; and the
// command line of the bench.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "attach/options.hpp"
#include "attach/tables.hpp"
#include "attach/trace.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::uint64_t page = 4096;

// Single pages of a process, each with the number of the entry that it belongs to, in one list.
struct Page {
  std::int64_t process;
  std::uint64_t number;
  int entry;
};

// The order in which entries are to go, and the pages of all.
class NaiveCache {
 public:
  NaiveCache(std::size_t capacity, Eviction eviction) : capacity_(capacity), eviction_(eviction) {}

  void ask(const RegistrationRequest& request) {
    std::vector<int> found;
    const std::uint64_t first = request.address / page;
    const std::uint64_t last = (request.address + request.bytes - 1) / page;
    for (std::uint64_t number = first; number <= last; ++number) {
      found.push_back(entry_of(request.process, number));
    }
    const bool whole = found.front() != 0 && std::ranges::count(found, found.front()) ==
                                                 static_cast<std::ptrdiff_t>(found.size());
    if (whole) {
      ++counts.hits;
      if (eviction_ == Eviction::lru) move_to_end(found.front());
      return;
    }
    ++counts.misses;
    const int entry = ++last_entry_;
    merge(request.process, found, entry);
    for (std::size_t at = 0; at < found.size(); ++at) {
      if (found[at] == 0) pages_.push_back({request.process, first + at, entry});
    }
    while (order_.size() >= capacity_) evict();
    order_.push_back(entry);
  }

  RegistrationCounts counts;

 private:
  int entry_of(std::int64_t process, std::uint64_t number) const {
    for (const Page& each : pages_) {
      if (each.process == process && each.number == number) return each.entry;
    }
    return 0;
  }
  void move_to_end(int entry) {
    std::erase(order_, entry);
    order_.push_back(entry);
  }
  // All pages of the entries that were found belong to the new one.
  void merge(std::int64_t process, const std::vector<int>& found, int entry) {
    for (Page& each : pages_) {
      if (each.process != process || std::ranges::count(found, each.entry) == 0) continue;
      std::erase(order_, each.entry);
      each.entry = entry;
    }
  }
  void evict() {
    const int gone = order_.front();
    order_.erase(order_.begin());
    std::erase_if(pages_, [&](const Page& each) { return each.entry == gone; });
    ++counts.evictions;
  }

  std::size_t capacity_;
  Eviction eviction_;
  int last_entry_ = 0;
  std::vector<int> order_;
  std::vector<Page> pages_;
};

std::vector<RegistrationRequest> trace(const std::string& name) {
  return read_trace(ATTACH_TRACES "/" + name + ".txt");
}

// Sizes of thousands of pages are made smaller, for the naive list.
std::vector<RegistrationRequest> shrunk(std::vector<RegistrationRequest> requests) {
  constexpr std::uint64_t factor = 32;
  for (RegistrationRequest& each : requests) {
    each.address /= factor;
    each.bytes = std::max<std::uint64_t>(each.bytes / factor, 1);
  }
  return requests;
}

TEST(Replay, CountsWhatANaiveSimulationCounts) {
  for (const char* name : {"halo", "allreduce", "alltoall"}) {
    const std::vector<RegistrationRequest> requests = shrunk(trace(name));
    for (const std::size_t capacity : {1, 2, 4, 7, 16, 64, 4096}) {
      for (const Eviction eviction : {Eviction::fifo, Eviction::lru}) {
        NaiveCache naive(capacity, eviction);
        for (const RegistrationRequest& request : requests) naive.ask(request);
        const RegistrationCounts counts = replay_registrations(requests, capacity, eviction);
        EXPECT_EQ(counts.hits, naive.counts.hits) << name << ", " << capacity;
        EXPECT_EQ(counts.misses, naive.counts.misses) << name << ", " << capacity;
        EXPECT_EQ(counts.evictions, naive.counts.evictions) << name << ", " << capacity;
      }
    }
  }
}

// A case in which the two orders differ, by hand: 1 2 1 3 1 in a cache of two.
TEST(Replay, TheOrdersDifferWhereAnEntryIsUsedAgain) {
  std::vector<RegistrationRequest> requests;
  for (const std::uint64_t which : {1, 2, 1, 3, 1}) requests.push_back({5, 10 * which * page, 8});
  EXPECT_EQ(replay_registrations(requests, 2, Eviction::fifo).hits, 1U);
  EXPECT_EQ(replay_registrations(requests, 2, Eviction::fifo).evictions, 2U);
  EXPECT_EQ(replay_registrations(requests, 2, Eviction::lru).hits, 2U);
  EXPECT_EQ(replay_registrations(requests, 2, Eviction::lru).evictions, 1U);
}

TEST(Replay, ARequestOfNoBytesIsAnError) {
  const RegistrationRequest request{1, page, 0};
  EXPECT_THROW(replay_registrations(std::span(&request, 1), 4, Eviction::fifo), Error);
}

TEST(Replay, WhatIsNoTraceIsAnErrorThatNamesFileAndLine) {
  char file[] = "/tmp/ropewalk-trace-XXXXXX";
  const int descriptor = mkstemp(file);
  ASSERT_GE(descriptor, 0);
  for (const char* bad : {"12 7f00", "12 7f00 0", "0 7f00 1", "12 xyz 1", "12 7f00 1 2", ""}) {
    std::ofstream(file) << "# comment\n" << bad << "\n";
    try {
      read_trace(file);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ErrorCode::argument);
      EXPECT_NE(text.find(file), text.npos) << text;
      EXPECT_EQ(text.find("line 2") != text.npos, *bad != '\0') << text;
    }
  }
  close(descriptor);
  unlink(file);
}

TEST(AttachRows, SayWhatRegistrationCosts) {
  AttachResult result{"mapped", 4096, false, {{1, 2, 3, 4, 0}, {1, 2, 3, 4, 0}}, true};
  EXPECT_EQ(median_total(result), 10);
  EXPECT_EQ(registration_percent(result), 60);
  const Json line = row({{"bench", "attach"}}, result);
  EXPECT_EQ(line["touch_us"], 3);
  EXPECT_EQ(line["cache"], "off");
  EXPECT_NE(steps_table({result}, "no module").find("xpmem is not here: no module"),
            std::string::npos);
}

TEST(AttachOptions, AReplayNeedsATrace) {
  AttachOptions options;
  options.tables = "replay";
  EXPECT_THROW(check(options), Error);
  AttachOptions with;
  with.traces = "a,b";
  check(with);
  EXPECT_TRUE(with.wants("replay"));
  EXPECT_EQ(with.trace_list, (std::vector<std::string>{"a", "b"}));
  AttachOptions many;
  many.capacities = "40000";
  EXPECT_THROW(check(many), Error);
}

}  // namespace
}  // namespace ropewalk::bench
