// These tests check the signature of a machine, by which a profile recognises it. They read it from
// folders that imitate /sys and /proc.
#include "topology/signature.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace ropewalk::topology {
namespace {

namespace fs = std::filesystem;

// Trees makes folders that imitate /sys and /proc of a machine with two CPUs, and deletes them at
// the end.
class Trees {
 public:
  Trees() {
    if (mkdtemp(root_.data()) == nullptr) throw std::runtime_error("no temporary folder");
    write("sys/devices/system/cpu/online", "0-1");
    for (const std::string cpu : {"0", "1"}) {
      const std::string folder = "sys/devices/system/cpu/cpu" + cpu;
      write(folder + "/topology/core_id", cpu);
      write(folder + "/topology/thread_siblings_list", cpu);
      cache(folder + "/cache/index0/", "1", "Data", "32K", cpu);
      cache(folder + "/cache/index1/", "1", "Instruction", "32K", cpu);
      cache(folder + "/cache/index2/", "2", "Unified", "1M", cpu);
      cache(folder + "/cache/index3/", "3", "Unified", "32M", "0-1");
    }
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [never]");
    write("proc/cpuinfo", "processor : 0\nmodel name\t: Fast CPU #7\nflags : x\n");
    write("proc/sys/kernel/osrelease", "6.12.4-cloud");
  }
  ~Trees() { fs::remove_all(root_); }
  Trees(const Trees&) = delete;
  Trees& operator=(const Trees&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text << '\n';
  }
  std::vector<MachineFact> read() const { return signature(root_ + "/sys", root_ + "/proc"); }
  std::string value(std::string_view name) const {
    for (const MachineFact& fact : read()) {
      if (fact.name == name) return fact.value;
    }
    return "";
  }

 private:
  void cache(const std::string& folder, const char* level, const char* type, const char* size,
             const std::string& cpus) const {
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "size", size);
    write(folder + "shared_cpu_list", cpus);
  }

  std::string root_ = testing::TempDir() + "signature-test-XXXXXX";  // tests run side by side
};

std::string text_of(const std::vector<MachineFact>& facts) {
  std::string text = "# a profile\nnode.cma_bytes = 32K\n";
  for (const MachineFact& fact : facts) {
    text += std::string(fact.name) + " = " + fact.value + "   # seen\n";
  }
  return text;
}

TEST(Signature, SaysWhatMeasurementsDependOn) {
  const Trees trees;
  EXPECT_EQ(trees.value("machine.cpu"), "Fast CPU  7");
  EXPECT_EQ(trees.value("machine.cores"), "2, of 2 CPUs");
  EXPECT_EQ(trees.value("machine.caches"), "L1 32K for 1, L2 1024K for 1, L3 32768K for 2");
  EXPECT_EQ(trees.value("machine.numa"), "1 of 2 CPUs");
  EXPECT_EQ(trees.value("machine.pages"), "4K, huge madvise, shared never");
  EXPECT_EQ(trees.value("machine.kernel"), "6.1 or later, ptrace_scope none");
  EXPECT_EQ(trees.read().size(), signature_names().size());
}

TEST(Signature, ChangesWithTheKernelOnlyWhereMechanismsDo) {
  const Trees trees;
  const std::string before = trees.value("machine.kernel");
  trees.write("proc/sys/kernel/osrelease", "7.0.1");
  EXPECT_EQ(trees.value("machine.kernel"), before);
  trees.write("proc/sys/kernel/osrelease", "5.14.0-70.el9");
  EXPECT_EQ(trees.value("machine.kernel"), "before 6.1, ptrace_scope none");
  trees.write("proc/sys/kernel/yama/ptrace_scope", "1");
  EXPECT_EQ(trees.value("machine.kernel"), "before 6.1, ptrace_scope 1");
}

TEST(Signature, IsOneLineOfEachFactEvenWhereNothingIsKnown) {
  for (const MachineFact& fact : signature("/nowhere", "/nowhere")) {
    EXPECT_FALSE(fact.value.empty()) << fact.name;
    EXPECT_EQ(fact.value.find_first_of("#\n"), std::string::npos) << fact.value;
  }
}

TEST(Difference, NamesEachFactThatIsOtherwise) {
  const Trees trees;
  const std::string profile = text_of(trees.read());
  EXPECT_EQ(difference(profile, trees.read()), "");
  EXPECT_EQ(difference("node.cma_bytes = 32K\n", trees.read()), "");
  trees.write("proc/cpuinfo", "model name : Slow CPU\n");
  EXPECT_EQ(difference(profile, trees.read()),
            "machine.cpu is \"Fast CPU  7\" in the profile, and \"Slow CPU\" here");
  trees.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_EQ(difference(profile, trees.read()),
            "machine.cpu is \"Fast CPU  7\" in the profile, and \"Slow CPU\" here; machine.pages "
            "is \"4K, huge madvise, shared never\" in the profile, and \"4K, huge never, shared "
            "never\" here");
}

}  // namespace
}  // namespace ropewalk::topology
