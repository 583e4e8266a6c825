// What a channel promises of buffers in memory of devices, on ranks as threads over the fake
// driver, whose device memory the host cannot touch.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "messages/expect_error.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/memory.hpp"
#include "support/device.hpp"
#include "support/thread_mpi.hpp"
#include "tuning/profile.hpp"

namespace ropewalk {
namespace {

using test::DeviceBytes;
using test::DeviceKind;
using test::expect_error;
using Bytes = std::vector<std::byte>;

constexpr std::size_t piece = std::size_t{8} << 10;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& each : data) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<std::byte>(state >> 24);
  }
  return data;
}

void on_ranks(int ranks, const std::function<void(Channel&)>& body,
              const ChannelOptions& options = {}) {
  test::run_ranks(ranks, [&](int rank) {
    test::use_device(rank % 2);
    const tuning::Trial small_pieces("channel.device_piece_bytes = 8K");
    Channel channel(Communicator::world(), options);
    body(channel);
    mpi::barrier(mpi::comm_world());
  });
  EXPECT_EQ(test::left_in_driver(), 0);
}

enum class Place : std::uint8_t { privately, arena, device, pool, managed };
constexpr Place places[] = {Place::privately, Place::arena, Place::device, Place::pool,
                            Place::managed};

// This is a buffer at one of the places.
class PlacedBytes {
 public:
  PlacedBytes(std::size_t bytes, Place place) : bytes_(bytes) {
    switch (place) {
      case Place::privately:
        private_ = Bytes(bytes + 1);
        data_ = private_.data();
        return;
      case Place::arena:
        arena_ = static_cast<std::byte*>(Arena::process().allocate(bytes + 1, 64));
        data_ = arena_;
        return;
      default:
        const int kind = static_cast<int>(place) - static_cast<int>(Place::device);
        device_ = std::make_unique<DeviceBytes>(bytes, static_cast<DeviceKind>(kind));
        data_ = device_->data();
    }
  }
  ~PlacedBytes() {
    if (arena_ != nullptr) Arena::process().deallocate(arena_);
  }
  PlacedBytes(const PlacedBytes&) = delete;
  PlacedBytes& operator=(const PlacedBytes&) = delete;
  std::byte* data() const { return data_; }
  void put(const Bytes& from) const {
    if (device_ != nullptr) return device_->write(from.data(), bytes_);
    if (bytes_ != 0) std::memcpy(data_, from.data(), bytes_);
  }
  Bytes get() const {
    Bytes copy(bytes_);
    if (device_ != nullptr) {
      device_->read(copy.data(), bytes_);
    } else if (bytes_ != 0) {
      std::memcpy(copy.data(), data_, bytes_);
    }
    return copy;
  }

 private:
  std::size_t bytes_;
  Bytes private_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<DeviceBytes> device_;
  std::byte* data_ = nullptr;
};

constexpr std::size_t lengths[] = {0,          1,         104,           105,    4096,
                                   32768,      32769,     5 * piece - 1, 100000, 4 * piece + 1,
                                   40 * piece, 300 * 1000};

class EachDeviceMechanism : public testing::TestWithParam<Mechanism> {};

