// The tags of a halo's messages: no other halo that lives on the same endpoints has them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "mpi/mpi.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::halo {

// A proposal is the first tag t of a row that is free on this rank, as {t, -t}. The largest of both
// over the ranks tells whether all ranks propose the same.
using TagProposal = std::array<std::int64_t, 2>;
TagProposal propose_tags(transport::LaneSet&, int count);

// They are given back at the end of this object. Each rank may end its halos at any time and in any
// order.
class Tags {
 public:
  Tags() = default;
  // Takes `count` tags in a row, the same on all ranks. It is collective where ranks have proposed
  // different tags. `largest` is the largest of all proposals. Throws Error(unsupported) on every
  // rank where there are not so many.
  Tags(mpi::Comm, std::shared_ptr<transport::LaneSet>, int count, const TagProposal& largest);
  Tags(Tags&& other) noexcept;
  Tags& operator=(Tags&& other) noexcept;
  ~Tags();

  int first() const noexcept { return first_; }

 private:
  std::shared_ptr<transport::LaneSet> lanes_;  // null where there are no tags
  int first_ = 0;
};

}  // namespace ropewalk::halo
