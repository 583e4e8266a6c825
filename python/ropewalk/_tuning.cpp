// Thresholds and explanations (ropewalk/tuning.hpp) for `ropewalk explain`; needs no MPI.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "_core.hpp"
#include "ropewalk/tuning.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace ropewalk::python {
namespace {

nb::dict row_of(const Threshold& threshold) {
  nb::dict row;
  row["name"] = threshold.name;
  row["unit"] = threshold.unit;
  row["value"] = threshold.value;
  row["given_by"] = threshold.given_by;
  row["default"] = threshold.default_value;
  row["least"] = threshold.least;
  row["most"] = threshold.most;
  row["asked_by"] = threshold.asked_by;
  row["meaning"] = threshold.meaning;
  row["origin"] = threshold.origin;
  row["machine"] = threshold.machine;
  return row;
}

nb::dict row_of(const Alternative& alternative) {
  nb::dict row;
  row["path"] = alternative.path;
  row["how"] = alternative.how;
  row["detail"] = alternative.detail;
  row["possible"] = alternative.possible;
  row["taken"] = alternative.taken;
  row["why"] = alternative.why;
  row["threshold"] = alternative.threshold;
  return row;
}

nb::dict row_of(const Change& change) {
  nb::dict row;
  row["bytes"] = change.bytes;
  row["path"] = change.path;
  row["how"] = change.how;
  row["threshold"] = change.threshold;
  return row;
}

template <class Part>
std::vector<nb::dict> rows_of(const std::vector<Part>& parts) {
  std::vector<nb::dict> rows;
  for (const Part& part : parts) rows.push_back(row_of(part));
  return rows;
}

nb::dict dict_of(const Explanation& explanation) {
  nb::dict all;
  all["path"] = explanation.path;
  all["how"] = explanation.how;
  all["detail"] = explanation.detail;
  all["why"] = explanation.why;
  all["alternatives"] = rows_of(explanation.alternatives);
  all["thresholds"] = rows_of(explanation.thresholds);
  all["smaller"] = rows_of(explanation.smaller);
  all["larger"] = rows_of(explanation.larger);
  all["assumed"] = explanation.assumed;
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
  return rows_of(thresholds(situation_of(situation)));
}

nb::dict collective(const std::string& name, std::uint64_t bytes, const nb::dict& situation) {
  return dict_of(explain_collective(name, bytes, situation_of(situation)));
}

nb::dict halo(const std::string& layout, const std::string& wanted, std::uint64_t bytes,
              const nb::dict& situation) {
  return dict_of(explain_halo(layout, strategy(wanted), bytes, situation_of(situation)));
}

}  // namespace

void define_tuning(nb::module_& module) {
  module.def("thresholds", &all_thresholds, "situation"_a);
  module.def("explained_collectives", &explained_collectives);
  module.def("explained_name", &explained_name, "collective"_a);
  module.def("explained_size", &explained_size, "collective"_a);
  module.def("explain_collective", &collective, "name"_a, "bytes"_a, "situation"_a);
  module.def("explain_halo", &halo, "layout"_a, "strategy"_a, "bytes"_a, "situation"_a);
}

}  // namespace ropewalk::python
