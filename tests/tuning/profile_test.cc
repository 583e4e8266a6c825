// Tests profiles: the meaning of their lines, the errors for wrong lines, and that all ranks use
// the same profile.
#include "tuning/profile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"
#include "settings/value.hpp"
#include "support/thread_mpi.hpp"
#include "topology/signature.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::tuning {
namespace {

std::string error_of(const std::string& text) {
  try {
    const Profile profile("p", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "";
}

TEST(Profile, GivesTheValuesOfItsLines) {
  const Profile profile("p",
                        "# measured somewhere\n"
                        "\n"
                        "node.cma_bytes = 32K   # the kernel is slow\r\n"
                        "\tnode.inlined_bytes=1024\n"
                        "node.two_level_bytes = 1TiB");
  EXPECT_EQ(profile.line(Id::node_cma)->value, 32768U);
  EXPECT_EQ(profile.line(Id::node_cma)->number, 3);
  EXPECT_EQ(profile.line(Id::node_inlined)->value, 1024U);
  EXPECT_EQ(profile.line(Id::node_two_level)->value, std::size_t{1} << 40);
  EXPECT_FALSE(profile.line(Id::node_piece).has_value());
  const Values values({4, false, 64U << 20}, profile);
  EXPECT_EQ(values[Id::node_cma], 32768U);
  EXPECT_EQ(values[Id::node_piece], 8192U);
  EXPECT_EQ(values[Id::node_streaming], 8U << 20);
}

TEST(Profile, SaysWhichLineIsWrongAndWhatIsExpected) {
  EXPECT_EQ(error_of("node.cma_bytes 32K"),
            "ROPEWALK_PROFILE: p:1: found \"node.cma_bytes 32K\", expected NAME = VALUE; correct "
            "it");
  EXPECT_EQ(error_of("\n\nnode.cma_byte = 32K"),
            "ROPEWALK_PROFILE: p:3: \"node.cma_byte\" is unknown, expected a name that `ropewalk "
            "explain thresholds` lists; did you mean node.cma_bytes?");
  EXPECT_EQ(error_of("nonsense of another kind altogether = 1"),
            "ROPEWALK_PROFILE: p:1: \"nonsense of another kind altogether\" is unknown, expected a "
            "name that `ropewalk explain thresholds` lists; leave it out");
  for (const char* value : {"1K", "", "64M 1", "65M", "-8192", "8192.0", "many"}) {
    EXPECT_EQ(error_of(std::string("node.piece_bytes = ") + value),
              "ROPEWALK_PROFILE: p:1: node.piece_bytes: found \"" + std::string(value) +
                  "\", expected bytes, 4K to 64M; correct it");
  }
  EXPECT_EQ(error_of("node.piece_bytes = 8K\nnode.piece_bytes = 8K"),
            "ROPEWALK_PROFILE: p:2: node.piece_bytes is given on line 1 already, expected once; "
            "leave one out");
  EXPECT_EQ(error_of("# nothing\n"), "");
}

TEST(Profile, TakesNotesThatChangeNoValue) {
  const Profile profile("p",
                        "machine.cpu = any = thing\n"
                        "measured.node.cma_bytes = time above/below: 4K 0.9\n"
                        "cost.ranks = 2\n"
                        "cost.allreduce.arena.mapped = 64:0.3 4096:0.8\n"
                        "node.cma_bytes = 32K\n");
  EXPECT_EQ(profile.line(Id::node_cma)->value, 32768U);
}

TEST(Profile, SaysWhichNoteIsWrong) {
  EXPECT_EQ(error_of("\nmachine.color = blue"),
            "ROPEWALK_PROFILE: p:2: \"machine.color\" is unknown, expected one of machine.cpu, "
            "machine.cores, machine.caches, machine.numa, machine.pages, machine.kernel; leave it "
            "out");
  EXPECT_EQ(error_of("measured.node.cma_byte = 1"),
            "ROPEWALK_PROFILE: p:1: \"node.cma_byte\" is unknown, expected a name that `ropewalk "
            "explain thresholds` lists; did you mean node.cma_bytes?");
  EXPECT_EQ(error_of("cost.ranks ="),
            "ROPEWALK_PROFILE: p:1: cost.ranks: found nothing, expected text; write it anew with "
            "`ropewalk tune`, or leave the line out");
  EXPECT_EQ(error_of("machine.cpu = a\n\nmachine.cpu = a"),
            "ROPEWALK_PROFILE: p:3: machine.cpu is given on line 1 already, expected once; leave "
            "one out");
}

TEST(Trial, IsTheProfileOfItsThread) {
  const std::size_t before = limits_for(2, false).cma_bytes;
  {
    const Trial outer("node.cma_bytes = 32K");
    EXPECT_EQ(limits_for(2, false).cma_bytes, 32768U);
    {
      const Trial inner("node.cma_bytes = 64K");
      EXPECT_EQ(limits_for(2, false).cma_bytes, 65536U);
    }
    EXPECT_EQ(limits_for(2, false).cma_bytes, 32768U);
    std::thread([&] { EXPECT_EQ(limits_for(2, false).cma_bytes, before); }).join();
  }
  EXPECT_EQ(limits_for(2, false).cma_bytes, before);
  EXPECT_THROW(Trial("node.cma_bytes = no"), Error);
}

TEST(Sizes, AreWrittenShortAndExactly) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(5184), "5184");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(65536), "64K");
  EXPECT_EQ(size_text(std::size_t{1} << 40), "1T");
}

