#include "halo/tags.hpp"

#include <string>
#include <utility>

#include "ropewalk/error.hpp"

namespace ropewalk::halo {

namespace {

TagProposal proposal(const transport::TagSpace& space, int from, int count) {
  const int found = space.find(from, count);
  return {found, -found};
}

// Finds tags that are free on every rank. Each rank looks for some from the same tag on. Where they
// do not come to the same, all look again from the highest that any has found, and once from the
// first tag of all.
int agree_on_tags(mpi::Comm comm, const transport::TagSpace& space, int count,
                  TagProposal largest) {
  for (bool anew = false;;) {
    const auto highest = static_cast<int>(largest[0]);
    if (largest[0] == -largest[1] && highest != space.end()) return highest;
    if (highest == space.end() && std::exchange(anew, true)) return highest;
    largest = proposal(space, highest == space.end() ? space.first() : highest, count);
    mpi::all_reduce(largest, mpi::Combine::max, comm);
  }
}

}  // namespace

TagProposal propose_tags(transport::LaneSet& lanes, int count) {
  if (count == 0) return {};
  return proposal(lanes.tags(), lanes.tags().next(), count);
}

Tags::Tags(mpi::Comm comm, std::shared_ptr<transport::LaneSet> lanes, int count,
           const TagProposal& largest) {
  if (count == 0) return;
  transport::TagSpace& space = lanes->tags();
  const int found = agree_on_tags(comm, space, count, largest);
  if (found == space.end()) {
    throw Error(ErrorCode::unsupported,
                "halo: no " + std::to_string(count) + " tags in a row are left of the " +
                    std::to_string(space.end() - space.first()) +
                    " that the halos of these endpoints share, expected one a direction; end "
                    "halos that are not needed, or make more endpoints");
  }
  space.take(found, count);
  first_ = found;
  lanes_ = std::move(lanes);
}

Tags::Tags(Tags&& other) noexcept
    : lanes_(std::exchange(other.lanes_, nullptr)), first_(other.first_) {}

Tags& Tags::operator=(Tags&& other) noexcept {
  std::swap(lanes_, other.lanes_);
  std::swap(first_, other.first_);
  return *this;
}

Tags::~Tags() {
  if (lanes_ != nullptr) lanes_->tags().give_back(first_);
}

}  // namespace ropewalk::halo
