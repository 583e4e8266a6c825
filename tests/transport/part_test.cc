// Tests how messages fall on lanes: against the properties both sides rely on.
#include "transport/part.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ropewalk::transport {
namespace {

Message message_of(std::byte* data, std::size_t bytes, int tag, int lane = -1) {
  return {Message::Kind::send, data, bytes, 0, tag, lane, 0};
}

TEST(Part, SplitCoversTheMessageOnceInAlignedPieces) {
  std::vector<std::byte> data(10000);
  for (const int lanes : {1, 2, 3, 5, 8, 64}) {
    for (const std::size_t bytes : {1U, 63U, 64U, 65U, 127U, 4097U, 9999U, 10000U}) {
      std::vector<Part> parts;
      append_parts(message_of(data.data(), bytes, 7), lanes, 0, parts);
      ASSERT_LE(parts.size(), static_cast<std::size_t>(lanes));
      std::size_t end = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(parts[i].data, data.data() + end) << bytes << " bytes on " << lanes;
        EXPECT_EQ(end % part_alignment, 0U);
        EXPECT_GT(parts[i].bytes, 0U);
        if (parts.size() > 1) {
          EXPECT_EQ(parts[i].lane, static_cast<int>(i));
        }
        end += parts[i].bytes;
      }
      EXPECT_EQ(end, bytes) << "on " << lanes << " lanes";
    }
  }
}

TEST(Part, SplitSharesEvenly) {
  std::vector<std::byte> data(64 * 80);
  std::vector<Part> parts;
  append_parts(message_of(data.data(), data.size(), 0), 8, 100, parts);
  ASSERT_EQ(parts.size(), 8U);
  for (const Part& part : parts) EXPECT_EQ(part.bytes, 640U);
}

TEST(Part, SmallMessagesAreDealtByTagAndEmptyOnesKept) {
  std::vector<std::byte> data(100);
  std::vector<Part> parts;
  for (int tag = 0; tag < 7; ++tag) append_parts(message_of(data.data(), 100, tag), 3, 100, parts);
  append_parts(message_of(nullptr, 0, 4), 3, 0, parts);
  ASSERT_EQ(parts.size(), 8U);
  for (int tag = 0; tag < 7; ++tag) {
    EXPECT_EQ(parts[static_cast<std::size_t>(tag)].lane, tag % 3);
    EXPECT_EQ(parts[static_cast<std::size_t>(tag)].bytes, 100U);
  }
  EXPECT_EQ(parts[7].bytes, 0U);
}

TEST(Part, AMessageWithALaneStaysWholeOnIt) {
  std::vector<std::byte> data(1000);
  std::vector<Part> parts;
  append_parts(message_of(data.data(), 1000, 0, 2), 3, 10, parts);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].lane, 2);
  EXPECT_EQ(parts[0].bytes, 1000U);
}

TEST(Part, PiecesCoverAPartInOrderOnItsLane) {
  std::vector<std::byte> data(1000);
  for (const std::size_t piece : {0UL, 1UL, 300UL, 999UL, 1000UL, 5000UL}) {
    std::vector<Part> parts;
    append_parts(message_of(data.data(), data.size(), 5), 3, 5000, parts);
    append_parts(message_of(nullptr, 0, 6), 3, 5000, parts);
    cut_into_pieces(parts, piece);
    std::size_t covered = 0;
    std::size_t at = 0;
    for (; covered < data.size(); ++at) {
      EXPECT_EQ(parts.at(at).data, data.data() + covered);
      EXPECT_EQ(parts.at(at).lane, 5 % 3);
      EXPECT_LE(parts.at(at).bytes, piece == 0 ? data.size() : piece);
      covered += parts.at(at).bytes;
    }
    ASSERT_EQ(parts.size(), at + 1);  // the message without bytes stays one
    EXPECT_EQ(parts.back().tag, 6);
  }
}

TEST(Part, StepsComeInOrderAndMessagesOfAStepAsListed) {
  std::vector<Message> messages;
  for (int i = 0; i < 12; ++i) {
    messages.push_back({Message::Kind::receive, nullptr, 0, 0, i, 0, 3 - i % 4});
  }
  const std::vector<Part> parts = parts_of(messages, 2, 1000);
  ASSERT_EQ(parts.size(), messages.size());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    ASSERT_LE(parts[i - 1].step, parts[i].step);
    if (parts[i - 1].step == parts[i].step) {
      EXPECT_LT(parts[i - 1].tag, parts[i].tag);
    }
  }
}

TEST(Strategy, NamesGoBothWays) {
  for (const Strategy value : {Strategy::automatic, Strategy::sequential, Strategy::concurrent,
                               Strategy::threaded, Strategy::direct}) {
    EXPECT_EQ(strategy(name(value)), value);
  }
  EXPECT_EQ(strategy("auto"), Strategy::automatic);
  try {
    strategy("parallel");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    EXPECT_NE(std::string(error.what()).find("sequential, concurrent, threaded"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace ropewalk::transport
