// Tests channels through the C interface, on ranks as threads.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

rw_mpi_comm world() {
  rw_mpi_comm comm = 0;
  EXPECT_EQ(rw_comm_world(&comm), RW_SUCCESS);
  return comm;
}

// The barrier keeps a rank from ending its channel while others use theirs.
void on_channels(int ranks, const std::function<void(rw_channel*, int)>& body,
                 const rw_channel_options* options = nullptr) {
  run_ranks(ranks, [&](int rank) {
    rw_channel* channel = nullptr;
    ASSERT_EQ(rw_channel_create(world(), options, &channel), RW_SUCCESS) << rw_last_error();
    body(channel, rank);
    rw_comm* comm = nullptr;
    ASSERT_EQ(rw_comm_create(world(), &comm), RW_SUCCESS);
    EXPECT_EQ(rw_barrier(comm), RW_SUCCESS);
    EXPECT_EQ(rw_comm_free(comm), RW_SUCCESS);
    EXPECT_EQ(rw_channel_free(channel), RW_SUCCESS) << rw_last_error();
  });
}

void expect_refused(int code, const std::string& begin) {
  EXPECT_EQ(code, RW_ERROR_ARGUMENT);
  EXPECT_EQ(std::string(rw_last_error()).substr(0, begin.size()), begin);
}

void expect_status(const rw_message_status& status, int source, int tag, std::size_t bytes) {
  EXPECT_EQ(status.source, source);
  EXPECT_EQ(status.tag, tag);
  EXPECT_EQ(status.bytes, bytes);
  EXPECT_EQ(status.size, sizeof(rw_message_status));
}

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = first + static_cast<int>(i);
  return made;
}

TEST(ChannelCApi, SendsAndReceives) {
  on_channels(2, [](rw_channel* channel, int rank) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{100000}}) {
      const std::size_t bytes = count * sizeof(int);
      std::vector<int> data = numbers(count, 3);
      if (rank == 0) {
        EXPECT_EQ(rw_channel_send(channel, data.data(), bytes, 1, 5), RW_SUCCESS);
        continue;
      }
      std::vector<int> came(count + 7);
      rw_message_status status = RW_MESSAGE_STATUS_INIT;
      EXPECT_EQ(rw_channel_receive(channel, came.data(), bytes + 7 * sizeof(int), RW_ANY_SOURCE,
                                   RW_ANY_TAG, &status),
                RW_SUCCESS)
          << rw_last_error();
      expect_status(status, 0, 5, bytes);
      came.resize(count);
      EXPECT_EQ(came, data);
    }
  });
}

TEST(ChannelCApi, ExchangesAndProbes) {
  on_channels(2, [](rw_channel* channel, int rank) {
    const int other = 1 - rank;
    const std::vector<int> data = numbers(50000, rank);
    const std::size_t bytes = data.size() * sizeof(int);
    std::vector<int> came(data.size());
    rw_message_status status = RW_MESSAGE_STATUS_INIT;
    EXPECT_EQ(rw_channel_send_receive(channel, data.data(), bytes, other, 10 + rank, came.data(),
                                      bytes, other, 10 + other, &status),
              RW_SUCCESS)
        << rw_last_error();
    expect_status(status, other, 10 + other, bytes);
    EXPECT_EQ(came, numbers(data.size(), other));

    EXPECT_EQ(rw_channel_send(channel, data.data(), 12, other, 2), RW_SUCCESS);
    int found = 0;
    while (found == 0) {
      ASSERT_EQ(rw_channel_probe(channel, RW_ANY_SOURCE, 2, &found, &status), RW_SUCCESS);
    }
    expect_status(status, other, 2, 12);
    EXPECT_EQ(rw_channel_probe(channel, other, 3, &found, nullptr), RW_SUCCESS);
    EXPECT_EQ(found, 0);
    EXPECT_EQ(rw_channel_receive(channel, came.data(), 12, other, 2, nullptr), RW_SUCCESS);
  });
}

