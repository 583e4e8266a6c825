// Wrong input: every rank gets the error, it names the argument and the remedy, and no rank is left
// waiting (the MPI of threads reports a deadlock).
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

// Runs `body` on `ranks` ranks and expects the same Error(argument) on each, with these words.
void expect_on_every_rank(int ranks, const std::vector<std::string>& words,
                          const std::function<void(int)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  ASSERT_NO_THROW(run_ranks(ranks, [&](int rank) {
    try {
      body(rank);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument) << error.what();
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
  }));
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    EXPECT_NE(text.find("; "), std::string::npos) << "no remedy in: " << text;
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
    }
  }
}

constexpr int ranks = 4;
constexpr int odd = 2;  // the rank that is wrong where one is

void make_grid(std::vector<int> extents, std::vector<bool> periodic) {
  const CartesianGrid grid(Communicator::world(), std::move(extents), std::move(periodic));
}

TEST(GridErrors, OnEveryRank) {
  expect_on_every_rank(ranks, {"extents: 2.3", "6 ranks", "4 of"}, [](int) {
    make_grid({2, 3}, {true, true});
  });
  expect_on_every_rank(ranks, {"extents[1]: 0"}, [](int) { make_grid({4, 0}, {true, true}); });
  expect_on_every_rank(ranks, {"extents[0]: -2"}, [](int) { make_grid({-2, -2}, {true, true}); });
  expect_on_every_rank(ranks, {"extents: 0 dimensions"}, [](int) { make_grid({}, {}); });
  expect_on_every_rank(ranks, {"extents: 7 dimensions"}, [](int) {
    make_grid({4, 1, 1, 1, 1, 1, 1}, std::vector<bool>(7, false));
  });
  expect_on_every_rank(ranks, {"periodic: 1 entries"}, [](int) { make_grid({2, 2}, {true}); });
  expect_on_every_rank(ranks, {"extents", "2^31"}, [](int) {
    const int most = std::numeric_limits<int>::max();
    make_grid({most, most, most, most}, std::vector<bool>(4, false));
  });
}

TEST(GridErrors, OfOneRankReachAll) {
  expect_on_every_rank(ranks, {"extents", "rank 2"}, [](int rank) {
    make_grid(rank == odd ? std::vector<int>{2, 0} : std::vector<int>{2, 2}, {true, true});
  });
  expect_on_every_rank(ranks, {"extents[0]", "from 2 to 4"}, [](int rank) {
    make_grid(rank == odd ? std::vector<int>{4, 1} : std::vector<int>{2, 2}, {true, true});
  });
  expect_on_every_rank(ranks, {"periodic[1]"}, [](int rank) {
    make_grid({2, 2}, {true, rank == odd});
  });
  expect_on_every_rank(ranks, {"number of dimensions"}, [](int rank) {
    make_grid(rank == odd ? std::vector<int>{4} : std::vector<int>{2, 2},
              std::vector<bool>(rank == odd ? 1 : 2, true));
  });
}

// What a wrong halo is made from: right, until a test changes something on some rank.
struct Arrangement {
  std::vector<int> extents{2, 2};
  std::vector<bool> periodic{true, true};
  EndpointOptions endpoints{.lanes = 1, .threads = false, .pin = false};
  HaloOptions options{Strategy::concurrent, Corners::no};
  std::vector<double> array = std::vector<double>(36);
  std::vector<Field> fields{{nullptr, 8, {4, 4}, {1, 1}}};
  std::vector<std::byte> packet = std::vector<std::byte>(64);
  FacePackets faces;

  Arrangement() {
    fields[0].data = array.data();
    faces.send.assign(4, packet.data());
    for (std::size_t i = 0; i < 4; ++i) faces.receive.push_back(packet.data() + 8 + 8 * i);
    faces.bytes.assign(4, 8);
  }
  void make_fields() {
    const CartesianGrid grid(Communicator::world(), extents, periodic);
    EndpointSet set(Communicator::world(), endpoints);
    const Halo halo(grid, set, fields, options);
  }
  void make_faces() {
    const CartesianGrid grid(Communicator::world(), extents, periodic);
    EndpointSet set(Communicator::world(), endpoints);
    const Halo halo(grid, set, faces, options);
  }
};

using Change = std::function<void(Arrangement&)>;

