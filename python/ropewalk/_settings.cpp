// The table of settings (ropewalk/settings.hpp) for `ropewalk config`; needs no MPI.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "_core.hpp"
#include "ropewalk/settings.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

nb::dict row_of(const Setting& setting) {
  nb::dict row;
  row["name"] = setting.name;
  row["type"] = setting.type;
  row["expected"] = setting.expected;
  row["default"] = setting.default_value;
  row["default_meaning"] = setting.default_meaning;
  row["scope"] = setting.scope;
  row["read_by"] = setting.read_by;
  row["page"] = setting.page;
  row["meaning"] = setting.meaning;
  return row;
}

std::vector<nb::dict> rows() {
  std::vector<nb::dict> all;
  for (const Setting& setting : all_settings()) all.push_back(row_of(setting));
  return all;
}

// The value that a text means, and why it means none.
std::tuple<std::string, std::string> value_of(const std::string& name, const std::string& text) {
  const SettingValue found = setting(name, text);
  return {found.value, found.error};
}

}  // namespace

void define_settings(nb::module_& module) {
  module.def("settings", &rows);
  module.def("setting", &value_of, "name"_a, "text"_a);
  module.def("unknown_setting", &unknown_setting, "name"_a);
}

}  // namespace ropewalk::python
