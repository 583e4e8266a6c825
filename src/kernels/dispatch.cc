// Which copy of the kernels this machine runs.
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/kernels.hpp"
#include "kernels/table.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"

namespace ropewalk::kernels {

namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports asks the operating system too; older compilers do not know the names of
// the rest of x86-64-v3, which needs nothing of the system beyond AVX.
bool has_v3() noexcept {
  constexpr unsigned movbe = 1u << 22, f16c = 1u << 29;  // leaf 1, ECX
  constexpr unsigned lzcnt = 1u << 5;                    // leaf 0x80000001, ECX
  unsigned a = 0, b = 0, leaf1 = 0, extended = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &leaf1, &d) == 0) return false;
  if (__get_cpuid(0x80000001u, &a, &b, &extended, &d) == 0) return false;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && (leaf1 & movbe) != 0 &&
         (leaf1 & f16c) != 0 && (extended & lzcnt) != 0;
}

bool has_v4() noexcept {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

const Table& table_of(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::table;
  if (isa == Isa::avx2) return avx2::table;
#endif
  static_cast<void>(isa);
  return baseline::table;
}

Isa best() noexcept {
  if (available(Isa::avx512)) return Isa::avx512;
  return available(Isa::avx2) ? Isa::avx2 : Isa::baseline;
}

void require_available(Isa isa, const char* where) {
  if (!available(isa))
    throw Error(ErrorCode::unsupported, std::string(where) + ": " + name(isa) +
                                            " is not available on this machine; the best is " +
                                            name(best()));
}

Isa choose() {
  const settings::Value wish = settings::get(settings::Id::isa);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (!wish.is(name(isa))) continue;
    require_available(isa, "ROPEWALK_ISA");
    return isa;
  }
  return best();
}

struct Choice {
  Isa isa;
  const Table& table;
};
const Choice& choice() {  // an exception leaves it unmade: the next call throws again
  static const Choice made = [] {
    const Isa isa = choose();
    return Choice{isa, table_of(isa)};
  }();
  return made;
}

ReduceFunction entry(const Table& table, ElementType type, ReductionOp op) noexcept {
  if (!supports(op, type)) return nullptr;
  return table.reduce[static_cast<int>(type)][static_cast<int>(op)];
}

void require_count(const char* argument, int count) {
  if (count < 1)
    throw Error(ErrorCode::argument, std::string(argument) + ": found " + std::to_string(count) +
                                         ", expected 1 or more; pass at least one buffer");
}

}  // namespace

const char* name(Isa isa) {
  constexpr const char* names[isa_count] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

bool available(Isa isa) noexcept {
#if defined(__x86_64__)
  static const bool v3 = has_v3();
  static const bool v4 = has_v4();
  if (isa == Isa::avx512) return v4;
  if (isa == Isa::avx2) return v3;
#endif
  return isa == Isa::baseline;
}

Isa active_isa() { return choice().isa; }

ReduceFunction find(ElementType type, ReductionOp op) { return entry(choice().table, type, op); }

ReduceFunction find(ElementType type, ReductionOp op, Isa isa) {
  require_available(isa, "isa");
  return entry(table_of(isa), type, op);
}

AverageFunction find_average(ElementType type) {
  return choice().table.average[static_cast<int>(type)];
}

AverageFunction find_average(ElementType type, Isa isa) {
  require_available(isa, "isa");
  return table_of(isa).average[static_cast<int>(type)];
}

void reduce(void* const* outputs, int output_count, const void* const* inputs, int input_count,
            std::size_t count, ElementType type, ReductionOp op, Stores stores) {
  require_count("output_count", output_count);
  require_count("input_count", input_count);
  const ReduceFunction function = find(type, op);
  if (function == nullptr)
    throw Error(ErrorCode::argument, std::string("op: ") + ropewalk::name(op) +
                                         " is not defined on " + ropewalk::name(type) +
                                         "; MPI 4.1, section 6.9.2, has the table");
  function(outputs, output_count, inputs, input_count, count, stores);
}

void copy(void* to, const void* from, std::size_t bytes, Stores stores) {
  choice().table.copy(&to, 1, from, bytes, stores);
}

void copy(void* const* outputs, int output_count, const void* from, std::size_t bytes,
          Stores stores) {
  require_count("output_count", output_count);
  choice().table.copy(outputs, output_count, from, bytes, stores);
}

}  // namespace ropewalk::kernels
