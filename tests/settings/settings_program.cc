// Ranks that are processes under an MPI have different environments: all get an error that names
// the variable and both values, and can then make a communicator all the same.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/process.hpp"

namespace {

using ropewalk::Collectives;
using ropewalk::Communicator;

constexpr const char* expected =
    "ROPEWALK_MOVEMENTS: found \"nodes\" on rank 1 and \"auto\" on rank 0";

bool is_refused() {
  try {
    const Collectives made(Communicator::world());
  } catch (const ropewalk::Error& error) {
    if (std::string(error.what()).starts_with(expected)) return true;
    std::fprintf(stderr, "found: %s\n", error.what());
  }
  return false;
}

int run() {
  const Communicator world = Communicator::world();
  if (world.rank() == 1) setenv("ROPEWALK_MOVEMENTS", "nodes", 1);
  const bool refused = is_refused();
  setenv("ROPEWALK_MOVEMENTS", "nodes", 1);
  Collectives made(world);
  int sum = 1;
  made.allreduce(&sum, &sum, 1, ropewalk::ElementType::int32, ropewalk::ReductionOp::sum);
  const bool works = sum == world.size();
  if (!refused || !works) std::fprintf(stderr, "refused %d, works %d\n", refused, works);
  return refused && works ? 0 : 1;
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    return run();
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
