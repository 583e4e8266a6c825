#include "support/thread_mpi.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "mpi/library.hpp"
#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

std::mutex world_lock;
std::unique_ptr<World> the_world;  // guarded by world_lock; one run at a time

// Tells whose thread this is. An adopted thread gives its place back when it ends.
struct Identity {
  int rank = -1;
  bool adopted = false;
  ~Identity() {
    if (!adopted) return;
    const std::lock_guard lock(world_lock);
    if (the_world == nullptr) return;
    --the_world->live;
    the_world->stop_if_all_blocked();
  }
};
thread_local Identity identity;

// ---- environment ----------------------------------------------------------------------------

int level_code() {
  const std::lock_guard lock(world_lock);
  const auto level = the_world == nullptr ? mpi::ThreadLevel::multiple : the_world->options.level;
  return abi().thread_levels[static_cast<std::size_t>(level)];
}

int fake_query_thread(int* level) {
  *level = level_code();
  return 0;
}

int fake_error_string(int code, char* text, int* length) {
  const std::lock_guard lock(world_lock);
  const int index = code - first_text_code;
  std::string found = "code " + std::to_string(code);
  if (the_world != nullptr && index >= 0 && index < static_cast<int>(the_world->errors.size())) {
    found = the_world->errors[static_cast<std::size_t>(index)];
  }
  found.resize(std::min<std::size_t>(found.size(), 500));
  std::strcpy(text, found.c_str());
  *length = static_cast<int>(found.size());
  return 0;
}

std::uintptr_t fake_thread_identity() {
  const std::lock_guard lock(world_lock);
  if (the_world == nullptr || identity.rank < 0) return 0;
  // The new thread counts from now on, so that its parent blocking first is no deadlock.
  ++the_world->live;
  ++the_world->pending[static_cast<std::size_t>(identity.rank)];
  return static_cast<std::uintptr_t>(identity.rank) + 1;
}

void fake_adopt(std::uintptr_t token) {
  const std::lock_guard lock(world_lock);
  if (the_world == nullptr || token == 0 || identity.rank >= 0) return;
  identity.rank = static_cast<int>(token - 1);
  identity.adopted = true;
  std::size_t& pending = the_world->pending[token - 1];
  if (pending > 0) {
    --pending;
  } else {
    ++the_world->live;
  }
}

void fill_environment(mpi::Functions& call) {
  call.init_thread = [](int*, char***, int, int* provided) { return fake_query_thread(provided); };
  call.initialized = [](int* flag) { return *flag = 1, 0; };
  call.finalized = [](int* flag) { return *flag = 0, 0; };
  call.finalize = [] { return 0; };
  call.query_thread = &fake_query_thread;
  call.abort = [](Word, int) { return 0; };
  call.error_string = &fake_error_string;
  call.get_library_version = [](char* text, int* length) {
    std::strcpy(text, "ropewalk's MPI of threads");
    *length = static_cast<int>(std::strlen(text));
    return 0;
  };
  call.wtime = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  call.thread_identity = &fake_thread_identity;
  call.adopt_thread_identity = &fake_adopt;
}

const mpi::Library* make_library(bool large_counts) {
  auto* made = new mpi::Library(abi(), "threads");
  fill_environment(made->call);
  fill_communicators(made->call);
  fill_messages(made->call);
  fill_collectives(made->call);
  fill_nonblocking_collectives(made->call);
  fill_types(made->call);
  if (!large_counts) return made;
  fill_large_messages(made->call);
  fill_large_collectives(made->call);
  fill_large_nonblocking_collectives(made->call);
  fill_large_types(made->call);
  return made;
}

// Kept for the life of the process, as a real library is.
const mpi::Library& fake_library(bool large_counts) {
  static const mpi::Library* with = make_library(true);
  static const mpi::Library* without = make_library(false);
  return large_counts ? *with : *without;
}

// ---- a run ----------------------------------------------------------------------------------

