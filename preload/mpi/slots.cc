// The exported entry points are one jump each, so that every register and stack argument reaches
// whatever the slot leads to unchanged, handles of 4 bytes as well as of 8.
//
// A slot has hidden visibility (the jump must not find another library's), and is an ordinary
// pointer: an indirect function would be resolved before MPI is ready to be asked what it is.
#include "functions.hpp"

namespace ropewalk::preload {
namespace {

// What a slot leads to before the first call.
template <auto Slot, class Result, class... Arguments>
Result first_call(Arguments... arguments) {
  fill_slots();
  return (*Slot)(arguments...);
}
template <auto Slot, class Result, class... Arguments>
constexpr auto first(Result (*)(Arguments...)) {
  return &first_call<Slot, Result, Arguments...>;
}

}  // namespace
}  // namespace ropewalk::preload

#if defined(__x86_64__)
#define ROPEWALK_JUMP(slot) "endbr64\n jmp *" slot "(%rip)\n"
#else
#define ROPEWALK_JUMP(slot) \
  "hint 34\n adrp x16, " slot "\n ldr x16, [x16, :lo12:" slot "]\n br x16\n"
#endif

using ropewalk::preload::Count;
using ropewalk::preload::Word;

#define ROPEWALK_ENTRY_OF(prefix, slot, name, parameters)                                          \
  extern "C" {                                                                                     \
  extern int(*slot##name) parameters __attribute__((visibility("hidden")));                        \
  int(*slot##name)                                                                                 \
      parameters = ropewalk::preload::first<&slot##name>(static_cast<int(*) parameters>(nullptr)); \
  }                                                                                                \
  asm(".pushsection .text\n .p2align 4\n .globl " prefix #name "\n .type " prefix #name            \
      ", @function\n" prefix #name ":\n" ROPEWALK_JUMP(#slot #name) ".size " prefix #name          \
                                                                    ", . - " prefix #name          \
                                                                    "\n .popsection\n");
#define ROPEWALK_ENTRY(name, parameters) ROPEWALK_ENTRY_OF("MPI_", ropewalk_slot_, name, parameters)
#define ROPEWALK_PROFILED_ENTRY(name, parameters) \
  ROPEWALK_ENTRY_OF("PMPI_", ropewalk_profiled_slot_, name, parameters)
ROPEWALK_ALL_FUNCTIONS(ROPEWALK_ENTRY)
ROPEWALK_PROFILED_FUNCTIONS(ROPEWALK_PROFILED_ENTRY)
