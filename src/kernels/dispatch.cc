// This file chooses the copy of the kernels that this machine runs.
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/kernels.hpp"
#include "kernels/table.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"

namespace ropewalk {
namespace kernels {

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

const Table& table_of(InstructionSet set) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return avx512::table;
  if (set == InstructionSet::avx2) return avx2::table;
#endif
  static_cast<void>(set);
  return baseline::table;
}

InstructionSet best() noexcept {
  if (available(InstructionSet::avx512)) return InstructionSet::avx512;
  return available(InstructionSet::avx2) ? InstructionSet::avx2 : InstructionSet::baseline;
}

void require_available(InstructionSet set, const char* where) {
  if (!available(set)) {
    throw Error(ErrorCode::unsupported, std::string(where) + ": " + name(set) +
                                            " is not available on this machine; the best is " +
                                            name(best()));
  }
}

InstructionSet choose() {
  const settings::Value wish = settings::get(settings::Id::isa);
  for (const InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (!wish.is(ropewalk::name(set))) continue;
    require_available(set, "ROPEWALK_ISA");
    return set;
  }
  return best();
}

struct Choice {
  InstructionSet set;
  const Table& table;
};
const Choice& choice() {  // an exception leaves it unmade: the next call throws again
  static const Choice made = [] {
    const InstructionSet set = choose();
    return Choice{set, table_of(set)};
  }();
  return made;
}

ReduceFunction entry(const Table& table, ElementType type, ReductionOp op) noexcept {
  if (!supports(op, type)) return nullptr;
  return table.reduce[static_cast<int>(type)][static_cast<int>(op)];
}

void require_count(const char* argument, int count) {
  if (count < 1) {
    throw Error(ErrorCode::argument, std::string(argument) + ": found " + std::to_string(count) +
                                         ", expected 1 or more; pass at least one buffer");
  }
}

}  // namespace

ReduceFunction find(ElementType type, ReductionOp op) { return entry(choice().table, type, op); }

ReduceFunction find(ElementType type, ReductionOp op, InstructionSet set) {
  require_available(set, "set");
  return entry(table_of(set), type, op);
}

AverageFunction find_average(ElementType type) {
  return choice().table.average[static_cast<int>(type)];
}

AverageFunction find_average(ElementType type, InstructionSet set) {
  require_available(set, "set");
  return table_of(set).average[static_cast<int>(type)];
}

void reduce(void* const* outputs, int output_count, const void* const* inputs, int input_count,
            std::size_t count, ElementType type, ReductionOp op, Stores stores) {
  require_count("output_count", output_count);
  require_count("input_count", input_count);
  const ReduceFunction function = find(type, op);
  if (function == nullptr) {
    throw Error(ErrorCode::argument, std::string("op: ") + ropewalk::name(op) +
                                         " is not defined on " + ropewalk::name(type) +
                                         "; MPI 4.1, section 6.9.2, has the table");
  }
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

}  // namespace kernels

const char* name(InstructionSet set) {
  constexpr const char* names[instruction_set_count] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(set)];
}

bool available(InstructionSet set) noexcept {
#if defined(__x86_64__)
  static const bool v3 = kernels::has_v3();
  static const bool v4 = kernels::has_v4();
  if (set == InstructionSet::avx512) return v4;
  if (set == InstructionSet::avx2) return v3;
#endif
  return set == InstructionSet::baseline;
}

InstructionSet instruction_set() { return kernels::choice().set; }

}  // namespace ropewalk
