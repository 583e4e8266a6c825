// windows_program ROUNDS SEED: random one-sided operations on three windows.
#include "messages/random_windows.hpp"
#include "support/random_program.hpp"

int main(int argc, char** argv) {
  return ropewalk::test::random_program(argc, argv, 3, ropewalk::test::random_windows);
}
