// What a schedule is made of. Each function draws an action and adds its steps; every rank draws
// the same. Buffers and requests live as long as the steps that name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "schedule.hpp"
#include "world.hpp"

namespace mixed {

struct World {
  std::vector<Comm> comms;
  std::vector<Comm> exclusive;  // for add_anything() alone
};

// Bytes of one message or block, and in what kind of memory and layout they lie.
struct Data {
  std::size_t bytes;
  bool derived;  // layouts of ints, another one on each side
  bool mapped;
  std::uint64_t key;
  const Layout& layout(int side) const {
    return derived ? derived_layout(mix(key + static_cast<std::uint64_t>(side))) : bytes_layout();
  }
  std::size_t count(int side) const { return bytes / layout(side).size; }
};
// `most` bytes: nearly always far less.
Data draw_data(Random&, std::size_t most);

const Comm& draw_comm(Random&, const World&);
const Group& draw_group(Random&, const Comm&);

// A request and what is to be said of it once it is complete.
struct Pending {
  MPI_Request* request;
  std::function<void(const MPI_Status&)> done;
};
inline constexpr std::size_t ways_to_complete = 8;
const char* way_name(std::size_t how);
// MPI_Testall of a persistent collective ends in an error in MPICH 5.0.2 by itself.
std::size_t draw_way_of_persistent(Random&);
void complete(const std::vector<Pending>&, std::size_t how);

void add_messages(Schedule&, const World&);    // a batch of messages, waited for together
void add_cancelled(Schedule&, const World&);   // a receive that nothing matches
void add_shift(Schedule&, const World&);       // MPI_Sendrecv, MPI_Sendrecv_replace
void add_persistent(Schedule&, const World&);  // started again and again
// Several in both directions, in every mode of sending, started together.
void add_persistent_batch(Schedule&, const World&);
void add_partitioned(Schedule&, const World&);  // nothing where the MPI has none
// Messages received from anybody with any tag, between two barriers of all ranks.
void add_anything(Schedule&, const Comm& exclusive, double from, double to);

void make_operations();  // of the user
void free_operations();
void add_collective(Schedule&, const World&);
void add_collective_on(Schedule&, const Comm&, double time);
void add_pending_collective(Schedule&, const World&);  // nonblocking, waited for later
void add_made_communicator(Schedule&, const World&);
void add_operations(Schedule&, const World&);  // of all forms and modes (operations.hpp)
void add_neighbours(Schedule&, const World&);  // on a communicator made for them

void add_window(Schedule&, const World&);
void add_work(Schedule&, bool long_one);  // a rank is away from MPI for some time

}  // namespace mixed
