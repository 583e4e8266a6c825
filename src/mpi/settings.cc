#include "mpi/settings.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "os/hash.hpp"
#include "ropewalk/error.hpp"
#include "settings/shared.hpp"
#include "topology/signature.hpp"

namespace ropewalk::mpi {
namespace {

// Why a rank does not use the profile; cut to fit.
struct Refusal {
  std::array<char, 512> text;
};

// A malformed setting has errors of its own, on all ranks.
Refusal refusal() noexcept {
  Refusal told{};
  try {
    const std::string why = topology::refusal_of_profile();
    std::copy_n(why.begin(), std::min(why.size(), told.text.size() - 1), told.text.begin());
  } catch (const std::exception&) {
    told = {};
  }
  return told;
}

std::string use_of(const Refusal& told, std::size_t rank) {
  const std::string on = " on rank " + std::to_string(rank);
  if (told.text.front() == '\0') return "used" + on;
  return "refused" + on + " (" + told.text.data() + ")";
}

// Every rank gets here, since all have seen the same numbers.
void require_same_use(Comm comm, std::size_t ranks) {
  const Refusal own = refusal();
  std::vector<Refusal> all(ranks);
  all_gather(&own, all.data(), sizeof own, comm);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    if (all[rank].text == all[0].text) continue;
    throw Error(ErrorCode::argument,
                "ROPEWALK_PROFILE: found " + use_of(all[rank], rank) + " and " + use_of(all[0], 0) +
                    ", expected one kind of machine; start ranks on equal machines, unset it, or "
                    "set ROPEWALK_PROFILE_MACHINE=any for all of them");
  }
}

}  // namespace

std::uint64_t settings_fingerprint() noexcept {
  const Refusal own = refusal();
  return os::hash(own.text.data(), settings::fingerprint());
}

void require_same_settings(Comm comm, std::span<const std::uint64_t> fingerprints) {
  const auto differs = [&](std::uint64_t one) { return one != fingerprints[0]; };
  if (std::ranges::none_of(fingerprints, differs)) return;
  const settings::AllTold own = settings::tell();
  std::vector<settings::AllTold> all(fingerprints.size());
  all_gather(&own, all.data(), sizeof own, comm);
  settings::require_same(all);
  require_same_use(comm, fingerprints.size());
}

}  // namespace ropewalk::mpi
