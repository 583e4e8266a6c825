// Thresholds and explanations (ropewalk/tuning.hpp) for `ropewalk explain`; needs no MPI.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "_core.hpp"
#include "_rows.hpp"
#include "ropewalk/tuning.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

nb::dict row_of(const Threshold& threshold) {
  using T = Threshold;
  return dict_of(
      threshold, Member{"name", &T::name}, Member{"unit", &T::unit}, Member{"value", &T::value},
      Member{"given_by", &T::given_by}, Member{"default", &T::default_value},
      Member{"least", &T::least}, Member{"most", &T::most}, Member{"asked_by", &T::asked_by},
      Member{"meaning", &T::meaning}, Member{"origin", &T::origin}, Member{"machine", &T::machine});
}

nb::dict row_of(const Alternative& alternative) {
  using T = Alternative;
  return dict_of(alternative, Member{"path", &T::path}, Member{"how", &T::how},
                 Member{"detail", &T::detail}, Member{"possible", &T::possible},
                 Member{"taken", &T::taken}, Member{"why", &T::why},
                 Member{"threshold", &T::threshold}, Member{"algorithm", &T::algorithm});
}

nb::dict row_of(const Change& change) {
  using T = Change;
  return dict_of(change, Member{"bytes", &T::bytes}, Member{"path", &T::path},
                 Member{"how", &T::how}, Member{"threshold", &T::threshold});
}

nb::dict row_of(const Explanation& explanation) {
  using T = Explanation;
  nb::dict all =
      dict_of(explanation, Member{"path", &T::path}, Member{"how", &T::how},
              Member{"detail", &T::detail}, Member{"why", &T::why}, Member{"assumed", &T::assumed});
  all["alternatives"] = rows_of(explanation.alternatives, row_of);
  all["thresholds"] = rows_of(explanation.thresholds, row_of);
  all["smaller"] = rows_of(explanation.smaller, row_of);
  all["larger"] = rows_of(explanation.larger, row_of);
  return all;
}

Situation situation_of(const nb::dict& words) {
  return {.ranks = nb::cast<int>(words["ranks"]),
          .nodes = nb::cast<int>(words["nodes"]),
          .crowded = nb::cast<bool>(words["crowded"]),
          .private_memory = nb::cast<bool>(words["private_memory"]),
          .cma = nb::cast<bool>(words["cma"]),
          .xpmem = nb::cast<bool>(words["xpmem"]),
          .domains = nb::cast<int>(words["domains"]),
          .int_counts = nb::cast<bool>(words["int_counts"])};
}

std::vector<nb::dict> all_thresholds(const nb::dict& situation) {
  return rows_of(thresholds(situation_of(situation)), row_of);
}

nb::dict collective(const std::string& name, std::uint64_t bytes, const nb::dict& situation) {
  return row_of(explain_collective(name, bytes, situation_of(situation)));
}

nb::dict halo(const std::string& layout, const std::string& wanted, std::uint64_t bytes,
              const nb::dict& situation) {
  return row_of(explain_halo(layout, strategy(wanted), bytes, situation_of(situation)));
}

nb::dict row_of(const HaloTraffic& traffic) {
  using T = HaloTraffic;
  return dict_of(traffic, Member{"order", &T::order}, Member{"faces", &T::faces},
                 Member{"leaving", &T::leaving}, Member{"bytes", &T::bytes},
                 Member{"crossing", &T::crossing}, Member{"crossing_bytes", &T::crossing_bytes});
}

std::vector<nb::dict> traffic(const std::vector<int>& extents, std::uint64_t bytes,
                              const nb::dict& situation) {
  return rows_of(halo_traffic(extents, bytes, situation_of(situation)), row_of);
}

}  // namespace

void define_tuning(nb::module_& module) {
  module.def("thresholds", &all_thresholds, "situation"_a);
  module.def("refused_profile", &refused_profile);
  module.def("explained_collectives", &explained_collectives);
  module.def("explained_name", &explained_name, "collective"_a);
  module.def("explained_size", &explained_size, "collective"_a);
  module.def("explain_collective", &collective, "name"_a, "bytes"_a, "situation"_a);
  module.def("explain_halo", &halo, "layout"_a, "strategy"_a, "bytes"_a, "situation"_a);
  module.def("halo_traffic", &traffic, "extents"_a, "bytes"_a, "situation"_a);
}

}  // namespace ropewalk::python
