// Every call of the driver is made to fail, at every place where a message makes it, on ranks as
// threads. A message then comes whole, or both of its ranks get an error that names the call; later
// messages come, and nothing is left in the driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/device.hpp"
#include "support/thread_mpi.hpp"
#include "tuning/profile.hpp"

namespace ropewalk {
namespace {

using test::DeviceBytes;
using Bytes = std::vector<std::byte>;

constexpr int illegal_address = 700;

struct Failing {
  const char* call;
  bool is_fatal;  // to the message
};
const Failing failings[] = {{"cuPointerGetAttributes", true}, {"cuCtxPushCurrent", true},
                            {"cuStreamCreate", true},         {"cuStreamSynchronize", true},
                            {"cuEventCreate", true},          {"cuEventRecord", true},
                            {"cuEventQuery", true},           {"cuMemcpyAsync", true},
                            {"cuMemHostRegister", false},     {"cuMemHostUnregister", false},
                            {"cuMemGetAddressRange", false},  {"cuIpcGetMemHandle", false}};

struct Pair {
  const char* name;
  bool from_device;
  bool to_device;
  std::size_t bytes;
};
const Pair pairs[] = {{"from_device", true, false, 100000},
                      {"to_device", false, true, 100000},
                      {"between_devices", true, true, 100000},
                      {"short_from_device", true, false, 2000},
                      {"short_to_device", false, true, 2000}};

// The error of a call, if it throws one.
template <class Body>
std::optional<Error> error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return {};
}

// For what must be done, though a call of it may be the one that fails.
template <class Body>
void once_more(const Body& body) {
  if (error_of(body)) body();
}

// Takes a receive back that no message has come for.
void take_back(MessageRequest request) {
  struct Thrown {};
  try {
    const MessageRequest last = std::move(request);
    throw Thrown();
  } catch (const Thrown&) {  // thrown for the destructor alone
  }
}

constexpr int message_tag = 0;
constexpr int end_tag = 1;
constexpr std::byte sent_byte{7};

// What a rank saw of one message from rank 0 to rank 1.
struct Seen {
  bool came = false;  // whole or not
  std::optional<Error> error;
};

// A message whose calls may fail, and a short one behind it, which tells that it has come, if ever.
class OneMessage {
 public:
  OneMessage(Channel& channel, const Pair& pair)
      : channel_(channel), pair_(pair), device_(pair.bytes), host_(pair.bytes) {}

  Seen run() {
    const Bytes data(pair_.bytes, channel_.rank() == 0 ? sent_byte : std::byte{0});
    device_.write(data.data(), data.size());
    host_ = data;
    return channel_.rank() == 0 ? send() : receive();
  }
  bool is_whole() const {
    Bytes data = host_;
    if (pair_.to_device) device_.read(data.data(), data.size());
    return data == Bytes(pair_.bytes, sent_byte);
  }

 private:
  Seen send() {
    const std::byte* data = pair_.from_device ? device_.data() : host_.data();
    Seen seen{true, error_of([&] { channel_.send(data, pair_.bytes, 1, message_tag); })};
    once_more([&] { channel_.send(nullptr, 0, 1, end_tag); });
    return seen;
  }
  Seen receive() {
    std::byte* data = pair_.to_device ? device_.data() : host_.data();
    MessageRequest request;
    Seen seen;
    seen.error =
        error_of([&] { request = channel_.start_receive(data, pair_.bytes, 0, message_tag); });
    if (seen.error) {  // the receive has not begun, and its message waits
      Bytes spare(pair_.bytes);
      channel_.receive(spare.data(), spare.size(), 0, message_tag);
    }
    once_more([&] { channel_.receive(nullptr, 0, 0, end_tag); });
    if (seen.error) return seen;
    seen.error = error_of([&] { seen.came = request.test(); });
    if (seen.error) seen.came = true;
    if (!seen.came) take_back(std::move(request));
    return seen;
  }

  Channel& channel_;
  const Pair& pair_;
  DeviceBytes device_;
  Bytes host_;
};

void expect_named(const Failing& failing, const Seen& seen) {
  if (!seen.error) return;
  const std::string text = seen.error->what();
  EXPECT_TRUE(failing.is_fatal) << text;
  EXPECT_EQ(seen.error->code(), ErrorCode::system) << text;
  EXPECT_NE(text.find(failing.call), std::string::npos) << text;
  EXPECT_NE(text.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << text;
}

class DriverErrors : public testing::TestWithParam<std::tuple<Pair, Mechanism>> {
 protected:
  // The call fails at its n-th time, or each time where `number` is 0. Returns whether it did.
  static bool fail(const Failing& failing, unsigned number) {
    unsigned calls = 0;
    Seen seen[2];
    const auto& [pair, force] = GetParam();
    test::run_ranks(2, [&, pair = pair, force = force](int rank) {
      test::use_device(rank);
      const tuning::Trial small_pieces("channel.device_piece_bytes = 8K");
      Channel channel(Communicator::world(), {.force = force});
      OneMessage message(channel, pair);
      if (rank == 0) {
        calls = test::calls_of(failing.call);
        test::fail_call(failing.call, number, illegal_address);
      }
      mpi::barrier(mpi::comm_world());
      seen[rank] = message.run();
      expect_named(failing, seen[rank]);
      const bool whole = rank == 0 || !seen[1].came || seen[1].error || message.is_whole();
      EXPECT_TRUE(whole);
      mpi::barrier(mpi::comm_world());
      if (rank == 0) {
        calls = test::calls_of(failing.call) - calls;
        test::fail_no_more();
      }
      mpi::barrier(mpi::comm_world());
      const Seen again = message.run();
      EXPECT_FALSE(again.error.has_value()) << again.error->what();
      EXPECT_TRUE(rank == 0 || (again.came && message.is_whole()));
      mpi::barrier(mpi::comm_world());
    });
    // A message that both have begun fails for both.
    if (pair.bytes > 32768 && seen[1].came) {
      EXPECT_EQ(seen[0].error.has_value(), seen[1].error.has_value());
    }
    EXPECT_EQ(test::left_in_driver(), 0) << failing.call << ", call " << number;
    return calls >= std::max(number, 1U);
  }
};

TEST_P(DriverErrors, EndTheMessageForBothRanks) {
  constexpr unsigned most = 40;
  for (const Failing& failing : failings) {
    SCOPED_TRACE(failing.call);
    unsigned number = 1;
    while (number <= most && fail(failing, number)) ++number;
    // The driver answers nothing about any buffer: then no message begins.
    if (std::string(failing.call) != "cuPointerGetAttributes") fail(failing, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Channel, DriverErrors,
                         testing::Combine(testing::ValuesIn(pairs),
                                          testing::Values(Mechanism::none, Mechanism::pipeline)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "By" +
                                  name(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace ropewalk
