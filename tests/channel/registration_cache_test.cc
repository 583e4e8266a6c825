// Tests the registration cache alone, with a provider that attaches nothing and records every call.
#include "channel/registration_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace ropewalk::channel {
namespace {

const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

// Local addresses are numbers that nobody follows, a new range for each attachment.
class FakeProvider : public Provider {
 public:
  struct Attached {
    Segment segment;
    std::uint64_t address;
    std::size_t bytes;
  };

  Segment own_segment(std::string&) override { return 1; }
  bool open(Segment segment) override {
    const std::lock_guard lock(mutex_);
    return segment > 0 && open_.insert(segment).second;
  }
  void close(Segment segment) noexcept override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(open_.erase(segment), 1U);
    for (const auto& [local, what] : attached_) EXPECT_NE(what.segment, segment);
  }
  std::byte* attach(Segment segment, std::uint64_t address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(open_.contains(segment));
    EXPECT_EQ(address % page, 0U);
    EXPECT_EQ(bytes % page, 0U);
    ++attempts;
    if (attached_.size() >= most) return nullptr;
    const std::uintptr_t local = next_;
    next_ += bytes + page;
    attached_[local] = {segment, address, bytes};
    return reinterpret_cast<std::byte*>(local);
  }
  void detach(std::byte* local, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = attached_.find(reinterpret_cast<std::uintptr_t>(local));
    ASSERT_NE(found, attached_.end());
    EXPECT_EQ(found->second.bytes, bytes);
    attached_.erase(found);
    ++detached;
  }
  // Returns true when `bytes` at `local` are those at `address` of the segment.
  bool shows(const std::byte* local, Segment segment, std::uint64_t address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = reinterpret_cast<std::uintptr_t>(local);
    auto found = attached_.upper_bound(at);
    if (found == attached_.begin()) return false;
    --found;
    const Attached& what = found->second;
    const std::uintptr_t offset = at - found->first;
    return what.segment == segment && what.address + offset == address &&
           offset + bytes <= what.bytes;
  }
  std::size_t live() {
    const std::lock_guard lock(mutex_);
    return attached_.size();
  }

  std::size_t most = SIZE_MAX;  // attachments that this kernel grants at a time
  int attempts = 0;
  int detached = 0;

 private:
  std::mutex mutex_;
  std::set<Segment> open_;
  std::map<std::uintptr_t, Attached> attached_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
};

// Acquires and releases at once; true when it was a hit.
bool touch(RegistrationCache& cache, Segment segment, std::uint64_t address, std::size_t bytes) {
  const std::uint64_t hits = cache.counts().hits;
  const auto [local, entry] = cache.acquire(segment, address, bytes);
  EXPECT_NE(local, nullptr);
  if (entry != nullptr) cache.release(std::span(&entry, 1));
  return cache.counts().hits > hits;
}

TEST(RegistrationCache, TheSecondUseIsAHitWithinWholePages) {
  FakeProvider provider;
  RegistrationCache cache(provider, 8);
  ASSERT_TRUE(cache.open(7));
  const auto [local, entry] = cache.acquire(7, 10 * page + 100, 2 * page);
  EXPECT_TRUE(provider.shows(local, 7, 10 * page + 100, 2 * page));
  cache.release(std::span(&entry, 1));
  EXPECT_TRUE(touch(cache, 7, 10 * page, 3 * page));
  EXPECT_TRUE(touch(cache, 7, 12 * page + 5, 1));
  EXPECT_FALSE(touch(cache, 7, 13 * page, 1));      // the page after
  EXPECT_FALSE(touch(cache, 7, 10 * page - 1, 1));  // the page before
  const CacheCounts counts = cache.counts();
  EXPECT_EQ(counts.hits, 2U);
  EXPECT_EQ(counts.misses, 3U);
  EXPECT_EQ(counts.entries, 3U);  // neighbours stay apart
  cache.close(7);
  EXPECT_EQ(provider.live(), 0U);
}

TEST(RegistrationCache, PeersHaveTreesOfTheirOwn) {
  FakeProvider provider;
  RegistrationCache cache(provider, 8);
  ASSERT_TRUE(cache.open(1));
  ASSERT_TRUE(cache.open(2));
  EXPECT_FALSE(cache.open(-1));
  EXPECT_FALSE(touch(cache, 1, page, page));
  EXPECT_FALSE(touch(cache, 2, page, page));
  EXPECT_TRUE(touch(cache, 1, page, page));
  ASSERT_TRUE(cache.open(1));
  cache.close(1);  // by one of two users
  EXPECT_TRUE(touch(cache, 1, page, page));
  cache.close(1);
  EXPECT_EQ(provider.live(), 1U);
  EXPECT_EQ(cache.acquire(1, page, page).local, nullptr);
  EXPECT_TRUE(touch(cache, 2, page, page));
}