// ---- ranks, each with an environment of its own

thread_local const char* profile_here = nullptr;
thread_local const char* nodes_here = nullptr;    // ROPEWALK_NODES
thread_local const char* machine_here = nullptr;  // ROPEWALK_PROFILE_MACHINE

const char* look_up(const char* name) {
  if (std::string_view(name) == "ROPEWALK_NODES") return nodes_here;
  if (std::string_view(name) == "ROPEWALK_PROFILE_MACHINE") return machine_here;
  return std::string_view(name) == "ROPEWALK_PROFILE" ? profile_here : nullptr;
}

class With {
 public:
  explicit With(const char* path, const char* nodes = nullptr, const char* machine = nullptr)
      : before_(settings::replace_environment(&look_up)) {
    profile_here = path;
    machine_here = machine;
    nodes_here = nodes;
  }
  With(const With&) = delete;
  With& operator=(const With&) = delete;
  ~With() { settings::replace_environment(before_); }

 private:
  settings::Lookup before_;
};

// This file is gone at the end. Its name is never used again: contents are read once.
class File {
 public:
  explicit File(const std::string& text) {
    const int file = mkstemp(path_.data());
    EXPECT_GE(file, 0);
    close(file);
    std::ofstream(path_) << text;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_ = testing::TempDir() + "ropewalk-profile-XXXXXX";
};

// Returns the path of an allreduce of 4 KiB in the arenas.
Path path_of_allreduce(const Collectives& made) {
  auto& communicator = const_cast<Collectives&>(made);
  Buffer<float> data(1024);
  communicator.allreduce(in_place, data.data(), data.size(), ElementType::float32,
                         ReductionOp::sum);
  return communicator.last_path();
}

TEST(ProfileOfRanks, ChangesTheirPath) {
  const File file("node.inlined_bytes = 4K\n");
  test::run_ranks(2, [&](int) {
    EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::mapped);
    const With profile(file.path());
    EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::inlined);
    EXPECT_EQ(limits_for(2, false).one_shot_bytes, 4096U);
  });
}

// Returns the path of an allgather of 16 bytes a rank, between two pretended nodes of two ranks.
Path path_over_nodes(const char* profile) {
  const With environment(profile, "2");
  Collectives communicator(Communicator::world());
  EXPECT_EQ(communicator.nodes(), 2);
  const Buffer<std::uint64_t> send(2);
  Buffer<std::uint64_t> receive(8);
  communicator.allgather(send.data(), receive.data(), 16);
  return communicator.last_path();
}

TEST(ProfileOfRanks, ChangesWhatMpiServesOverNodes) {
  const File file("nodes.allgather_bytes = 64\n");
  test::run_ranks(4, [&](int) {
    EXPECT_EQ(path_over_nodes(nullptr), Path::mpi);
    EXPECT_EQ(path_over_nodes(file.path()), Path::nodes);
  });
}

TEST(ProfileOfRanks, IsComparedByItsContents) {
  const File one("node.inlined_bytes = 4K\n");
  const File same("node.inlined_bytes = 4K\n");
  test::run_ranks(2, [&](int rank) {
    const With profile(rank == 0 ? one.path() : same.path());
    EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::inlined);
  });
}

