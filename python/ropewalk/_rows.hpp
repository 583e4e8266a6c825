// Structs of the library as dicts of Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

namespace ropewalk::python {

// A member of a struct, and its key in the dict.
template <class Struct, class Value>
struct Member {
  const char* key;
  Value Struct::*value;
};

template <class Struct, class... Values>
nanobind::dict dict_of(const Struct& from, Member<Struct, Values>... members) {
  nanobind::dict made;
  ((made[members.key] = from.*members.value), ...);
  return made;
}

template <class Part>
std::vector<nanobind::dict> rows_of(const std::vector<Part>& parts,
                                    nanobind::dict (*row_of)(const Part&)) {
  std::vector<nanobind::dict> rows;
  rows.reserve(parts.size());
  for (const Part& part : parts) rows.push_back(row_of(part));
  return rows;
}

}  // namespace ropewalk::python
