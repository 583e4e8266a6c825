// The smallest C++ user: includes every public header, uses the memory, prints the version.
#include <cstdio>

#include "ropewalk/communicator.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/ropewalk.h"

int main() {
  ropewalk::Buffer<double> buffer(1000);
  for (double value : buffer) {
    if (value != 0.0) return 1;
  }
  try {
    ropewalk::page_source("no such source");
    return 2;  // an exception must cross the border of the library and be caught by its type
  } catch (const ropewalk::Error& error) {
    if (error.code() != ropewalk::ErrorCode::argument) return 3;
  }
  std::puts(rw_version());
}
