// On which NUMA nodes the kernel is to put the pages of a range.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace ropewalk::os {

// The following two return an errno, 0 for success. The range begins at a page.

// Pages of the range are made on these nodes from now on, the nearest of them first, whoever
// touches them: a range of a file tells the file. With `move`, pages that lie elsewhere are moved
// there, as far as the kernel can. Where the nodes are full, the kernel takes others: with a
// binding (MPOL_BIND) it would kill the process instead. More than one node needs Linux 5.15
// (EINVAL); EPERM is the filter of a container.
int prefer_nodes(void* address, std::size_t bytes, const std::vector<int>& nodes,
                 bool move) noexcept;
// The range no longer says anything about nodes.
int prefer_no_node(void* address, std::size_t bytes) noexcept;

// Lists the nodes that this thread may have memory of (cpuset); nothing where the kernel does not
// tell.
std::optional<std::vector<int>> allowed_nodes();

}  // namespace ropewalk::os
