// The Fortran entry points are one jump each, as in slots.cc. Until a slot is filled, it leads to a
// piece of code that asks where to go, and goes there with every register as it came: what is found
// may be a library's own function of that name, with arguments of any kind.
#include "fortran.hpp"

#define ROPEWALK_TEXT(symbol, ...) "ropewalk_entry " #symbol "\n"

// One asm statement: the compiler keeps no order between several, and a macro of the assembler has
// to come first.
asm(R"(
.macro ropewalk_entry name
  .pushsection .text
  .p2align 4
  .globl \name
  .type \name, @function
\name:
)"
#if defined(__x86_64__)
    R"(
  endbr64
  jmp *.Lslot_\name(%rip)
  .size \name, . - \name
.Lfirst_\name:
  endbr64
  lea .Lslot_\name(%rip), %r11
  jmp ropewalk_fortran_first
)"
#else
    R"(
  hint 34
  adrp x16, .Lslot_\name
  ldr x16, [x16, :lo12:.Lslot_\name]
  br x16
  .size \name, . - \name
.Lfirst_\name:
  hint 34
  adrp x17, .Lslot_\name
  add x17, x17, :lo12:.Lslot_\name
  b ropewalk_fortran_first
)"
#endif
    R"(
  .popsection
  .pushsection .data
.Lslot_\name:
  .quad .Lfirst_\name
  .popsection
.endm

.pushsection .data
.p2align 3
.globl ropewalk_fortran_slots
.hidden ropewalk_fortran_slots
ropewalk_fortran_slots:
.popsection

.pushsection .text
.p2align 4
.type ropewalk_fortran_first, @function
ropewalk_fortran_first:
)"
#if defined(__x86_64__)
    // The slot's address in r11; the caller's is on top of the stack. Six registers of arguments,
    // the number of those in vectors (rax), a static chain (r10).
    R"(
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  push %r10
  sub $136, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  mov %r11, %rdi
  mov 200(%rsp), %rsi
  call ropewalk_fortran_resolve
  mov %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  add $136, %rsp
  pop %r10
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  jmp *%r11
)"
#else
    // The slot's address is in x17, the caller's in x30. Saved are eight registers of arguments,
    // the place of a result (x8), and a static chain (x18).
    R"(
  stp x29, x30, [sp, #-224]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  stp x8, x18, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov x0, x17
  mov x1, x30
  bl ropewalk_fortran_resolve
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldp x8, x18, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  br x16
)"
#endif
    R"(
.size ropewalk_fortran_first, . - ropewalk_fortran_first
.popsection
)" ROPEWALK_FORTRAN_ENTRIES(ROPEWALK_TEXT) ROPEWALK_FORTRAN_WINDOWS(ROPEWALK_TEXT));