std::vector<std::string> errors_of(const std::vector<const char*>& paths) {
  std::vector<std::string> errors(paths.size());
  test::run_ranks(static_cast<int>(paths.size()), [&](int rank) {
    const With profile(paths[static_cast<std::size_t>(rank)]);
    try {
      const Collectives made(Communicator::world());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return errors;
}

TEST(ProfileOfRanks, ThatDiffersIsAnErrorOnAll) {
  const File one("node.inlined_bytes = 4K\n");
  const File other("node.inlined_bytes = 2K\n");
  const std::string expected = std::string("ROPEWALK_PROFILE: found \"") + other.path() +
                               "\" on rank 2 and \"" + one.path() +
                               "\" on rank 0, expected the same on all ranks; give all of them a "
                               "file with the same contents";
  EXPECT_EQ(errors_of({one.path(), one.path(), other.path()}),
            std::vector<std::string>(3, expected));
  for (const std::string& error : errors_of({nullptr, one.path()})) {
    EXPECT_EQ(error.find("ROPEWALK_PROFILE: found \""), 0U) << error;
  }
}

// The lines of this machine's signature, with another processor where one is given.
std::string machine_lines(const char* processor = nullptr) {
  std::string lines;
  for (const topology::MachineFact& fact : topology::signature()) {
    const bool other = processor != nullptr && fact.name == "machine.cpu";
    lines += std::string(fact.name) + " = " + (other ? processor : fact.value) + "\n";
  }
  return lines;
}

TEST(ProfileOfRanks, OfThisMachineIsUsed) {
  const File file(machine_lines() + "node.inlined_bytes = 4K\n");
  test::run_ranks(2, [&](int) {
    const With profile(file.path());
    EXPECT_EQ(topology::refusal_of_profile(), "");
    EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::inlined);
  });
}

TEST(ProfileOfRanks, OfAnotherMachineLeavesTheDefaults) {
  const File file(machine_lines("Other CPU") + "node.inlined_bytes = 4K\n");
  test::run_ranks(2, [&](int) {
    {
      const With profile(file.path());
      EXPECT_EQ(topology::refusal_of_profile().find("machine.cpu is \"Other CPU\" in the profile"),
                0U);
      EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::mapped);
    }
    const With anywhere(file.path(), nullptr, "any");
    EXPECT_EQ(topology::refusal_of_profile(), "");
    EXPECT_EQ(path_of_allreduce(Collectives(Communicator::world())), Path::inlined);
  });
}

TEST(ProfileOfRanks, OfTheMachineOfSomeRanksIsAnErrorOnAll) {
  const File file(machine_lines() + "node.inlined_bytes = 4K\n");
  std::vector<topology::MachineFact> other = topology::signature();
  other[0].value = "Other CPU";
  std::vector<std::string> errors(3);
  test::run_ranks(3, [&](int rank) {
    const With profile(file.path());
    topology::replace_signature(rank == 2 ? &other : nullptr);
    try {
      const Collectives made(Communicator::world());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
    topology::replace_signature(nullptr);
  });
  const std::string expected = "ROPEWALK_PROFILE: found refused on rank 2 (machine.cpu is \"" +
                               topology::signature()[0].value +
                               "\" in the profile, and \"Other CPU\" here) and used on rank 0, "
                               "expected one kind of machine; start ranks on equal machines, unset "
                               "it, or set ROPEWALK_PROFILE_MACHINE=any for all of them";
  EXPECT_EQ(errors, std::vector<std::string>(3, expected));
}

TEST(ProfileOfRanks, OfAnotherMachineMustBeUnderstood) {
  const File file(machine_lines("Other CPU") + "node.inlined_bytes = 6K\n");
  const std::vector<std::string> errors = errors_of({file.path(), file.path()});
  EXPECT_NE(errors[0].find("node.inlined_bytes: found \"6K\""), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(ProfileOfRanks, ThatCannotBeUnderstoodIsAnErrorOnAll) {
  const File wrong("node.inlined_bytes = 6K\n");
  const std::string expected = std::string("ROPEWALK_PROFILE: ") + wrong.path() +
                               ":1: node.inlined_bytes: found \"6K\", expected bytes, 0 to 5184; "
                               "correct it";
  EXPECT_EQ(errors_of({wrong.path(), wrong.path()}), std::vector<std::string>(2, expected));
  for (const std::string& error : errors_of({"/nowhere/profile", "/nowhere/profile"})) {
    EXPECT_EQ(error,
              "ROPEWALK_PROFILE: /nowhere/profile: No such file or directory (ENOENT), expected a "
              "file that can be read; correct the path, or unset it");
  }
}

}  // namespace
}  // namespace ropewalk::tuning
