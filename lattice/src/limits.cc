#include "limits.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ropewalk/error.hpp"
#include "ropewalk/tuning.hpp"

namespace ropewalk::lattice::detail {

namespace {

double value_of(const std::vector<Threshold>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Threshold::name);
  if (found == all.end()) {
    throw Error(ErrorCode::internal, "lattice: no threshold has the name " + std::string(name));
  }
  return static_cast<double>(found->value);
}

OperatorLimits from_table() {
  const std::vector<Threshold> all = thresholds({});
  return {.streamed_links_bytes = value_of(all, "lattice.streamed_links_bytes"),
          .amortising_extent = static_cast<int>(value_of(all, "lattice.amortising_extent")),
          .cached_bytes = value_of(all, "lattice.cached_bytes"),
          .cached_slices_bytes = value_of(all, "lattice.cached_slices_bytes"),
          .cores_a_cache = static_cast<int>(value_of(all, "lattice.cores_a_cache"))};
}

}  // namespace

const OperatorLimits& limits() {
  static const OperatorLimits taken = from_table();
  return taken;
}

}  // namespace ropewalk::lattice::detail
