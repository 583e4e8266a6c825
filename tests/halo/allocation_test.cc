// An exchange allocates nothing: every operator new of this program is counted, but for those that
// the MPI of threads makes for itself.
#include <gtest/gtest.h>

#include <vector>

#include "halo/random_case.hpp"
#include "mpi/library.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "support/counted_allocations.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

void count_exchanges(int rank, Halo& halo, const char* what) {
  halo.exchange();
  at_rank_zero(rank, begin_counting);
  for (int i = 0; i < 3; ++i) halo.exchange();
  halo.start();
  for (int i = 0; i < 5; ++i) halo.test();
  halo.wait();
  at_rank_zero(rank, [&] { EXPECT_EQ(end_counting(), 0) << what; });
}

TEST(Allocation, TheCountingCounts) {
  begin_counting();
  ::operator delete(::operator new(1));  // a new-expression the compiler may leave out
  EXPECT_EQ(end_counting(), 1);
}

TEST(Allocation, ExchangesMakeNone) {
  const mpi::Library* plain = nullptr;
  run_ranks(4, [&](int rank) {
    at_rank_zero(rank, [&] {
      plain = &mpi::library();
      mpi::exchange_library(marked_library(*plain));
    });
    {
      const CartesianGrid grid(Communicator::world(), {2, 2, 1}, {true, false, true});
      EndpointSet endpoints(Communicator::world(), {.lanes = 2, .threads = true, .pin = false});
      std::vector<double, Allocator<double>> array(6 * 7 * 8);
      const std::vector<Field> fields{{array.data(), 8, {4, 5, 6}, {1, 1, 1}}};
      std::vector<std::byte, Allocator<std::byte>> packet(4096);
      std::vector<std::byte, Allocator<std::byte>> received(6 * 4096);
      FacePackets faces;
      for (std::size_t i = 0; i < 6; ++i) {
        faces.send.push_back(packet.data());
        faces.receive.push_back(received.data() + i * 4096);
        faces.bytes.push_back(4096);
      }
      for (Strategy strategy :
           {Strategy::sequential, Strategy::concurrent, Strategy::threaded, Strategy::direct}) {
        Halo in_place(grid, endpoints, faces, {strategy, Corners::no});
        count_exchanges(rank, in_place, name(strategy));
        Halo packed(grid, endpoints, fields, {strategy, Corners::yes});
        count_exchanges(rank, packed, name(strategy));
      }
      Halo put(grid, endpoints, HaloBuffers{std::vector<std::size_t>(6, 4096)},
               {Strategy::put, Corners::no});
      count_exchanges(rank, put, name(Strategy::put));
    }
    at_rank_zero(rank, [&] { mpi::exchange_library(plain); });
  });
}

}  // namespace
}  // namespace ropewalk::test