TEST(RegistrationCache, OverlappingRequestsBecomeOneEntry) {
  FakeProvider provider;
  RegistrationCache cache(provider, 8);
  ASSERT_TRUE(cache.open(1));
  touch(cache, 1, 10 * page, 2 * page);
  touch(cache, 1, 14 * page, 2 * page);
  touch(cache, 1, 20 * page, page);
  EXPECT_FALSE(touch(cache, 1, 11 * page, 4 * page));  // overlaps the first two
  EXPECT_EQ(provider.live(), 2U);
  EXPECT_TRUE(touch(cache, 1, 10 * page, 6 * page));
  EXPECT_TRUE(touch(cache, 1, 20 * page, page));
  EXPECT_EQ(cache.counts().evictions, 0U);
}

TEST(RegistrationCache, TheOldestGoesFirstHoweverOftenItWasUsed) {
  FakeProvider provider;
  RegistrationCache cache(provider, 2);
  ASSERT_TRUE(cache.open(1));
  ASSERT_TRUE(cache.open(2));
  touch(cache, 1, page, page);
  touch(cache, 2, page, page);
  EXPECT_TRUE(touch(cache, 1, page, page));
  EXPECT_FALSE(touch(cache, 2, 5 * page, page));
  EXPECT_EQ(cache.counts().evictions, 1U);
  EXPECT_TRUE(touch(cache, 2, page, page));
  EXPECT_FALSE(touch(cache, 1, page, page));
  EXPECT_EQ(provider.live(), 2U);
}

TEST(RegistrationCache, TheLeastRecentlyUsedGoesFirstWhereThatIsAskedFor) {
  FakeProvider provider;
  RegistrationCache cache(provider, 2, Eviction::lru);
  ASSERT_TRUE(cache.open(1));
  ASSERT_TRUE(cache.open(2));
  touch(cache, 1, page, page);
  touch(cache, 2, page, page);
  EXPECT_TRUE(touch(cache, 1, page, page));
  EXPECT_FALSE(touch(cache, 2, 5 * page, page));
  EXPECT_EQ(cache.counts().evictions, 1U);
  EXPECT_TRUE(touch(cache, 1, page, page));
  EXPECT_FALSE(touch(cache, 2, page, page));
}

TEST(RegistrationCache, WhatIsInUseIsNeitherEvictedNorReplaced) {
  FakeProvider provider;
  RegistrationCache cache(provider, 1);
  ASSERT_TRUE(cache.open(1));
  const auto first = cache.acquire(1, 10 * page, page);
  const auto second = cache.acquire(1, 20 * page, page);
  EXPECT_TRUE(provider.shows(first.local, 1, 10 * page, page));
  const auto around = cache.acquire(1, 9 * page, 3 * page);  // replaces the first
  EXPECT_TRUE(provider.shows(first.local, 1, 10 * page, page));
  EXPECT_TRUE(provider.shows(around.local, 1, 9 * page, 3 * page));
  EXPECT_EQ(provider.live(), 3U);
  cache.release(std::span(&first.entry, 1));
  EXPECT_EQ(provider.live(), 2U);
  cache.release(std::span(&second.entry, 1));
  cache.release(std::span(&around.entry, 1));
  touch(cache, 1, 30 * page, page);
  EXPECT_EQ(provider.live(), 1U);
}

TEST(RegistrationCache, ARefusalEmptiesTheCacheAndTriesAgain) {
  FakeProvider provider;
  RegistrationCache cache(provider, 100);
  ASSERT_TRUE(cache.open(1));
  provider.most = 3;
  for (std::uint64_t at = 1; at <= 3; ++at) touch(cache, 1, 10 * at * page, page);
  const auto held = cache.acquire(1, 10 * page, page);
  EXPECT_FALSE(touch(cache, 1, 100 * page, page));
  EXPECT_EQ(provider.live(), 2U);  // the one that is held and the new one
  provider.most = 0;
  EXPECT_EQ(cache.acquire(1, 200 * page, page).local, nullptr);
  EXPECT_TRUE(provider.shows(held.local, 1, 10 * page, page));
  cache.release(std::span(&held.entry, 1));
}

// What the cache must do, as plainly as it can be said: entries in one list, searched from end to
// end.
class Model {
 public:
  struct Entry {
    Segment segment;
    std::uint64_t begin;
    std::uint64_t end;
    int pins;
  };
  Model(std::size_t capacity, Eviction eviction) : capacity_(capacity), eviction_(eviction) {}

