// host PLUGIN: opens it for itself alone and runs it; knows nothing of MPI.
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  auto* run = reinterpret_cast<int (*)(int)>(dlsym(plugin, "test_run"));
  return run == nullptr ? 2 : run(0);
}
