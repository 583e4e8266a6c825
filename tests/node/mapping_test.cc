// Tests how ranks that are processes map each other: what that leaves to the program of a limit of
// the address space, what a core dump holds, and which namespaces stand in the way.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "memory/child.hpp"
#include "memory/mapping_flags.hpp"
#include "node/peers.hpp"
#include "node/reclamation.hpp"
#include "node/team.hpp"
#include "os/mapping.hpp"
#include "ropewalk/memory.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

constexpr std::uint64_t limit = 6 * os::gib;
enum Exit {
  good = 0,
  not_here,
  no_limit,
  no_team,
  a_team,
  wrong_reason,
  left_mapped,
  too_much,
  no_memory
};

bool limit_addresses(std::uint64_t bytes) {
  rlimit value{};
  if (getrlimit(RLIMIT_AS, &value) != 0) return false;
  value.rlim_cur = bytes;
  return setrlimit(RLIMIT_AS, &value) == 0;
}

bool says(const std::string& reason, const char* text) {
  if (reason.find(text) != std::string::npos) return true;
  std::fprintf(stderr, "rank %d: found reason \"%s\", expected \"%s\"\n", forked_rank(),
               reason.c_str(), text);
  return false;
}

// The program's own next 2 GiB.
bool has_memory() {
  const os::Mapping block = os::reserve_range(2 * os::gib, os::page_bytes());
  return static_cast<bool>(block);
}

void expect_all(const std::vector<int>& codes, int wanted) {
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    EXPECT_EQ(codes[rank], wanted) << "rank " << rank;
  }
}

int works(node::Team* team, const std::string& reason) {
  if (team == nullptr) std::fprintf(stderr, "rank %d: %s\n", forked_rank(), reason.c_str());
  if (team == nullptr) return no_team;
  team->phases().barrier();
  // A slower rank may still look at this one's flags.
  meet(forked_ranks());
  return good;
}

// A team is made, of which `bytes` at most are mapped.
int expect_team(std::uint64_t bytes) {
  const std::uint64_t before = os::mapped_bytes();
  std::string reason;
  const auto team = node::Team::create(mpi::comm_world(), reason);
  if (team != nullptr && os::mapped_bytes() - before > bytes) return too_much;
  return has_memory() ? works(team.get(), reason) : no_memory;
}

// None is made, and no other rank's arena stays mapped.
int expect_no_team(const char* text) {
  Arena::process();
  const std::uint64_t before = os::mapped_bytes();
  std::string reason;
  const auto team = node::Team::create(mpi::comm_world(), reason);
  if (team != nullptr) return a_team;
  if (!says(reason, text)) return wrong_reason;
  if (os::mapped_bytes() > before + 64 * os::mib) return left_mapped;
  return has_memory() ? good : no_memory;
}

TEST(LimitedAddresses, AreSharedByTheRanksOfANode) {
  if (sanitized) GTEST_SKIP() << "sanitizers need the address space";
  const auto live = [] {
    setenv("MPI_LOCALNRANKS", "4", 1);
    return limit_addresses(limit) ? expect_team(limit / 2) : no_limit;
  };
  expect_all(run_forked(4, live), good);
}

// The launcher says nothing, or not the truth: each rank takes for itself what is meant for all.
TEST(LimitedAddresses, ThatDoNotSufficeLeaveNothingMapped) {
  if (sanitized) GTEST_SKIP() << "sanitizers need the address space";
  const auto live = [] {
    setenv("MPI_LOCALNRANKS", "1", 1);
    if (!limit_addresses(limit)) return static_cast<int>(no_limit);
    return expect_no_team("address space limited: the arenas of the node's ranks take 6442450944");
  };
  expect_all(run_forked(4, live), good);
}

TEST(LimitedAddresses, OfOneRankDecideForAll) {
  if (sanitized) GTEST_SKIP() << "sanitizers need the address space";
  const auto live = [] {
    setenv("ROPEWALK_ARENA_BYTES", "2G", 1);
    if (forked_rank() == 1 && !limit_addresses(limit)) return static_cast<int>(no_limit);
    return expect_no_team("and a rank has 3221225472 for them");
  };
  expect_all(run_forked(3, live), good);
}

// The arenas take less than half of the limit, but the program has mapped the rest already.
TEST(LimitedAddresses, ThatTheProgramHasTakenAreNoError) {
  if (sanitized) GTEST_SKIP() << "sanitizers need the address space";
  const auto live = [] {
    setenv("ROPEWALK_ARENA_BYTES", "1G", 1);
    Arena::process();
    if (forked_rank() != 0) return expect_no_team("address space limited");
    if (!limit_addresses(limit)) return static_cast<int>(no_limit);
    os::Mapping rest = os::reserve_range(limit - os::mapped_bytes() - os::gib, os::page_bytes());
    std::string reason;
    const std::uint64_t before = os::mapped_bytes();
    if (node::Team::create(mpi::comm_world(), reason) != nullptr) return static_cast<int>(a_team);
    if (os::mapped_bytes() > before + 16 * os::mib) return static_cast<int>(left_mapped);
    return static_cast<int>(says(reason, "address space limited") ? good : wrong_reason);
  };
  expect_all(run_forked(3, live), good);
}

TEST(PeersArenas, AreInNoCoreDumpAndInNoChild) {
  const auto live = [] {
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    if (team == nullptr) return static_cast<int>(no_team);
    const std::string others = flags_of(team->base(1 - forked_rank()));
    const std::string own = flags_of(team->base(forked_rank()));
    const bool dumped = others.find(" dd ") == std::string::npos;
    const bool inherited = others.find(" dc ") == std::string::npos;
    const bool own_dumped = !own.empty() && own.find(" dd ") == std::string::npos;
    works(team.get(), reason);
    return dumped ? 20 : inherited ? 21 : own_dumped ? good : 22;
  };
  expect_all(run_forked(2, live), good);
}

