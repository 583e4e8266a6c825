// Messages from private buffers that are attached, as by XPMEM, on ranks as threads: the provider
// here shows other threads' memory as it is.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "channel/attachments.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

class ThreadMemory : public channel::Provider {
 public:
  channel::Segment own_segment(std::string&) override { return 1; }
  bool open(channel::Segment) override { return true; }
  void close(channel::Segment) noexcept override {}
  std::byte* attach(channel::Segment, std::uint64_t address, std::size_t) override {
    return reinterpret_cast<std::byte*>(address);
  }
  void detach(std::byte*, std::size_t) noexcept override {}
};

constexpr std::size_t bytes = std::size_t{256} << 10;
constexpr int messages = 24;

// Sends and receives messages of buffers that share no page, `together` of them under way at once.
void exchange(Channel& channel, const std::vector<std::byte>& sent, std::vector<std::byte>& came,
              int together) {
  const int other = 1 - channel.rank();
  for (int first = 0; first < messages; first += together) {
    std::vector<MessageRequest> requests;
    for (int i = first; i < first + together; ++i) {
      const std::size_t at = 2 * bytes * static_cast<std::size_t>(i);
      requests.push_back(channel.start_receive(came.data() + at, bytes, other, i));
      requests.push_back(channel.start_send(sent.data() + at, bytes, other, i));
    }
    for (MessageRequest& request : requests) request.wait();
  }
}

class AttachedMessages : public testing::TestWithParam<int> {};

// A cache of two entries keeps more of them only while messages use them.
TEST_P(AttachedMessages, WhatTheyUsedMayBeDetachedAfterThem) {
  test::run_ranks(2, [](int rank) {
    ThreadMemory provider;
    channel::RegistrationCache cache(provider, 2);
    channel::RegistrationCache* before = channel::replace_process_cache(&cache);
    {
      Channel channel(Communicator::world());
      const std::vector<std::byte> sent(2 * bytes * messages, std::byte(rank + 1));
      std::vector<std::byte> came(2 * bytes * messages);
      exchange(channel, sent, came, GetParam());
      for (std::size_t i = 0; i < messages; ++i) {
        ASSERT_EQ(came[2 * bytes * i], std::byte(2 - rank)) << i;
        ASSERT_EQ(came[2 * bytes * i + bytes - 1], std::byte(2 - rank)) << i;
        ASSERT_EQ(came[2 * bytes * i + bytes], std::byte(0)) << i;
      }
      EXPECT_GT(cache.counts().misses, static_cast<std::uint64_t>(messages) / 2);
      // Those of the last messages, which nothing has pushed out yet.
      EXPECT_LE(cache.counts().entries, static_cast<std::uint64_t>(2 * GetParam() + 1));
      mpi::barrier(mpi::comm_world());
    }
    channel::replace_process_cache(before);
  });
}

INSTANTIATE_TEST_SUITE_P(Together, AttachedMessages, testing::Values(1, 3),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace ropewalk