  // Pages [begin, end); returns whether it is a hit, and pins the entry it ends up in.
  bool acquire(Segment segment, std::uint64_t begin, std::uint64_t end) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->segment == segment && at->begin <= begin && end <= at->end) {
        ++at->pins;
        if (eviction_ == Eviction::lru) std::rotate(at, at + 1, entries_.end());
        return true;
      }
    }
    Entry whole{segment, begin, end, 1};
    const auto overlaps = [&](const Entry& entry) {
      return entry.segment == segment && entry.begin < end && begin < entry.end;
    };
    for (const Entry& entry : entries_) {
      if (!overlaps(entry)) continue;
      whole.begin = std::min(whole.begin, entry.begin);
      whole.end = std::max(whole.end, entry.end);
    }
    std::erase_if(entries_, overlaps);
    for (std::size_t at = 0; at < entries_.size() && entries_.size() >= capacity_;) {
      if (entries_[at].pins > 0) {
        ++at;
      } else {
        ++evictions;
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    entries_.push_back(whole);
    return false;
  }
  // The entry that was pinned for these pages may have been replaced since, and is then forgotten.
  void unpin_all() {
    for (Entry& entry : entries_) entry.pins = 0;
  }
  std::size_t size() const { return entries_.size(); }

  std::uint64_t evictions = 0;

 private:
  std::size_t capacity_;
  Eviction eviction_;
  std::vector<Entry> entries_;
};

struct Held {
  Segment segment;
  std::uint64_t address;
  std::size_t bytes;
  RegistrationCache::Registration registration;
};

class RandomRegistrations : public testing::TestWithParam<Eviction> {};

TEST_P(RandomRegistrations, DoWhatTheModelDoes) {
  for (const std::size_t capacity : {1, 3, 10, 1000}) {
    FakeProvider provider;
    RegistrationCache cache(provider, capacity, GetParam());
    Model model(capacity, GetParam());
    std::mt19937_64 random(capacity);
    for (Segment segment = 1; segment <= 3; ++segment) ASSERT_TRUE(cache.open(segment));
    std::vector<Held> held;
    std::uint64_t hits = 0;
    for (int step = 0; step < 4000; ++step) {
      // Calls use up to eight buffers each and then let all of them go.
      if (held.size() >= random() % 9) {
        std::vector<RegistrationCache::Entry*> entries;
        for (const Held& one : held) entries.push_back(one.registration.entry);
        cache.release(entries);
        held.clear();
        model.unpin_all();
      }
      Held next{static_cast<Segment>(1 + random() % 3),
                page * (random() % 60) + random() % page,
                1 + random() % (random() % 2 == 0 ? page : 6 * page),
                {}};
      next.registration = cache.acquire(next.segment, next.address, next.bytes);
      held.push_back(next);
      hits += model.acquire(next.segment, next.address / page * page,
                            (next.address + next.bytes + page - 1) / page * page)
                  ? 1
                  : 0;
      for (const Held& one : held) {
        ASSERT_TRUE(provider.shows(one.registration.local, one.segment, one.address, one.bytes))
            << "step " << step;
      }
      const CacheCounts counts = cache.counts();
      ASSERT_EQ(counts.hits, hits) << "step " << step;
      ASSERT_EQ(counts.evictions, model.evictions) << "step " << step;
      ASSERT_EQ(counts.entries, provider.live());
      ASSERT_LE(model.size(), counts.entries);  // besides: replaced ones that are still in use
      ASSERT_LE(provider.live(), std::max(capacity, model.size()) + held.size());
    }
    std::vector<RegistrationCache::Entry*> entries;
    for (const Held& one : held) entries.push_back(one.registration.entry);
    cache.release(entries);
  }
}

INSTANTIATE_TEST_SUITE_P(Evictions, RandomRegistrations,
                         testing::Values(Eviction::fifo, Eviction::lru));

TEST(RegistrationCache, ThreadsMayShareIt) {
  FakeProvider provider;
  RegistrationCache cache(provider, 4);
  std::vector<std::thread> threads;
  for (Segment segment = 1; segment <= 4; ++segment) {
    threads.emplace_back([&, segment] {
      std::mt19937_64 random(static_cast<std::uint64_t>(segment));
      ASSERT_TRUE(cache.open(1));  // one peer that all use
      for (int step = 0; step < 1000; ++step) {
        const std::uint64_t address = page * (random() % 20);
        const auto first = cache.acquire(1, address, page);
        const auto second = cache.acquire(1, address + page / 2, 2 * page);
        ASSERT_TRUE(provider.shows(first.local, 1, address, page));
        ASSERT_TRUE(provider.shows(second.local, 1, address + page / 2, 2 * page));
        RegistrationCache::Entry* const both[] = {first.entry, second.entry};
        cache.release(both);
      }
      cache.close(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(provider.live(), 0U);
  const CacheCounts counts = cache.counts();
  EXPECT_EQ(counts.hits + counts.misses, 8000U);
}

}  // namespace
}  // namespace ropewalk::channel