// ---- who a known peer is

// Numbers of files and processes are used again.
TEST(KnownPeers, AreTheSameFileOfTheSameProcess) {
  const auto live = [] {
    using node::RankFacts;
    std::uint64_t probe = 1;
    const RankFacts own = node::own_facts(Arena::process().allocate(64), &probe);
    std::vector<RankFacts> facts(2);
    mpi::all_gather(&own, facts.data(), sizeof own, mpi::comm_world());
    const auto other = static_cast<std::size_t>(1 - forked_rank());
    std::string reason;
    const auto known = node::map_peers(mpi::comm_world(), facts, reason);
    const auto again = node::map_peers(mpi::comm_world(), facts, reason);
    if (known.empty() || again.empty()) return static_cast<int>(no_team);
    if (again[other] != known[other]) return 20;
    std::vector<RankFacts> later = facts;
    later[other].start += 1;
    const auto reused = node::map_peers(mpi::comm_world(), later, reason);
    if (reused.empty() || reused[other] == known[other]) return 21;
    later = facts;
    later[other].arena_device += 1;
    if (!node::map_peers(mpi::comm_world(), later, reason).empty()) return 22;
    later = facts;
    later[other].process = getppid();  // has no such file
    if (!node::map_peers(mpi::comm_world(), later, reason).empty()) return 23;
    meet(2);
    return static_cast<int>(good);
  };
  expect_all(run_forked(2, live), good);
}

// ---- children of fork, which do not inherit the mappings

// This process takes the place of its parent's rank.
int work_as_child() {
  alarm(20);
  const int code = expect_team(UINT64_MAX);
  mpi::barrier(mpi::comm_world());
  return code;
}

// A team with this rank's own process, before a child takes its place.
bool has_had_a_team() {
  std::string reason;
  const auto team = node::Team::create(mpi::comm_world(), reason);
  if (team != nullptr) team->phases().barrier();
  mpi::barrier(mpi::comm_world());
  return team != nullptr;
}

TEST(ChildrenOfRanks, MapAPeerAgainThatTheirParentsHadMapped) {
  const auto live = [] {
    if (!has_had_a_team()) return static_cast<int>(no_team);
    return forked_rank() == 0 ? in_child(work_as_child) : work_as_child();
  };
  expect_all(run_forked(2, live), good);
}

// The peer of the parent is forgotten in the child, where the new one may lie at its address.
TEST(ChildrenOfRanks, UnmapNoPeerOfTheirParents) {
  const auto live = [] {
    if (!has_had_a_team()) return static_cast<int>(no_team);
    if (forked_rank() == 0) return in_child(work_as_child);
    const pid_t child = start_child([] {
      while (getppid() == process_of(1)) usleep(1000);
      return work_as_child();
    });
    return static_cast<int>(child > 0 ? good : no_team);
  };
  expect_all(run_forked(2, live), good);
}

// ---- a peer that ends without a word

TEST(MemoryOfATeam, IsGivenBackWhenAPeerHasEndedWithoutLeaving) {
  const auto live = [] {
    const auto live_bytes = [] { return Arena::process().statistics().live_bytes; };
    const std::size_t before = live_bytes();
    std::string reason;
    auto team = node::Team::create(mpi::comm_world(), reason);
    if (team == nullptr) return static_cast<int>(no_team);
    team->phases().barrier();
    if (forked_rank() == 1) {
      static_cast<void>(team.release());
      return static_cast<int>(good);
    }
    team.reset();
    const os::ProcessWatch peer(process_of(1));
    while (!peer.ended()) usleep(1000);
    node::reclaim();
    return live_bytes() == before ? good : 20;
  };
  expect_all(run_forked(2, live), good);
}

// ---- namespaces, as containers make them one a rank

bool in_namespaces(int spaces) {
  return unshare(spaces) == 0 || unshare(CLONE_NEWUSER | spaces) == 0;
}

TEST(Containers, WithMountsAndQueuesOfTheirOwnShareANode) {
  const auto live = [] {
    // As root; an ordinary user needs a user namespace each, as below.
    if (!in_namespaces(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS))
      return static_cast<int>(not_here);
    return expect_team(UINT64_MAX);
  };
  const std::vector<int> codes = run_forked(3, live);
  if (codes[0] == not_here) GTEST_SKIP() << "no namespaces for this user";
  expect_all(codes, good);
}

// May not take each other's descriptors: these go over sockets, and nobody reads by CMA.
TEST(Containers, WithUsersOfTheirOwnShareANode) {
  const auto live = [] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return static_cast<int>(not_here);
    std::string reason;
    const auto team = node::Team::create(mpi::comm_world(), reason);
    return works(team.get(), reason);
  };
  const std::vector<int> codes = run_forked(3, live);
  if (codes[0] == not_here) GTEST_SKIP() << "no user namespaces for this user";
  expect_all(codes, good);
}

TEST(Containers, WithNetworksOfTheirOwnAreNodes) {
  const auto live = [] {
    if (!in_namespaces(CLONE_NEWNET)) return static_cast<int>(not_here);
    return expect_no_team("on several nodes");
  };
  const std::vector<int> codes = run_forked(2, live);
  if (codes[0] == not_here) GTEST_SKIP() << "no namespaces for this user";
  expect_all(codes, good);
}

}  // namespace
}  // namespace ropewalk::test
