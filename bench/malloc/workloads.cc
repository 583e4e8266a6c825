// These programs do little but allocate. They are run with and without the malloc library
// (compare.py): malloc-workloads NAME repeats one of them for a fifth of a second or more and
// prints the median of the microseconds that one round took.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// The compiler is not to see that nobody reads it.
void keep(void* block) { __asm__ volatile("" : : "r"(block) : "memory"); }

void touch(std::size_t bytes, int times) {
  for (int i = 0; i < times; ++i) {
    void* block = std::malloc(bytes);
    std::memset(block, i, bytes);
    keep(block);
    std::free(block);
  }
}

// Has threads allocate and free batches of small blocks (threadtest of Hoard).
void batches(int threads) {
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([] {
      std::vector<void*> blocks(1000);
      for (int round = 0; round < 20; ++round) {
        for (void*& block : blocks) keep(block = std::malloc(64));
        for (void* block : blocks) std::free(block);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

// Random sizes, freed in another order, as a server does (larson).
void server(std::size_t largest) {
  static std::vector<void*> blocks(2000);
  std::minstd_rand random(1);
  for (int i = 0; i < 20000; ++i) {
    void*& block = blocks[random() % blocks.size()];
    std::free(block);
    const std::size_t bytes = 16 + random() % largest;
    block = std::malloc(bytes);
    std::memset(block, 0, std::min<std::size_t>(bytes, 64));
  }
}

void strings() {
  std::minstd_rand random(2);
  std::vector<std::string> words;
  for (int i = 0; i < 20000; ++i) {
    words.push_back(std::string(20 + random() % 30, 'a') + std::to_string(random()));
  }
  std::sort(words.begin(), words.end());
  std::map<std::string, int> tree;
  for (const std::string& word : words) tree[word] = 1;
}

void grow(std::size_t limit) {
  char* block = nullptr;
  for (std::size_t bytes = 64 * kib; bytes <= limit; bytes += bytes / 8) {
    block = static_cast<char*>(std::realloc(block, bytes));
    std::memset(block + bytes * 8 / 9, 1, bytes / 9);
    keep(block);
  }
  std::free(block);
}

void vectors() {
  std::vector<double> numbers;
  for (int i = 0; i < 2000000; ++i) numbers.push_back(i);
  keep(numbers.data());
}

void zeroed(std::size_t bytes) {
  auto* block = static_cast<char*>(std::calloc(1, bytes));
  for (std::size_t at = 0; at < bytes; at += 4096) keep(block + at), block[at] = 1;
  std::free(block);
}

// More live at once than is kept when freed: all of it is fresh, and nobody communicates it. By the
// second round the place is known for that.
void batch_of(std::size_t bytes, std::size_t sum) {
  std::vector<void*> blocks(sum / bytes);
  for (void*& block : blocks) {
    block = std::malloc(bytes);
    std::memset(block, 1, bytes);
    keep(block);
  }
  for (void* block : blocks) std::free(block);
}

// Searches a table that is hardly ever written.
void search_zeroes(std::size_t bytes) {
  auto* block = static_cast<volatile char*>(std::calloc(1, bytes));
  for (std::size_t at = 0; at < bytes; at += 4096) {
    if (block[at] != 0) std::abort();
  }
  std::free(const_cast<char*>(block));
}

void mixed() {
  static std::vector<void*> blocks(200);
  std::minstd_rand random(3);
  for (int i = 0; i < 200; ++i) {
    void*& block = blocks[random() % blocks.size()];
    std::free(block);
    const std::size_t bytes = 4 * kib + random() % (random() % 4 == 0 ? mib : 64 * kib);
    block = std::malloc(bytes);
    std::memset(block, 1, bytes);
  }
}

const std::map<std::string, std::function<void()>> workloads{
    {"batches-1", [] { batches(1); }},
    {"batches-4", [] { batches(4); }},
    {"server-1K", [] { server(kib); }},
    {"server-64K", [] { server(64 * kib); }},
    {"strings", strings},
    {"loop-256K", [] { touch(256 * kib, 100); }},
    {"loop-1M", [] { touch(mib, 30); }},
    {"loop-8M", [] { touch(8 * mib, 5); }},
    {"loop-64M", [] { touch(64 * mib, 1); }},
    {"loop-256M", [] { touch(256 * mib, 1); }},
    {"realloc-64M", [] { grow(64 * mib); }},
    {"vector", vectors},
    {"calloc-1M", [] { zeroed(mib); }},
    {"calloc-16M", [] { zeroed(16 * mib); }},
    {"mixed-1M", mixed},
    {"batch-1M", [] { batch_of(mib, 400 * mib); }},
    {"batch-16M", [] { batch_of(16 * mib, 400 * mib); }},
    {"search-16M", [] { search_zeroes(16 * mib); }},
    {"search-512M", [] { search_zeroes(512 * mib); }},
};

// Runs once in a process, since it needs pages that nobody has used before.
double fresh(std::size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  void* block = std::malloc(bytes);
  std::memset(block, 1, bytes);
  keep(block);
  const auto end = std::chrono::steady_clock::now();
  std::free(block);
  return std::chrono::duration<double, std::micro>(end - start).count();
}

double median_round(const std::function<void()>& work, std::chrono::milliseconds at_least) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  work();  // warm
  for (const auto begin = Clock::now(); rounds.size() < 5 || Clock::now() - begin < at_least;) {
    const auto start = Clock::now();
    work();
    rounds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2),
                   rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  if (name == "list") {
    for (const auto& [one, work] : workloads) std::printf("%s\n", one.c_str());
    std::puts("fresh-3M\nfresh-64M\nfresh-512M");
    return 0;
  }
  if (name.rfind("fresh-", 0) == 0) {
    std::printf("%.1f\n", fresh(std::strtoull(name.c_str() + 6, nullptr, 10) * mib));
    return 0;
  }
  const auto found = workloads.find(name);
  if (found == workloads.end()) {
    std::fprintf(stderr, "usage: malloc-workloads list|NAME\n");
    return 2;
  }
  std::printf("%.1f\n", median_round(found->second, std::chrono::milliseconds(200)));
  return 0;
}
