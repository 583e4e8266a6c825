// This file finds where each Fortran entry leads. A name is looked up when it is first called: the
// libraries that hold the Fortran names may be loaded long after the first call from C.
//
// A process may hold a function of one of these names that has nothing to do with this MPI: a
// library's own helper, a sequential stand-in for MPI. What a caller would reach without the
// drop-in is what it reaches with it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fortran.hpp"
#include "fortran_files.hpp"
#include "mpi/library.hpp"
#include "windows.hpp"

extern "C" {
extern void* ropewalk_fortran_slots[] __attribute__((visibility("hidden")));
extern int (*ropewalk_slot_Barrier)(ropewalk::preload::Word) __attribute__((visibility("hidden")));
}

namespace ropewalk::preload::fortran {
namespace {

struct Found {
  void* function = nullptr;
  bool for_all = false;  // for every caller, not this one alone
};

bool is_ours(const void* function) { return file_of(function).base == file_of(&entries).base; }

void* symbol_of_others(const std::string& file, const char* name) {
  void* function = symbol_in(file, name);
  return function == nullptr || is_ours(function) ? nullptr : function;
}

// Finds the function that the caller would reach without us: the next one that the whole process
// sees, or one that was loaded along with the caller.
Found find(const char* name, const void* caller) {
  if (void* function = dlsym(RTLD_NEXT, name)) return {function, true};
  if (void* function = symbol_of_others(file_of(caller).path, name)) return {function, false};
  for (const std::string& file : loaded_files()) {
    if (void* function = symbol_of_others(file, name)) return {function, false};
  }
  return {};
}

// Whether a function is an MPI's own: then its file holds the function's PMPI name as well. A
// tool's wrapper or a stand-in for MPI is not.
bool is_mpi(const Entry& entry, const void* function) {
  const FileOf file = file_of(function);
  const std::string name = entry.name;
  const bool upper = name[0] == 'M';
  const auto has = [&](const std::string& profiling) {
    return file_of(symbol_in(file.path, profiling.c_str())).base == file.base;
  };
  return has((upper ? "P" : "p") + name) || has("pmpir" + name.substr(3));
}

// Open MPI 3 to 5 give mpi_f08's buffers as addresses, as mpif.h's. A later one may describe them.
bool has_plain_f08() {
  char text[8192] = "";  // more than any MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  mpi::library().call.get_library_version(text, &length);
  const char* version = std::strstr(text, "Open MPI v");
  return version != nullptr && std::atoi(version + std::strlen("Open MPI v")) <= 5;
}

bool is_served(const Entry& entry) {
  if (entry.converter == nullptr) return false;
  const Binding found = binding();
  if (found == Binding::none || (found == Binding::wide_integers && entry.integers)) return false;
  if (mpi::family() != mpi::Family::openmpi) return entry.f08 && !entry.buffers;
  return !entry.f08 || !entry.buffers || has_plain_f08();
}

[[noreturn]] void fail(const char* name) {
  std::fprintf(stderr, "ropewalk: undefined symbol: %s: no library of this process has it\n", name);
  _exit(127);  // as the dynamic loader does
}

void* lead(std::size_t index, const void* caller) {
  const Entry& entry = entries[index];
  const Found next = find(entry.name, caller);
  if (next.function == nullptr) fail(entry.name);
  const bool known = is_mpi(entry, next.function);
  void* target = next.function;
  if (known) {
    if (entry.converter == nullptr) note_window();
    fill_slots();
    // Before MPI_Init there is nothing to serve, and MPI cannot be asked.
    if (!mpi::loaded() || !mpi::initialized() || mpi::finalized()) return target;
    const bool on = ropewalk_slot_Barrier == &serve::Barrier;
    if (on && is_served(entry)) target = entry.converter;
  }
  if (known || next.for_all) {
    // A thread that still reads the old value comes here again.
    __atomic_store_n(&ropewalk_fortran_slots[index], target, __ATOMIC_RELEASE);
  }
  return target;
}

}  // namespace
}  // namespace ropewalk::preload::fortran

// Called by fortran_slots.cc for an entry whose slot is not filled yet, with its slot and the
// address it was called from. Returns where to go on.
extern "C" __attribute__((visibility("hidden"))) void* ropewalk_fortran_resolve(
    void** slot, const void* caller) noexcept {
  using namespace ropewalk::preload;
  return fortran::lead(static_cast<std::size_t>(slot - ropewalk_fortran_slots), caller);
}
