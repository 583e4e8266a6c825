// Ranks that are processes, with memory of devices of the fake driver: the receiver opens the
// sender's memory, allocations come and go, and a rank is killed in the middle of a copy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "channel/device_memory.hpp"
#include "os/pidfd.hpp"
#include "ropewalk/channel.hpp"
#include "support/device.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int victim = 1;
constexpr std::size_t bytes = std::size_t{3} << 20;

enum Exit { good = 0, wrong = 1, not_near = 3 };

int expect(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "rank %d: not %s\n", forked_rank(), what);
  return holds ? good : wrong;
}

void expect_good(const std::vector<int>& codes) {
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    EXPECT_EQ(codes[rank], good) << "rank " << rank;
  }
}

// Sends one buffer from rank 0 to rank 1, both in device memory, and returns whether it came.
bool passes(Channel& channel, const DeviceBytes& buffer, std::byte value) {
  if (channel.rank() == 0) {
    buffer.write(Bytes(bytes, value).data(), bytes);
    channel.send(buffer.data(), bytes, 1);
    return true;
  }
  channel.receive(buffer.data(), bytes, 0);
  Bytes came(bytes);
  buffer.read(came.data(), bytes);
  return came == Bytes(bytes, value);
}

TEST(DeviceOfAnotherProcess, IsOpenedOnceForABuffer) {
  expect_good(run_forked(2, [] {
    use_device(forked_rank());
    Channel channel(Communicator::world());
    const DeviceBytes buffer(bytes);
    int code = good;
    for (int turn = 1; turn < 5; ++turn) {
      code |= expect(passes(channel, buffer, std::byte(turn)), "what was sent");
    }
    if (forked_rank() == 1) {
      code |= expect(channel.last_mechanism() == Mechanism::receiver, "copied by the receiver");
      code |= expect(calls_of("cuIpcOpenMemHandle") == 1, "opened once");
    }
    meet(2);
    return code;
  }));
}

TEST(DeviceOfAnotherProcess, IsOpenedAgainWhereAnAllocationTookThePlaceOfAnother) {
  expect_good(run_forked(2, [] {
    use_device(forked_rank());
    Channel channel(Communicator::world());
    int code = good;
    for (int turn = 1; turn < 100; ++turn) {
      const DeviceBytes buffer(bytes);
      code |= expect(passes(channel, buffer, std::byte(turn)), "what was sent");
    }
    // What has been freed since does not stay open for ever.
    if (forked_rank() == 1) code |= expect(left_in_driver() < 80, "few open allocations");
    meet(2);
    return code;
  }));
}

TEST(DeviceOfAnotherProcess, IsReachedInPiecesWhereTheDriverOpensNothing) {
  for (const char* call : {"cuIpcOpenMemHandle", "cuIpcGetMemHandle"}) {
    expect_good(run_forked(2, [call] {
      use_device(forked_rank());
      fail_call(call, 0, 999);
      Channel channel(Communicator::world());
      const DeviceBytes buffer(bytes);
      int code = expect(passes(channel, buffer, std::byte{5}), "what was sent");
      if (forked_rank() == 1) {
        code |= expect(channel.last_mechanism() == Mechanism::pipeline, "copied in pieces");
      }
      meet(2);
      return code;
    }));
  }
}

TEST(DeviceOfAnotherProcess, LeavesNothingInTheDriver) {
  expect_good(run_forked(2, [] {
    use_device(forked_rank());
    {
      Channel channel(Communicator::world());
      Channel pieces(Communicator::world(), {.force = Mechanism::pipeline});
      const DeviceBytes buffer(bytes);
      passes(channel, buffer, std::byte{5});
      passes(pieces, buffer, std::byte{6});
    }
    const int code = expect(left_in_driver() == 0, "all given back");
    meet(2);
    return code;
  }));
}

TEST(Driver, IsNotLoadedByAChannel) {
  expect_good(run_forked(2, [] {
    Channel channel(Communicator::world());
    Bytes data(bytes);
    if (forked_rank() == 0) channel.send(data.data(), bytes, 1);
    if (forked_rank() == 1) channel.receive(data.data(), bytes, 0);
    std::ifstream maps("/proc/self/maps");
    const std::string all((std::istreambuf_iterator<char>(maps)), {});
    int code = expect(all.find("libcuda") == std::string::npos, "without the library");
    code |= expect(channel::DeviceMemory::create() == nullptr, "without device memory");
    meet(2);
    return code;
  }));
}

