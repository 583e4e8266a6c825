// exchange_program ROUNDS SEED: random exchanges along lists of neighbors.
#include "irregular/random_exchanges.hpp"
#include "support/random_program.hpp"

int main(int argc, char** argv) {
  return ropewalk::test::random_program(argc, argv, 1, ropewalk::test::random_exchanges);
}
