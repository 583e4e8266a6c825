// Tests of ranks that have no MPI. They are threads of this process, and their key-value store is a
// map that they share.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/store_communicator.hpp"

namespace ropewalk::test {

class Shelf final : public KeyValueStore {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key) override {
    std::unique_lock lock(mutex_);
    const auto set = [&] { return values_.contains(key); };
    if (!changed_.wait_for(lock, patience, set)) throw std::runtime_error("nobody has set " + key);
    return values_[key];
  }
  void remove(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  std::chrono::milliseconds patience{60'000};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Puts the library that was there back, for the other tests of a program.
class LibraryRestored {
 public:
  LibraryRestored() : before_(mpi::exchange_library(nullptr)) {}
  ~LibraryRestored() { mpi::exchange_library(before_); }
  LibraryRestored(const LibraryRestored&) = delete;
  LibraryRestored& operator=(const LibraryRestored&) = delete;

 private:
  const mpi::Library* before_;
};

// Runs body(communicator, rank) on a thread for each rank.
template <class Body>
void run_group(const std::shared_ptr<Shelf>& shelf, int ranks, Body body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const StoreCommunicator own(shelf, rank, ranks);
      body(own.communicator(), rank);
    });
  }
  for (std::thread& each : threads) each.join();
}

class GroupTest : public testing::Test {
 protected:
  template <class Body>
  void run(int ranks, Body body) {
    shelf_ = std::make_shared<Shelf>();  // a shelf holds the keys of one communicator
    run_group(shelf_, ranks, body);
  }
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();

 private:
  LibraryRestored restored_;
};

}  // namespace ropewalk::test