TEST(Driver, IsAskedByTheOneRankThatHasIt) {
  for (const int with : {0, 1}) {
    expect_good(run_forked(2, [with] {
      const bool has = forked_rank() == with;
      if (has) use_device(0);
      Channel channel(Communicator::world());
      Bytes host(bytes, std::byte{3});
      int code = good;
      if (has) {
        const DeviceBytes buffer(bytes);
        buffer.write(host.data(), bytes);
        if (with == 0) channel.send(buffer.data(), bytes, 1);
        if (with == 1) code |= expect(passes(channel, buffer, std::byte{9}), "what was sent");
      } else if (with == 0) {
        host.assign(bytes, std::byte{0});
        channel.receive(host.data(), bytes, 0);
        code |= expect(host == Bytes(bytes, std::byte{3}), "what was sent");
      } else {
        host.assign(bytes, std::byte{9});
        channel.send(host.data(), bytes, 1);
      }
      if (!has) code |= expect(!has_fake_driver(), "without the library");
      meet(2);
      return code;
    }));
  }
}

// ---- deaths

struct Situation {
  const char* name;
  Mechanism force;
  bool from_device;
  bool to_device;
};
const Situation situations[] = {{"between_devices", Mechanism::none, true, true},
                                {"in_pieces", Mechanism::pipeline, true, true},
                                {"from_device", Mechanism::none, true, false},
                                {"to_device", Mechanism::none, false, true}};

// Each rank sends to the next one and receives from the one before, again and again.
class Circle {
 public:
  Circle(Channel& channel, const Situation& situation)
      : channel_(channel), situation_(situation), from_(bytes), to_(bytes), host_(2 * bytes) {}
  void turn() {
    const int size = channel_.size();
    channel_.send_receive(situation_.from_device ? from_.data() : host_.data(), bytes,
                          (channel_.rank() + 1) % size, 1,
                          situation_.to_device ? to_.data() : host_.data() + bytes, bytes,
                          (channel_.rank() + size - 1) % size, 1);
  }

 private:
  Channel& channel_;
  const Situation& situation_;
  DeviceBytes from_;
  DeviceBytes to_;
  Bytes host_;
};

int outcome_of(Circle& circle) {
  constexpr int turns = 1'000'000;  // far more than the victim makes
  try {
    for (int turn = 0; turn < turns; ++turn) circle.turn();
  } catch (const Error& error) {
    const bool names = std::string(error.what()).find("rank 1 ") != std::string::npos;
    if (error.code() == ErrorCode::peer_dead && names) return good;
    std::fprintf(stderr, "rank %d: %s\n", forked_rank(), error.what());
  }
  return wrong;
}

int live(const Situation& situation, useconds_t life) {
  use_device(forked_rank() % 2);
  Channel channel(Communicator::world(), {.force = situation.force});
  if (!channel.is_near((channel.rank() + 1) % channel.size())) return not_near;
  Circle circle(channel, situation);
  if (forked_rank() == victim) {
    for (int turn = 0; turn < 3; ++turn) circle.turn();
    alarm(0);
    std::signal(SIGALRM, SIG_DFL);  // which ends the process
    ualarm(life, 0);
    while (true) circle.turn();
  }
  const int outcome = outcome_of(circle);
  // Who leaves is as dead as the victim: nobody does before all have seen what they see.
  meet(forked_ranks() - 1);
  return outcome;
}

class DeadRankOfDevices : public testing::TestWithParam<Situation> {};

TEST_P(DeadRankOfDevices, IsNamedToEverySurvivor) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  for (const int count : {2, 4}) {
    const std::vector<int> codes = run_forked(count, [&] { return live(GetParam(), 10'000); });
    if (codes[0] == not_near) GTEST_SKIP() << "processes here cannot reach each other's memory";
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_EQ(codes[static_cast<std::size_t>(rank)], rank == victim ? -1 : static_cast<int>(good))
          << "rank " << rank << " of " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, DeadRankOfDevices, testing::ValuesIn(situations),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ropewalk::test
