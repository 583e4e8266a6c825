// This mechanism is a file on a mounted hugetlbfs, the second of the paper's two ways (Boyle et al.
// 2017, section II.C). The file never has a name where the kernel can do without one (O_TMPFILE);
// elsewhere the name is removed at once.
#include <fcntl.h>
#include <mntent.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "memory/mechanism.hpp"

namespace ropewalk::memory {
namespace {

struct CloseMounts {
  void operator()(FILE* file) const noexcept { endmntent(file); }
};

// Lists where hugetlbfs with pages of 2 MiB is mounted.
std::vector<std::string> find_mounts() {
  std::vector<std::string> found;
  const std::unique_ptr<FILE, CloseMounts> mounts(setmntent("/proc/self/mounts", "re"));
  if (!mounts) return found;
  mntent entry{};
  char text[4096];
  while (getmntent_r(mounts.get(), &entry, text, sizeof text) != nullptr) {
    struct statfs information {};
    if (std::string(entry.mnt_type) != "hugetlbfs") continue;
    if (statfs(entry.mnt_dir, &information) != 0) continue;
    if (information.f_bsize == static_cast<long>(os::huge_2m)) found.emplace_back(entry.mnt_dir);
  }
  return found;
}

os::Descriptor open_nameless(const std::string& directory) {
  os::Descriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string path = directory + "/ropewalk-XXXXXX";
  file.reset(mkostemp(path.data(), O_CLOEXEC));
  if (file) unlink(path.c_str());
  return file;
}

}  // namespace

Block hugetlbfs_file_block(std::size_t bytes, const NumaPlacement& placement) {
  for (const std::string& directory : find_mounts()) {
    os::Descriptor file = open_nameless(directory);
    if (!file || os::grow_file(file.get(), bytes) != 0) continue;
    return map_hugetlb_file(std::move(file), bytes, placement);
  }
  Block block;
  block.backing.shortfall =
      "no hugetlbfs with 2 MiB pages that this user may write is mounted; as root: `mount -t "
      "hugetlbfs -o pagesize=2M,mode=1777 none /dev/hugepages`";
  return block;
}

}  // namespace ropewalk::memory
