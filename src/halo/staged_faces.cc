#include "halo/staged_faces.hpp"

#include <algorithm>

#include "halo/kernel_copy.hpp"
#include "halo/regions.hpp"
#include "halo/shown_memory.hpp"
#include "ropewalk/memory.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// Tells whether most of the data lies on huge pages. It takes milliseconds for a large array.
bool is_huge(const void* data, std::size_t bytes) {
  try {
    const Inspection found = inspect(data, bytes);
    std::size_t huge = 0;
    for (const PageUse& use : found.pages) huge += use.page_bytes >= huge_page ? use.bytes : 0;
    return huge > found.resident_bytes / 2;
  } catch (const Error&) {  // it has gaps, which nobody reads
    return false;
  }
}

// Whether the kernel's copy is worth it, for faces that it can copy.
class KernelWorth {
 public:
  KernelWorth(const HaloRequest& request, node::Team& team)
      : request_(request), limits_(tuning::halo_limits(team.size(), team.waits().crowded())) {}

  bool operator()(const Link& link) const {
    const std::size_t bytes = link_bytes(request_, link);
    if (bytes / runs_of(link) < limits_.kernel_run_bytes) return false;
    if (bytes >= limits_.kernel_small_pages_bytes) return true;
    return bytes >= limits_.kernel_bytes && is_huge(link);
  }

 private:
  // Runs of bytes that the kernel reads the face in.
  std::size_t runs_of(const Link& link) const {
    if (request_.form != Form::fields) return 1;
    std::size_t runs = 0;
    for (const Field& field : request_.fields) {
      if (!takes_part(field, link.offset)) continue;
      const kernels::StridedCopy packing = pack(field, sent_towards(field, link.offset), nullptr);
      runs += has_small_gaps(packing) ? 1 : packing.bytes() / packing.run_bytes();
    }
    return runs;
  }

  bool is_huge(const Link& link) const {
    if (request_.form != Form::fields) {
      const std::size_t i = face_index(link.offset);
      return halo::is_huge(request_.faces.send[i], request_.faces.bytes[i]);
    }
    return std::all_of(request_.fields.begin(), request_.fields.end(), [&](const Field& field) {
      return !takes_part(field, link.offset) || halo::is_huge(field.data, array_bytes(field));
    });
  }

  const HaloRequest& request_;
  tuning::HaloLimits limits_;
};

}  // namespace

std::size_t turn_bytes(std::size_t face_bytes) {
  constexpr std::size_t line = 128;  // as far apart as flags: no line has bytes of both
  return (face_bytes + line - 1) / line * line;
}

StagedFaces staged_faces(const HaloRequest& request, const HaloFacts& facts) {
  StagedFaces out;
  out.at.assign(static_cast<std::size_t>(facts.links.directions), StagedFaces::none);
  if (facts.reach == Reach::mapped || facts.memory->attaches()) return out;
  const bool all = facts.reach == Reach::by_owner || !facts.team->cma();
  const KernelWorth worth(request, *facts.team);
  for (const Link& link : facts.near.present) {
    const std::size_t bytes = link.to_itself ? 0 : link_bytes(request, link);
    if (bytes == 0 || (!all && worth(link))) continue;
    out.at[static_cast<std::size_t>(link.towards)] = out.bytes;
    out.bytes += 2 * turn_bytes(bytes);
  }
  return out;
}

}  // namespace ropewalk::halo
