// subarray_program ROUNDS SEED: random exchanges of parts of arrays.
#include "irregular/random_subarrays.hpp"
#include "support/random_program.hpp"

int main(int argc, char** argv) {
  return ropewalk::test::random_program(argc, argv, 1, ropewalk::test::random_subarrays);
}
