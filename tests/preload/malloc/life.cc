// This program allocates at every time of its life and ends in the way it is told: malloc-life
// return|exit|_exit|quick_exit|abort|kill|exec|thread|where BYTES|learn|plugin FILE
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace {

constexpr std::size_t large = 3 << 20;

bool works(std::size_t bytes) {
  auto* block = static_cast<unsigned char*>(std::malloc(bytes));
  if (block == nullptr) return false;
  std::memset(block, 0x5A, bytes);
  block = static_cast<unsigned char*>(std::realloc(block, 2 * bytes));
  const bool right = block != nullptr && block[0] == 0x5A && block[bytes - 1] == 0x5A;
  std::free(block);
  return right;
}

void must_work(const char* when) {
  if (works(large) && works(100)) return;
  std::fprintf(stderr, "malloc fails %s\n", when);
  _exit(99);
}

// It is freed after main, by another destructor than the one that made it.
struct Static {
  Static() : kept(static_cast<char*>(std::malloc(large))) {
    must_work("before main");
    std::memset(kept, 1, large);
  }
  ~Static() {
    must_work("in a destructor");
    if (kept[large - 1] != 1) _exit(98);
    std::free(kept);
  }
  char* kept;
};
Static before_main;
thread_local std::unique_ptr<char[]> of_thread;

__attribute__((constructor(101))) void first() { must_work("in an early constructor"); }
__attribute__((destructor(101))) void last() { must_work("in a late destructor"); }

const char* state() {
  using State = const char*();
  auto* function = reinterpret_cast<State*>(dlsym(RTLD_DEFAULT, "ropewalk_malloc_state"));
  return function == nullptr ? "absent" : function();
}

bool in_arena(const void* block) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char line[512];
  bool found = false;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    void* begin = nullptr;
    void* end = nullptr;
    if (std::sscanf(line, "%p-%p", &begin, &end) != 2) continue;
    if (block >= begin && block < end) found = std::strstr(line, "ropewalk-arena") != nullptr;
  }
  std::fclose(maps);
  return found;
}

// Tells where the blocks of a place lie in the end when they are freed and not communicated.
const char* where_in_the_end() {
  const char* where = "";
  for (int round = 0; round < 2; ++round) {
    void* blocks[50];
    for (void*& block : blocks) block = std::malloc(large);
    where = in_arena(blocks[49]) ? "arena" : "libc";
    for (void* block : blocks) std::free(block);
  }
  return where;
}

int plugin(const char* file) {
  void* library = dlopen(file, RTLD_NOW);
  if (library == nullptr) return 2;
  using Make = void*(std::size_t);
  auto* make = reinterpret_cast<Make*>(dlsym(library, "plugin_block"));
  auto* block = static_cast<char*>(make(large));
  dlclose(library);
  std::puts(in_arena(block) ? "arena" : "libc");
  const bool right = block[large - 1] == 'p';
  std::free(block);
  return right ? 0 : 3;
}

}  // namespace

int main(int count, char** arguments) {
  must_work("in main");
  const std::string how = count > 1 ? arguments[1] : "return";
  std::atexit([] { must_work("in an exit handler"); });
  std::at_quick_exit([] { must_work("in a quick exit handler"); });
  if (how == "where") {
    const std::unique_ptr<char[]> block(new char[std::strtoull(arguments[2], nullptr, 10)]);
    std::printf("%s\n%s\n", in_arena(block.get()) ? "arena" : "libc", state());
  }
  if (how == "learn") std::printf("%s\n%s\n", where_in_the_end(), state());
  if (how == "plugin") return plugin(arguments[2]);
  if (how == "exit") std::exit(4);
  if (how == "_exit") _exit(5);
  if (how == "quick_exit") std::quick_exit(6);
  if (how == "abort") std::abort();
  if (how == "kill") std::raise(SIGKILL);
  if (how == "exec") execl(arguments[0], arguments[0], "exit", nullptr);
  if (how == "thread") {
    std::thread([] {
      of_thread = std::make_unique<char[]>(large);
      must_work("in a thread");
    }).join();
    std::thread([] { std::exit(7); }).join();  // while main waits
  }
  return 0;
}