// The change on one rank only, then on all: an error on every rank both times.
void expect_fields_refused(const std::vector<std::string>& words, const Change& change) {
  for (bool everywhere : {false, true}) {
    expect_on_every_rank(ranks, words, [&](int rank) {
      Arrangement arrangement;
      if (everywhere || rank == odd) change(arrangement);
      arrangement.make_fields();
    });
  }
}

void expect_faces_refused(const std::vector<std::string>& words, const Change& change) {
  for (bool everywhere : {false, true}) {
    expect_on_every_rank(ranks, words, [&](int rank) {
      Arrangement arrangement;
      if (everywhere || rank == odd) change(arrangement);
      arrangement.make_faces();
    });
  }
}

TEST(FieldErrors, RightInputPasses) {
  run_ranks(ranks, [](int) {
    Arrangement arrangement;
    arrangement.make_fields();
    arrangement.make_faces();
  });
}

TEST(FieldErrors, OnEveryRank) {
  expect_fields_refused({"field[0].data", "null"},
                        [](Arrangement& s) { s.fields[0].data = nullptr; });
  expect_fields_refused({"field[0].element_bytes"},
                        [](Arrangement& s) { s.fields[0].element_bytes = 0; });
  expect_fields_refused({"field[0].interior[1]: 0"},
                        [](Arrangement& s) { s.fields[0].interior[1] = 0; });
  expect_fields_refused({"field[0].interior: 3"},
                        [](Arrangement& s) { s.fields[0].interior.push_back(1); });
  expect_fields_refused({"field[0].ghost: 1"},
                        [](Arrangement& s) { s.fields[0].ghost.pop_back(); });
  expect_fields_refused({"field[0].ghost[1]: width 5", "4 cells"},
                        [](Arrangement& s) { s.fields[0].ghost[1] = 5; });
  expect_fields_refused({"field[0].ghost[0]", "width"}, [](Arrangement& s) {
    s.fields[0].ghost[0] = std::numeric_limits<std::size_t>::max();
  });
  expect_fields_refused({"field[0]"}, [](Arrangement& s) {
    s.fields[0].element_bytes = std::numeric_limits<std::size_t>::max() / 2;
  });
  expect_fields_refused({"fields"}, [](Arrangement& s) { s.fields.clear(); });
  expect_fields_refused({"strategy: 9"},
                        [](Arrangement& s) { s.options.strategy = static_cast<Strategy>(9); });
  expect_fields_refused({"corners: 3"},
                        [](Arrangement& s) { s.options.corners = static_cast<Corners>(3); });
  expect_fields_refused({"strategy: threaded", "threads", "lane"},
                        [](Arrangement& s) { s.options.strategy = Strategy::threaded; });
}

// The arguments are right on each rank alone, but wrong together.
void expect_difference_refused(const std::vector<std::string>& words, const Change& change) {
  expect_on_every_rank(ranks, words, [&](int rank) {
    Arrangement arrangement;
    if (rank == odd) change(arrangement);
    arrangement.make_fields();
  });
}

TEST(FieldErrors, DifferencesBetweenRanks) {
  expect_difference_refused({"field[0].ghost[1]"},
                            [](Arrangement& s) { s.fields[0].ghost[1] = 2; });
  expect_difference_refused({"field[0].element_bytes"},
                            [](Arrangement& s) { s.fields[0].element_bytes = 4; });
  expect_difference_refused({"fields"}, [](Arrangement& s) { s.fields.push_back(s.fields[0]); });
  expect_difference_refused({"strategy"},
                            [](Arrangement& s) { s.options.strategy = Strategy::sequential; });
  expect_difference_refused({"corners"}, [](Arrangement& s) { s.options.corners = Corners::yes; });
  expect_difference_refused({"field[0].interior[0]", "rank 2", "neighbour"},
                            [](Arrangement& s) { s.fields[0].interior[0] = 3; });
}

