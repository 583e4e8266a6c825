// Which MPI this process has, and where each slot leads from then on.
#include <dlfcn.h>

#include <mutex>

#include "collectives/state.hpp"
#include "datatypes.hpp"
#include "functions.hpp"
#include "messages.hpp"
#include "mpi/library.hpp"
#include "onesided.hpp"
#include "settings/value.hpp"
#include "start.hpp"
#include "statistics.hpp"

using ropewalk::preload::Count;
using ropewalk::preload::Word;

#define ROPEWALK_SLOT(name, parameters) \
  extern "C" int(*ropewalk_slot_##name) parameters __attribute__((visibility("hidden")));
ROPEWALK_ALL_FUNCTIONS(ROPEWALK_SLOT)
#undef ROPEWALK_SLOT
#define ROPEWALK_SLOT(name, parameters) \
  extern "C" int(*ropewalk_profiled_slot_##name) parameters __attribute__((visibility("hidden")));
ROPEWALK_PROFILED_FUNCTIONS(ROPEWALK_SLOT)
#undef ROPEWALK_SLOT

namespace ropewalk::preload {

Next next;

namespace {

// MPI's own functions of the names with PMPI, where a slot leads if it does not lead to `serve`.
struct Profiled {
#define ROPEWALK_POINTER(name, parameters) int(*name) parameters = nullptr;
  ROPEWALK_PROFILED_FUNCTIONS(ROPEWALK_POINTER)
#undef ROPEWALK_POINTER
};
Profiled profiled;

const void* object_of(void* function) {
  Dl_info info{};
  return function != nullptr && dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
}

// Where MPI's functions are: behind us in the order of the process, or, for an MPI that a plug-in
// loaded for itself alone, in its own file. A tool has MPI_Init as well; PMPI_Init is the MPI's.
class Symbols {
 public:
  Symbols() {
    if (dlsym(RTLD_NEXT, "PMPI_Init") != nullptr || !mpi::loaded()) return;
    file_ = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }
  void* find(const char* name) const {
    return file_ != nullptr ? dlsym(file_, name) : dlsym(RTLD_NEXT, name);
  }
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* file_ = nullptr;
};

// A tool that takes MPI_* for itself and sits between us and MPI wants to see every call.
bool has_tool(const Symbols& symbols) {
  const void* next_object = object_of(symbols.find("MPI_Allreduce"));
  return next_object != nullptr && next_object != object_of(symbols.find("PMPI_Allreduce"));
}

template <class Function>
void lead(Function*& slot, Function* served, Function* following, bool on) {
  // A function of MPI 4 in an older library is always ours: there is nothing to pass it on to.
  slot = on || following == nullptr ? served : following;
}

void fill_all(bool on) {
#define ROPEWALK_LEAD(name, parameters) lead(ropewalk_slot_##name, &serve::name, next.name, on);
  ROPEWALK_SERVED_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
#define ROPEWALK_LEAD(name, parameters) \
  lead(ropewalk_profiled_slot_##name, &serve::name, profiled.name, on);
  ROPEWALK_WINDOW_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
}

void fill_onesided(bool on) {
#define ROPEWALK_LEAD(name, parameters)                    \
  lead(ropewalk_slot_##name, &serve::name, next.name, on); \
  lead(ropewalk_profiled_slot_##name, &serve::name, profiled.name, on);
  ROPEWALK_ONESIDED_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
}

void fill_init(bool on) {
#define ROPEWALK_LEAD(name, parameters) lead(ropewalk_slot_##name, &serve::name, next.name, on);
  ROPEWALK_INIT_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
}

void fill_completions(bool on) {
#define ROPEWALK_LEAD(name, parameters)                    \
  lead(ropewalk_slot_##name, &serve::name, next.name, on); \
  lead(ropewalk_profiled_slot_##name, &serve::name, profiled.name, on);
  ROPEWALK_COMPLETING_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
}

void fill_messages(bool on) {
#define ROPEWALK_LEAD(name, parameters) lead(ropewalk_slot_##name, &serve::name, next.name, on);
  ROPEWALK_SENDING_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
#define ROPEWALK_LEAD(name, parameters)                    \
  lead(ropewalk_slot_##name, &serve::name, next.name, on); \
  lead(ropewalk_profiled_slot_##name, &serve::name, profiled.name, on);
  ROPEWALK_RECEIVING_FUNCTIONS(ROPEWALK_LEAD)
#undef ROPEWALK_LEAD
  fill_completions(on);
}

}  // namespace

bool disabled() {
  const settings::Value value = settings::read(settings::Id::disable);
  return value.malformed || value.is("on");  // somebody has tried to
}

void fill_slots() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static bool filled = false;
  if (filled) return;
  const Symbols symbols;
#define ROPEWALK_FIND(name, parameters) symbols.find(next.name, "MPI_" #name);
  ROPEWALK_ALL_FUNCTIONS(ROPEWALK_FIND)
#undef ROPEWALK_FIND
#define ROPEWALK_FIND(name, parameters) symbols.find(profiled.name, "PMPI_" #name);
  ROPEWALK_PROFILED_FUNCTIONS(ROPEWALK_FIND)
#undef ROPEWALK_FIND
  const bool on = !disabled() && mpi::loaded() && !has_tool(symbols);
  if (mpi::loaded()) handle_bits = mpi::library().abi.int_handles ? Word{0xffffffff} : ~Word{0};
  if (on) read_statistics_setting();
  fill_all(on);
  fill_init(on);
  fill_messages(false);
  fill_onesided(on && onesided::wanted());
  filled = true;
}

void pass_messages() { fill_messages(false); }
void take_messages() { fill_messages(true); }
void take_completions() { fill_completions(true); }

void pass_everything() {
  fill_all(false);
  fill_init(false);
  if (!messages::go_on()) pass_messages();
  // The program may end them in a callback of MPI_Finalize.
  if (!onesided::any()) fill_onesided(false);
  // What the arena gave out is the arena's to take back.
  ropewalk_slot_Free_mem = &serve::Free_mem;
}

void end_serving() noexcept {
  print_statistics();
  collectives::wait_for_workers();  // of what callbacks have started
  pass_everything();
}

}  // namespace ropewalk::preload