TEST(ChannelCApi, StartsMessages) {
  on_channels(3, [](rw_channel* channel, int rank) {
    const int to = (rank + 1) % 3;
    const int from = (rank + 2) % 3;
    const std::vector<int> data = numbers(20000, rank);
    const std::size_t bytes = data.size() * sizeof(int);
    for (int round = 0; round < 3; ++round) {
      std::vector<int> came(data.size());
      rw_message* receive = nullptr;
      rw_message* send = nullptr;
      ASSERT_EQ(rw_channel_start_receive(channel, came.data(), bytes, from, round, &receive),
                RW_SUCCESS);
      ASSERT_EQ(rw_channel_start_send(channel, data.data(), bytes, to, round, &send), RW_SUCCESS);
      expect_refused(rw_channel_free(channel), "channel: 2 of its messages are not freed");
      rw_message_status status = RW_MESSAGE_STATUS_INIT;
      int done = 0;
      while (done == 0) ASSERT_EQ(rw_message_test(receive, &done, &status), RW_SUCCESS);
      expect_status(status, from, round, bytes);
      EXPECT_EQ(came, numbers(data.size(), from));
      expect_refused(rw_message_start(send), "message: was started when it was made");
      EXPECT_EQ(rw_message_wait(send, &status), RW_SUCCESS);
      expect_status(status, to, round, bytes);
      EXPECT_EQ(rw_message_free(send), RW_SUCCESS);
      EXPECT_EQ(rw_message_free(receive), RW_SUCCESS);
    }
  });
}

// A message that is freed is waited for first.
TEST(ChannelCApi, FreeWaits) {
  on_channels(2, [](rw_channel* channel, int rank) {
    std::vector<int> data = numbers(30000, rank);
    const std::size_t bytes = data.size() * sizeof(int);
    rw_message* message = nullptr;
    if (rank == 0) {
      ASSERT_EQ(rw_channel_start_receive(channel, data.data(), bytes, 1, 0, &message), RW_SUCCESS);
      EXPECT_EQ(rw_message_free(message), RW_SUCCESS);
      EXPECT_EQ(data, numbers(data.size(), 1));
    } else {
      EXPECT_EQ(rw_channel_send(channel, data.data(), bytes, 0, 0), RW_SUCCESS);
    }
    EXPECT_EQ(rw_message_free(nullptr), RW_SUCCESS);
  });
}

TEST(ChannelCApi, StartsPreparedMessagesAgain) {
  on_channels(2, [](rw_channel* channel, int rank) {
    std::vector<int> data(5000);
    const std::size_t bytes = data.size() * sizeof(int);
    rw_message* message = nullptr;
    ASSERT_EQ(rank == 0 ? rw_channel_prepare_send(channel, data.data(), bytes, 1, 4, &message)
                        : rw_channel_prepare_receive(channel, data.data(), bytes, 0, 4, &message),
              RW_SUCCESS);
    for (int turn = 0; turn < 5; ++turn) {
      if (rank == 0) data.assign(data.size(), turn);
      ASSERT_EQ(rw_message_start(message), RW_SUCCESS) << rw_last_error();
      rw_message_status status = RW_MESSAGE_STATUS_INIT;
      ASSERT_EQ(rw_message_wait(message, &status), RW_SUCCESS);
      EXPECT_EQ(data, std::vector<int>(data.size(), turn));
      expect_status(status, 1 - rank, 4, bytes);
    }
    EXPECT_EQ(rw_message_free(message), RW_SUCCESS);
  });
}

