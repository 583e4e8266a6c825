// Calls with 64-bit counts that start or set up a collective, for an MPI that has only the forms
// with ints. A program finds the forms with 64-bit counts in the drop-in and calls them, as mpi4py
// does, whatever the MPI behind it has.
//
// MPI may read an array of counts until the call is over, or the request is freed, which nobody
// tells. So the ints are kept for ever, each array once: most programs have the same few arrays
// again and again. One that has others in each call grows by them.
#pragma once

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>

#include "ints.hpp"
#include "local_mpi.hpp"
#include "mpi/functions.hpp"
#include "sides.hpp"

namespace ropewalk::preload {

// An array of counts of one of the program's calls, and what MPI may read of it. `length()` is only
// asked for where there is no function that takes the array as it is.
template <class Length>
struct CountArray {
  const Count* first;
  Length length;
};
template <class Length>
const int* counts(const int* array, Length) {
  return array;
}
template <class Length>
CountArray<Length> counts(const Count* array, Length length) {
  return {array, length};
}

// How many numbers the arrays of a call have that tell of all ranks, of the ranks of this group, of
// all ranks unless this one sends in place, and of all ranks at the root alone.
inline auto of_ranks(Word comm) {
  return [=] { return group_sizes({clean(comm)}).other; };
}
inline auto of_own_ranks(Word comm) {
  return [=] { return group_sizes({clean(comm)}).own; };
}
inline auto of_ranks_unless_in_place(const void* data, Word comm) {
  return [=] { return collectives::is_in_place(data) ? 0 : group_sizes({clean(comm)}).other; };
}
inline auto of_root(Word comm, int root) {
  return [=] { return blocks_at_root({clean(comm)}, root); };
}
inline auto of_sources(Word comm) {
  return [=] { return degrees({clean(comm)}).in; };
}
inline auto of_destinations(Word comm) {
  return [=] { return degrees({clean(comm)}).out; };
}

// Returns ints that are kept for ever, or null where they do not fit. Throws std::bad_alloc.
const int* kept_ints(const Count* array, std::size_t length);

namespace by_ints {

template <class Argument>
Argument as_given(Argument argument) {
  return argument;
}
template <class Length>
const Count* as_given(CountArray<Length> array) {
  return array.first;
}

template <class Argument>
Argument as_ints(Argument argument, bool&) {
  return argument;
}
inline int as_ints(Count count, bool& fit) {
  fit = fit && fits_int(count);
  return static_cast<int>(count);
}
template <class Length>
const int* as_ints(CountArray<Length> array, bool& fit) {
  if (array.first == nullptr) return nullptr;
  const int* kept = kept_ints(array.first, array.length());
  fit = fit && kept != nullptr;
  return kept;
}

}  // namespace by_ints

// Calls `given`, or `with_ints` where MPI has no such function and the numbers allow it. Otherwise
// it raises an error with the text `what`.
template <class Given, class WithInts, class... Arguments>
int call_either(const char* what, Word comm, Given* given, WithInts* with_ints,
                Arguments... arguments) {
  if (given != nullptr) return given(by_ints::as_given(arguments)...);
  if constexpr (!std::is_same_v<Given, WithInts>) {
    try {
      bool fit = with_ints != nullptr;
      if (fit) {
        const std::tuple ints{by_ints::as_ints(arguments, fit)...};
        if (fit) return std::apply(with_ints, ints);
      }
    } catch (const std::exception&) {  // no memory
    }
  }
  return raise({clean(comm)}, what);
}

}  // namespace ropewalk::preload