TEST_P(EachDeviceMechanism, BringsWhatWasSentFromEachPlaceToEach) {
  on_ranks(2,
           [](Channel& channel) {
             const int other = 1 - channel.rank();
             unsigned seed = 0;
             for (const Place source : places) {
               for (const Place destination : places) {
                 for (const std::size_t bytes : lengths) {
                   const Bytes expected = pattern(bytes, ++seed);
                   const PlacedBytes from(bytes, source);
                   const PlacedBytes to(bytes, destination);
                   from.put(expected);
                   const MessageStatus status = channel.send_receive(from.data(), bytes, other, 3,
                                                                     to.data(), bytes, other, 3);
                   EXPECT_EQ(status.bytes, bytes);
                   EXPECT_EQ(to.get(), expected)
                       << bytes << " bytes from place " << static_cast<int>(source) << " to "
                       << static_cast<int>(destination) << " (" << name(channel.last_mechanism())
                       << ")";
                 }
               }
             }
           },
           {.force = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Channel, EachDeviceMechanism,
                         testing::Values(Mechanism::none, Mechanism::slots, Mechanism::receiver,
                                         Mechanism::sender, Mechanism::both, Mechanism::pipeline),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST(ChannelOfDevices, TakesTheCopyEngineBetweenDevicesAndThePipelineElsewhere) {
  on_ranks(2, [](Channel& channel) {
    constexpr std::size_t bytes = 100000;
    for (const Place source : {Place::arena, Place::device}) {
      for (const Place destination : {Place::arena, Place::device}) {
        if (source == Place::arena && destination == Place::arena) continue;
        const PlacedBytes from(bytes, source);
        const PlacedBytes to(bytes, destination);
        if (channel.rank() == 0) channel.send(from.data(), bytes, 1);
        if (channel.rank() == 0) continue;
        channel.receive(to.data(), bytes, 0);
        EXPECT_EQ(channel.last_mechanism(),
                  source == destination ? Mechanism::receiver : Mechanism::pipeline);
      }
    }
  });
}

TEST(ChannelOfDevices, SendsAShortMessageWithoutItsReceiver) {
  on_ranks(2, [](Channel& channel) {
    const Bytes expected = pattern(channel.slot_bytes(), 5);
    const PlacedBytes buffer(expected.size(), Place::device);
    if (channel.rank() == 0) {
      buffer.put(expected);
      channel.send(buffer.data(), expected.size(), 1, 1);
      buffer.put(Bytes(expected.size()));  // which the message does not see
      mpi::barrier(mpi::comm_world());
    } else {
      mpi::barrier(mpi::comm_world());
      channel.receive(buffer.data(), expected.size(), 0, 1);
      EXPECT_EQ(buffer.get(), expected);
    }
  });
}

TEST(ChannelOfDevices, SendsToItself) {
  on_ranks(1, [](Channel& channel) {
    for (const std::size_t bytes : lengths) {
      const Bytes expected = pattern(bytes, 9);
      const PlacedBytes from(bytes, Place::device);
      const PlacedBytes to(bytes, Place::device);
      from.put(expected);
      channel.send_receive(from.data(), bytes, 0, 1, to.data(), bytes, 0, 1);
      EXPECT_EQ(to.get(), expected);
      MessageRequest sent = channel.start_send(from.data(), bytes, 0, 2);
      to.put(Bytes(bytes));
      channel.receive(to.data(), bytes, 0, 2);
      sent.wait();
      EXPECT_EQ(to.get(), expected);
    }
  });
}

TEST(ChannelOfDevices, RepeatsPersistentMessages) {
  on_ranks(2, [](Channel& channel) {
    constexpr std::size_t bytes = 100000;
    const int other = 1 - channel.rank();
    const PlacedBytes from(bytes, Place::device);
    const PlacedBytes to(bytes, Place::device);
    PersistentMessage send = channel.prepare_send(from.data(), bytes, other, 4);
    PersistentMessage receive = channel.prepare_receive(to.data(), bytes, other, 4);
    for (unsigned turn = 0; turn < 5; ++turn) {
      from.put(pattern(bytes, turn));
      receive.start();
      send.start();
      while (!send.test() || !receive.test()) {
      }
      EXPECT_EQ(to.get(), pattern(bytes, turn));
    }
  });
}

TEST(ChannelOfDevices, DropsAMessageThatIsTooLong) {
  on_ranks(2, [](Channel& channel) {
    for (const std::size_t bytes : {std::size_t{2000}, std::size_t{100000}}) {
      const PlacedBytes buffer(bytes, Place::device);
      if (channel.rank() == 0) {
        channel.send(buffer.data(), bytes, 1);
        continue;
      }
      expect_error(ErrorCode::argument, "bytes: a message of " + std::to_string(bytes),
                   [&] { channel.receive(buffer.data(), 1000, 0); });
    }
  });
}

TEST(ChannelOfDevices, TakesAMessageBackThatNobodyHasBegun) {
  on_ranks(2, [](Channel& channel) {
    constexpr std::size_t bytes = 100000;
    const PlacedBytes buffer(bytes, Place::device);
    struct Thrown {};
    if (channel.rank() == 0) {
      try {
        const MessageRequest sent = channel.start_send(buffer.data(), bytes, 1, 6);
        throw Thrown();
      } catch (const Thrown&) {  // the message has been withdrawn
      }
      channel.send(buffer.data(), bytes, 1, 7);
    } else {
      EXPECT_EQ(channel.receive(buffer.data(), bytes, 0, 7).tag, 7);
    }
  });
}

TEST(ChannelOfDevices, LeavesTheCurrentContextAsItWas) {
  test::run_ranks(2, [](int rank) {
    test::use_device(1);
    const PlacedBytes buffer(100000, Place::device);
    test::use_device(0);
    const void* before = test::current_context();
    {
      Channel channel(Communicator::world());
      if (rank == 0) channel.send(buffer.data(), 100000, 1);
      if (rank == 1) channel.receive(buffer.data(), 100000, 0);
      EXPECT_EQ(test::current_context(), before);
      mpi::barrier(mpi::comm_world());
    }
    EXPECT_EQ(test::current_context(), before);
  });
}

TEST(ChannelOfDevices, AsksTheDriverNothingWhereTheUserSaysSo) {
  ::setenv("ROPEWALK_DEVICE_BUFFERS", "off", 1);
  test::run_ranks(2, [](int rank) {
    test::use_device(0);
    mpi::barrier(mpi::comm_world());
    const unsigned before = test::calls_of_driver();
    Channel channel(Communicator::world());
    Bytes data(100000);
    if (rank == 0) channel.send(data.data(), data.size(), 1);
    if (rank == 1) channel.receive(data.data(), data.size(), 0);
    EXPECT_EQ(test::calls_of_driver(), before);
    mpi::barrier(mpi::comm_world());
  });
  ::unsetenv("ROPEWALK_DEVICE_BUFFERS");
}

}  // namespace
}  // namespace ropewalk