std::unique_ptr<World> make_world(int ranks, const RunOptions& options) {
  auto world = std::make_unique<World>();
  world->options = options;
  world->ranks = ranks;
  std::vector<int> everyone;
  for (int rank = 0; rank < ranks; ++rank) {
    everyone.push_back(rank);
    world->self.push_back(std::make_shared<Communicator>(std::vector<int>{rank}));
  }
  world->all = std::make_shared<Communicator>(everyone);
  world->live = static_cast<std::size_t>(ranks);
  world->pending.resize(static_cast<std::size_t>(ranks));
  return world;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void record(int rank, const std::exception_ptr& error) {
  const std::lock_guard lock(world_lock);
  if (the_world->first_error != nullptr) return;
  // A thread that fails because of a deadlock or another's failure is not the cause; the reason is.
  the_world->first_error = error;
  the_world->stop("rank " + std::to_string(rank) + " failed: " + text_of(error));
}

void end_of_rank(int rank) {
  std::unique_lock lock(world_lock);
  World& world = *the_world;
  if (testing::Test::HasFatalFailure() || testing::Test::IsSkipped()) {
    world.judged_by_test = true;
    world.stop("a test assertion failed, or the test is skipped");
  }
  if (!world.stopped) {
    delete_attributes(world, lock, abi().comm_self, world.self[static_cast<std::size_t>(rank)], 0);
    delete_attributes(world, lock, abi().comm_world, world.all, rank);
  }
  --world.live;
  world.stop_if_all_blocked();
}

void run_rank(int rank, const std::function<void(int)>& body) {
  identity.rank = rank;
  try {
    body(rank);
    end_of_rank(rank);
  } catch (...) {
    record(rank, std::current_exception());
    const std::lock_guard lock(world_lock);
    --the_world->live;
    the_world->stop_if_all_blocked();
  }
}

std::string leaks(const World& world) {
  std::string found;
  if (!world.requests.empty()) {
    found += std::to_string(world.requests.size()) + " requests were never completed; ";
  }
  if (!world.communicators.empty()) {
    found += std::to_string(world.communicators.size()) + " communicators were never freed; ";
  }
  return found;
}

void start_world(int ranks, const RunOptions& options) {
  const std::lock_guard lock(world_lock);
  if (the_world != nullptr) throw std::logic_error("run_ranks: one run at a time");
  the_world = make_world(ranks, options);
}

std::unique_ptr<World> end_world() {
  const std::lock_guard lock(world_lock);
  return std::move(the_world);
}

}  // namespace

int World::error(const std::string& text) {
  errors.push_back(text);
  return first_text_code + static_cast<int>(errors.size()) - 1;
}

void World::changed() {
  ++epoch;
  blocked = 0;  // those that wait look again, and count themselves again
  changes.notify_all();
}

void World::stop(const std::string& why) {
  if (stopped) return;
  stopped = true;
  reason = why;
  stopped_code = error(why);
  changed();
}

void World::stop_if_all_blocked() {
  if (live > 0 && blocked >= live) stop("deadlock: every rank is blocked in MPI");
}

int in_call(const char* function, const std::function<int(Here&)>& work) {
  std::unique_lock lock(world_lock);
  if (the_world == nullptr) return 1;
  World& world = *the_world;
  const int rank = identity.rank;
  if (rank < 0) return world.error("a thread without a rank: it must adopt a thread_identity()");
  if (identity.adopted && world.options.level < mpi::ThreadLevel::serialized) {
    return world.error("a thread that is not the main thread, below MPI_THREAD_SERIALIZED");
  }
  if (world.stopped) return world.stopped_code;
  if (world.options.fail) {
    if (const int code = world.options.fail(function, rank); code != 0) return code;
  }
  Here here{world, lock, rank};
  return work(here);
}

void run_ranks(int ranks, const std::function<void(int rank)>& body, const RunOptions& options) {
  start_world(ranks, options);
  const mpi::Library* before = mpi::exchange_library(&fake_library(options.large_counts));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank, std::cref(body));
  for (std::thread& thread : threads) thread.join();
  mpi::exchange_library(before);
  const std::unique_ptr<World> world = end_world();
  if (world->first_error != nullptr && !world->judged_by_test) {
    std::rethrow_exception(world->first_error);
  }
  if (world->judged_by_test) return;
  if (world->stopped) throw std::runtime_error(world->reason);
  if (!options.check_leaks) return;
  if (const std::string found = leaks(*world); !found.empty()) {
    throw std::logic_error("run_ranks: " + found + "free them before the ranks end");
  }
}

std::size_t live_communicators() {
  const std::lock_guard lock(world_lock);
  return the_world == nullptr ? 0 : the_world->communicators.size();
}

const mpi::Abi& abi() {
  static const mpi::Abi facts = mpi::abi_of(mpi::Family::standard, nullptr);
  return facts;
}

}  // namespace ropewalk::test
