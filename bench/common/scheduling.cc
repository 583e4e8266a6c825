// Autogroups and affinity of a benchmark; see scheduling.hpp.
#include "common/scheduling.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr const char* autogroup = "/proc/self/autogroup";  // "/autogroup-7 nice 0"

bool read_nice(int& nice) {
  std::ifstream file(autogroup);
  std::string group;
  std::string word;
  return static_cast<bool>(file >> group >> word >> nice);
}

bool write_nice(int nice) {
  std::ofstream file(autogroup);
  file << nice;
  file.flush();
  return file.good();
}

// What put_back_group() writes, ready before a signal may ask for it.
std::atomic<int> group_file{-1};
char group_text[16] = {};
constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void put_back_and_end(int number) {
  put_back_group();
  signal(number, SIG_DFL);
  raise(number);
}

// Only where nobody else, MPI say, has a handler of its own.
void handle_ending_signals() {
  for (const int number : ending_signals) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    signal(number, put_back_and_end);
  }
}

void prepare_to_put_back(int nice) {
  const std::string text = fmt::format("{}", nice);
  std::memcpy(group_text, text.c_str(), std::min(text.size() + 1, sizeof group_text - 1));
  group_file.store(::open(autogroup, O_WRONLY | O_CLOEXEC));
  handle_ending_signals();
}

std::vector<int> cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> found;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) found.push_back(core);
  }
  return found;
}

// {0,1,2,5}: "0-2,5".
std::string runs(const std::vector<int>& values) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end + 1 < values.size() && values[end + 1] == values[end] + 1) ++end;
    parts.push_back(end == i ? fmt::format("{}", values[i])
                             : fmt::format("{}-{}", values[i], values[end]));
    i = end + 1;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

RaisedGroup::RaisedGroup(const Ranks& ranks, bool wanted) {
  const bool known = read_nice(before_);
  // Every rank has read the value to put back before the first one changes it.
  ranks.barrier();
  if (!known) {
    state_ = "no autogroups";
  } else if (!wanted) {
    state_ = "not wanted";
  } else {
    prepare_to_put_back(before_);
    const bool raised = write_nice(-20);
    if (!raised) close(group_file.exchange(-1));
    state_ = raised ? "nice -20" : "not allowed";
  }
}

RaisedGroup::~RaisedGroup() { put_back_group(); }

void put_back_group() noexcept {
  const int file = group_file.exchange(-1);
  if (file < 0) return;
  // Where the kernel refuses, nothing can be done.
  [[maybe_unused]] const auto written = write(file, group_text, std::strlen(group_text));
  close(file);
}

std::string allowed_cores() { return runs(cores()); }

std::string pin_to_share(int node_rank, int node_size) {
  const std::vector<int> all = cores();
  const std::size_t count = all.size();
  if (count == 0) return "";
  const std::size_t n = static_cast<std::size_t>(std::max(node_size, 1));
  const std::size_t k = static_cast<std::size_t>(node_rank);
  const std::size_t begin = std::min(k * count / n, count - 1);
  const std::size_t end = std::max((k + 1) * count / n, begin + 1);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = begin; i < std::min(end, count); ++i) CPU_SET(all[i], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Error(ErrorCode::system,
                fmt::format("--pin: sched_setaffinity: {}; leave --pin out", std::strerror(errno)));
  }
  return allowed_cores();
}

}  // namespace ropewalk::bench