TEST(ChannelCApi, TellsHowMessagesGo) {
  rw_channel_options options = RW_CHANNEL_OPTIONS_INIT;
  options.force = RW_MECHANISM_PIPELINE;
  on_channels(
      2,
      [](rw_channel* channel, int rank) {
        int near = 0;
        EXPECT_EQ(rw_channel_is_near(channel, 1 - rank, &near), RW_SUCCESS);
        EXPECT_EQ(near, 1);
        std::size_t slot = 0;
        EXPECT_EQ(rw_channel_slot_bytes(channel, &slot), RW_SUCCESS);
        EXPECT_GE(slot, 104U);
        std::vector<int> data(50000);
        const std::size_t bytes = data.size() * sizeof(int);
        if (rank == 0) {
          EXPECT_EQ(rw_channel_send(channel, data.data(), bytes, 1, 0), RW_SUCCESS);
          return;
        }
        EXPECT_EQ(rw_channel_receive(channel, data.data(), bytes, 0, 0, nullptr), RW_SUCCESS);
        int mechanism = -1;
        EXPECT_EQ(rw_channel_last_mechanism(channel, &mechanism), RW_SUCCESS);
        EXPECT_EQ(mechanism, RW_MECHANISM_PIPELINE);
        const char* name = nullptr;
        EXPECT_EQ(rw_mechanism_name(mechanism, &name), RW_SUCCESS);
        EXPECT_STREQ(name, "pipeline");
        expect_refused(rw_mechanism_name(9, &name), "mechanism: 9");
      },
      &options);
}

// A program whose header has a longer status gets zeros behind; one that has set no size is refused
// before a message is touched.
TEST(ChannelCApi, AStatusMayGrow) {
  on_channels(1, [](rw_channel* channel, int /*rank*/) {
    int value = 5;
    ASSERT_EQ(rw_channel_send(channel, &value, sizeof value, 0, 1), RW_SUCCESS);
    rw_message_status unset = {};
    expect_refused(rw_channel_receive(channel, &value, sizeof value, 0, 1, &unset),
                   "status.size: 0, expected sizeof(rw_message_status)");
    struct Later {
      rw_message_status known;
      long more;
    } later = {RW_MESSAGE_STATUS_INIT, 77};
    later.known.size = sizeof later;
    ASSERT_EQ(rw_channel_receive(channel, &value, sizeof value, 0, 1, &later.known), RW_SUCCESS);
    EXPECT_EQ(later.known.size, sizeof later);
    EXPECT_EQ(later.known.tag, 1);
    EXPECT_EQ(later.more, 0);
  });
}

TEST(ChannelCApi, ArgumentsAreChecked) {
  on_channels(2, [](rw_channel* channel, int rank) {
    int value = 1;
    rw_message* message = nullptr;
    expect_refused(rw_channel_send(nullptr, &value, 4, 0, 0), "channel: NULL");
    expect_refused(rw_channel_send(channel, nullptr, 4, 0, 0), "data: null");
    expect_refused(rw_channel_send(channel, &value, 4, 2, 0), "to: rank 2");
    expect_refused(rw_channel_start_receive(channel, &value, 4, 7, 0, &message), "from: rank 7");
    expect_refused(rw_channel_prepare_send(channel, &value, 4, 0, -1, &message), "tag: -1");
    EXPECT_EQ(message, nullptr);
    expect_refused(rw_channel_start_send(channel, &value, 4, 0, 0, nullptr), "out: NULL");
    expect_refused(rw_message_wait(nullptr, nullptr), "message: NULL");
    if (rank == 0) {
      EXPECT_EQ(rw_channel_send(channel, &value, 4, 1, 0), RW_SUCCESS);
    } else {
      expect_refused(rw_channel_receive(channel, &value, 3, 0, 0, nullptr),
                     "bytes: a message of 4");
    }
  });
  EXPECT_EQ(rw_channel_free(nullptr), RW_SUCCESS);
}

TEST(ChannelCApi, AWrongOptionOnOneRankIsAnErrorOnAll) {
  run_ranks(2, [](int rank) {
    rw_channel* channel = nullptr;
    rw_channel_options options = RW_CHANNEL_OPTIONS_INIT;
    options.force = rank == 0 ? 99 : RW_MECHANISM_NONE;
    EXPECT_EQ(rw_channel_create(world(), &options, &channel), RW_ERROR_ARGUMENT);
    EXPECT_NE(std::string(rw_last_error()).find("options.force: 99"), std::string::npos);
    EXPECT_EQ(rw_channel_create(world(), nullptr, rank == 0 ? nullptr : &channel),
              RW_ERROR_ARGUMENT);
    EXPECT_EQ(channel, nullptr);
  });
}

}  // namespace
}  // namespace ropewalk::test
