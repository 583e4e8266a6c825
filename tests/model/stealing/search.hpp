// Every interleaving of workers that share out short loops, run by the real code of src/schedule.
//
// Workers are fibers. Before each load and each compare-exchange of a word a worker stops, and the
// search chooses who goes on and what it sees. Words are relaxed atomics as C++ has them: a load,
// and an exchange that fails, may see any value that is not older than one the worker has seen in
// this word; an exchange succeeds on the newest only. A barrier between two loops shows everybody
// the newest of all words. Stores need no choice of their own, since loads may see older values.
//
// States are merged that have the same words, as far as somebody may still see them, the same
// iterations run, and workers that have read the same since their last call of take(): before it
// they remember nothing but the loop they are in.
#pragma once

#include <cstddef>
#include <string>

namespace ropewalk::model::stealing {

struct Case {
  int workers;
  int sharing;  // the last of them begin with blocks
  int blocks;
  int loops;
};

struct Result {
  std::string violation;  // empty: none
  std::string schedule;   // that led there
  std::size_t runs = 0;
  std::size_t states = 0;
};

Result explore(const Case& about);

}  // namespace ropewalk::model::stealing
