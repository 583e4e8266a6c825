#include "mpi/settings.hpp"

#include <algorithm>
#include <vector>

#include "settings/shared.hpp"

namespace ropewalk::mpi {

void require_same_settings(Comm comm, std::span<const std::uint64_t> fingerprints) {
  const auto differs = [&](std::uint64_t one) { return one != fingerprints[0]; };
  if (std::ranges::none_of(fingerprints, differs)) return;
  const settings::AllTold own = settings::tell();
  std::vector<settings::AllTold> all(fingerprints.size());
  all_gather(&own, all.data(), sizeof own, comm);
  settings::require_same(all);
}

}  // namespace ropewalk::mpi
