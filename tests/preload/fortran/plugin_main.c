/* plugin_main LIBRARY: calls the main of a Fortran program that was linked as a library, loaded for
   itself alone with its MPI, as Python loads a module. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** words) {
  void* library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  int (*program)(int, char**) = (int (*)(int, char**))dlsym(library, "main");
  return program(1, words);
}