TEST(FieldErrors, WidthIsAllowedWhereNothingIsSent) {
  run_ranks(1, [](int) {
    const CartesianGrid grid(Communicator::world(), {1, 1}, {false, true});
    EndpointSet set(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    std::vector<double> array(7 * 4);
    const Field field{array.data(), 8, {1, 2}, {3, 1}};
    Halo halo(grid, set, std::vector<Field>{field});
    halo.exchange();
  });
}

TEST(FaceErrors, OnEveryRank) {
  expect_faces_refused({"faces.send: 3", "4"}, [](Arrangement& s) { s.faces.send.pop_back(); });
  expect_faces_refused({"faces.receive: 5"},
                       [](Arrangement& s) { s.faces.receive.push_back(nullptr); });
  expect_faces_refused({"faces.bytes: 0"}, [](Arrangement& s) { s.faces.bytes.clear(); });
  expect_faces_refused({"faces.send[1]", "null"},
                       [](Arrangement& s) { s.faces.send[1] = nullptr; });
  expect_faces_refused({"faces.receive[3]", "null"},
                       [](Arrangement& s) { s.faces.receive[3] = nullptr; });
}

TEST(FaceErrors, UnequalBytesNameBothRanksAndTheDirection) {
  expect_on_every_rank(ranks, {"faces.bytes", "rank 0", "rank 2", "dimension 0", "16", "8"},
                       [](int rank) {
                         Arrangement arrangement;
                         if (rank == odd) arrangement.faces.bytes[0] = 16;
                         arrangement.make_faces();
                       });
}

TEST(FaceErrors, OwnNeighbourToo) {
  expect_on_every_rank(1, {"faces.bytes[0]", "dimension 0"}, [](int) {
    Arrangement arrangement;
    arrangement.extents = {1, 1};
    arrangement.faces.bytes[0] = 16;
    arrangement.make_faces();
  });
}

TEST(HaloErrors, FacesOnOneRankAndFieldsOnAnother) {
  expect_on_every_rank(ranks, {"faces (0), fields (1) or buffers (2)"}, [](int rank) {
    Arrangement arrangement;
    if (rank == odd) {
      arrangement.make_faces();
    } else {
      arrangement.make_fields();
    }
  });
}

TEST(HaloErrors, GridsDiffer) {
  // Over halves of the world both are right; the halo is what joins them.
  expect_on_every_rank(ranks, {"endpoints", "2 ranks", "4 of the grid"}, [](int rank) {
    mpi::Comm half = mpi::split(mpi::comm_world(), rank / 2, rank);
    {
      const CartesianGrid grid(Communicator::world(), {4}, {true});
      EndpointSet set(Communicator(half.value), {.lanes = 1, .threads = false, .pin = false});
      Arrangement arrangement;
      arrangement.fields = {{arrangement.array.data(), 8, {4}, {1}}};
      try {
        const Halo halo(grid, set, arrangement.fields);
      } catch (...) {
        mpi::free(half);
        throw;
      }
    }
  });
}

// The endpoints are rows and columns of a 2x2 arrangement: the same sizes and partly the same
// ranks.
TEST(HaloErrors, EndpointsOfOtherRanks) {
  std::vector<std::string> texts(ranks);
  run_ranks(ranks, [&](int rank) {
    mpi::Comm row = mpi::split(mpi::comm_world(), rank / 2, rank % 2);
    mpi::Comm column = mpi::split(mpi::comm_world(), rank % 2, rank / 2);
    try {
      const CartesianGrid grid(Communicator(row.value), {2}, {true});
      EndpointSet set(Communicator(column.value), {.lanes = 1, .threads = false, .pin = false});
      std::vector<double> array(6);
      const Halo halo(grid, set, std::vector<Field>{{array.data(), 8, {4}, {1}}});
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
    mpi::free(row);
    mpi::free(column);
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("endpoints: "), std::string::npos) << text;
    EXPECT_NE(text.find("same communicator"), std::string::npos) << text;
  }
}

// Whoever asks after a start that has failed is not told that the exchange went well.
TEST(HaloErrors, AStartThatFailsIsNoSuccess) {
  std::atomic<bool> is_failing{false};
  RunOptions run;
  run.check_leaks = false;  // of an exchange that is given up
  run.fail = [&](const char* function, int) {
    return is_failing && std::string(function) == "MPI_Isend" ? 16 : 0;
  };
  run_ranks(
      2,
      [&](int) {
        Arrangement made;
        const CartesianGrid grid(Communicator::world(), {2, 1}, {true, true});
        EndpointSet set(Communicator::world(), made.endpoints);
        Halo halo(grid, set, made.fields, made.options);
        mpi::barrier(mpi::comm_world());
        is_failing = true;
        EXPECT_THROW(halo.exchange(), Error);
        EXPECT_THROW(halo.wait(), Error);
        EXPECT_THROW(halo.start(), Error);  // the endpoints are of no use any more
        EXPECT_THROW(halo.wait(), Error);
        EXPECT_THROW(halo.test(), Error);
        mpi::barrier(mpi::comm_world());
        is_failing = false;
      },
      run);
}

}  // namespace
}  // namespace ropewalk::test
