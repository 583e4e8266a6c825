// The table of settings (ropewalk/settings.hpp) for `ropewalk config`; needs no MPI.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>
#include <vector>

#include "_core.hpp"
#include "_rows.hpp"
#include "ropewalk/settings.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

nb::dict row_of(const Setting& setting) {
  using T = Setting;
  return dict_of(setting, Member{"name", &T::name}, Member{"type", &T::type},
                 Member{"expected", &T::expected}, Member{"default", &T::default_value},
                 Member{"default_meaning", &T::default_meaning}, Member{"scope", &T::scope},
                 Member{"read_by", &T::read_by}, Member{"page", &T::page},
                 Member{"meaning", &T::meaning});
}

std::vector<nb::dict> rows() { return rows_of(all_settings(), row_of); }

// Returns the value that a text means, and why it means none.
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
