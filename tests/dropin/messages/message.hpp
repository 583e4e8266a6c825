// This file describes one random message: its memory, its datatypes, and how it is sent and
// received. It also checks what has come.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "counted.hpp"
#include "profiled.hpp"

namespace random_messages {

inline int rank, size;
inline std::atomic<int> failures;
inline thread_local std::uint64_t seed;
inline thread_local MPI_Comm everybody;  // all ranks, and this thread of each
inline thread_local int first_tag;
// Tags below 1000 are each thread's own.
inline int own_tag(int tag) { return first_tag + tag; }
inline std::size_t least = std::size_t{128} << 10;
inline constexpr std::size_t most = std::size_t{2} << 20;
inline constexpr std::size_t pool_bytes = std::size_t{64} << 20;

inline void expect(bool holds, const char* what) {
  if (holds || ++failures > 20) return;
  std::fprintf(stderr, "rank %d, seed %llu: not so: %s\n", rank,
               static_cast<unsigned long long>(seed), what);
}

// A Pool is memory that MPI gives, which is the arena's where there is one. It is handed out anew
// in each round.
class Pool {
 public:
  Pool() { MPI_Alloc_mem(static_cast<MPI_Aint>(pool_bytes), MPI_INFO_NULL, &memory_); }
  ~Pool() { MPI_Free_mem(memory_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  void clear() { used_ = 0; }
  unsigned char* take(std::size_t bytes) {
    const std::size_t at = (used_ + 63) / 64 * 64;
    used_ = at + bytes;
    if (used_ > pool_bytes) MPI_Abort(MPI_COMM_WORLD, 3);
    return static_cast<unsigned char*>(memory_) + at;
  }

 private:
  void* memory_ = nullptr;
  std::size_t used_ = 0;
};

// A Layout says how elements lie in memory. A unit is what a count of 1 of the type holds, and
// unit() returns its bytes without gaps.
struct Layout {
  MPI_Datatype basic, type;
  std::size_t basic_bytes;
  std::vector<std::size_t> offsets;  // offset of each basic element in a unit
  std::size_t extent;
  std::size_t unit() const { return offsets.size() * basic_bytes; }
};
inline std::vector<Layout> layouts;

inline Layout predefined(MPI_Datatype type, std::size_t bytes) {
  return {type, type, bytes, {0}, bytes};
}

inline Layout strided(MPI_Datatype type, std::size_t bytes) {
  Layout made{type, MPI_DATATYPE_NULL, bytes, {}, 0};
  MPI_Type_vector(4, 1, 2, type, &made.type);
  MPI_Type_commit(&made.type);
  for (std::size_t i = 0; i < 4; ++i) made.offsets.push_back(2 * i * bytes);
  made.extent = 7 * bytes;
  return made;
}

// The type has three elements and a gap, as a struct of a program may have.
inline Layout triple(MPI_Datatype type, std::size_t bytes) {
  Layout made{type, MPI_DATATYPE_NULL, bytes, {0, bytes, 2 * bytes}, 4 * bytes};
  MPI_Datatype three;
  MPI_Type_contiguous(3, type, &three);
  MPI_Type_create_resized(three, 0, static_cast<MPI_Aint>(4 * bytes), &made.type);
  MPI_Type_commit(&made.type);
  MPI_Type_free(&three);
  return made;
}

// These types have no gaps, so that a sender's data lies as the message does.
inline Layout vector(MPI_Datatype type, std::size_t bytes) {
  Layout made{type, MPI_DATATYPE_NULL, bytes, {}, 6 * bytes};
  MPI_Type_vector(3, 2, 2, type, &made.type);
  MPI_Type_commit(&made.type);
  for (std::size_t i = 0; i < 6; ++i) made.offsets.push_back(i * bytes);
  return made;
}

inline Layout structure(MPI_Datatype type, std::size_t bytes) {
  Layout made{type, MPI_DATATYPE_NULL, bytes, {}, 12 * bytes};
  const int lengths[3] = {3, 1, 8};
  const MPI_Aint places[3] = {0, static_cast<MPI_Aint>(3 * bytes),
                              static_cast<MPI_Aint>(4 * bytes)};
  const MPI_Datatype types[3] = {type, type, type};
  MPI_Type_create_struct(3, lengths, places, types, &made.type);
  MPI_Type_commit(&made.type);
  for (std::size_t i = 0; i < 12; ++i) made.offsets.push_back(i * bytes);
  return made;
}

// Each basic type has so many layouts, of which the first is itself.
inline constexpr std::size_t layouts_each = 5;

inline void make_layouts() {
  for (const auto& [type, bytes] :
       {std::pair{MPI_BYTE, std::size_t{1}}, std::pair{MPI_INT, sizeof(int)},
        std::pair{MPI_DOUBLE, sizeof(double)}}) {
    layouts.push_back(predefined(type, bytes));
    layouts.push_back(strided(type, bytes));
    layouts.push_back(triple(type, bytes));
    layouts.push_back(vector(type, bytes));
    layouts.push_back(structure(type, bytes));
  }
}

inline unsigned char byte_of(std::uint64_t key, std::size_t at) {
  return static_cast<unsigned char>((key + at * 0x9e3779b97f4a7c15ULL) >> 56);
}

using Random = std::mt19937_64;
inline std::size_t below(Random& random, std::size_t n) { return random() % n; }

// The last four are persistent; the last one's request is freed while it is active.
enum class Send {
  send,
  ssend,
  rsend,
  isend,
  issend,
  irsend,
  freed,
  persistent,
  persistent_ssend,
  persistent_rsend,
  persistent_freed
};
inline constexpr std::size_t sends = 11;
// Those from `probe` to `improbe` find their message by a probe before they receive it. The last
// two are persistent: one is started before the message is sent, and one afterwards.
enum class Receive { irecv, recv, probe, iprobe, mprobe, improbe, persistent, late_persistent };

struct Message {
  MPI_Comm comm;
  int source, destination, tag;  // ranks of the communicator
  bool mine_out, mine_in;
  std::size_t out_layout, in_layout, units, spare;
  std::uint64_t key;
  Send send;
  Receive receive;
  bool any_source, arena_out, arena_in;
  bool again = false;  // what is persistent is to be started once more
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
  unsigned char *out = nullptr, *in = nullptr;
  std::vector<unsigned char> own_out, own_in;

  bool is_ready() const {
    return send == Send::rsend || send == Send::irsend || send == Send::persistent_rsend;
  }
  bool posted_early() const { return receive == Receive::irecv || receive == Receive::persistent; }
  std::size_t bytes() const { return units * 12 * layouts[out_layout].basic_bytes; }
};

// A message is a number of units of 12 elements each, which every layout can express as a count.
inline int count_of(std::size_t layout, std::size_t units) {
  return static_cast<int>(units * 12 / layouts[layout].offsets.size());
}

template <class Each>
inline void each_byte(const Layout& layout, std::size_t bytes, Each each) {
  const std::size_t unit = layout.unit();
  for (std::size_t at = 0; at < bytes; at += layout.basic_bytes) {
    const std::size_t in_unit = at % unit / layout.basic_bytes;
    const std::size_t place = at / unit * layout.extent + layout.offsets[in_unit];
    for (std::size_t i = 0; i < layout.basic_bytes; ++i) each(place + i, at + i);
  }
}

inline std::size_t span_of(std::size_t layout, std::size_t units) {
  return static_cast<std::size_t>(count_of(layout, units)) * layouts[layout].extent + 64;
}

struct World {
  std::vector<MPI_Comm> comms;
  Pool out, in;
};

inline std::size_t draw_bytes(Random& random) {
  switch (below(random, 6)) {
    case 0:
      return 0;
    case 1:
      return 63 + below(random, 3);
    case 2:
    case 3:
      return least - 16 + below(random, 33);
    default:
      return 1 + below(random, below(random, 3) == 0 ? most : least * 3);
  }
}

inline Message draw(Random& random, const World& world, int tag) {
  Message m{};
  m.comm = world.comms[below(random, world.comms.size())];
  m.source = static_cast<int>(below(random, static_cast<std::size_t>(size)));
  m.destination =
      (m.source + static_cast<int>(below(random, static_cast<std::size_t>(size)))) % size;
  m.tag = tag;
  const std::size_t basic = below(random, 3);
  const auto layout = [&](std::size_t plain) {
    const std::size_t other = 1 + below(random, layouts_each - 1);
    return basic * layouts_each + (below(random, 10) < plain ? 0 : other);
  };
  m.out_layout = layout(5);
  m.in_layout = layout(5);
  const std::size_t unit = 12 * layouts[m.out_layout].basic_bytes;
  const std::size_t bytes = draw_bytes(random);
  m.units = (bytes + unit - 1) / unit;
  m.spare = below(random, 3) == 0 ? below(random, 200) : 0;
  m.key = random();
  m.send = static_cast<Send>(below(random, sends));
  m.receive = below(random, 2) == 0 ? Receive::irecv : static_cast<Receive>(1 + below(random, 7));
  m.any_source = below(random, 4) == 0;
  m.arena_out = below(random, 10) < 8;
  m.arena_in = below(random, 10) < 6;
  const bool blocks = m.send <= Send::rsend;
  // A send that blocks, or that must find its receive, has its receive posted before.
  if (blocks || m.is_ready() || m.source == m.destination) {
    m.receive = m.tag % 2 == 0 ? Receive::irecv : Receive::persistent;
  }
  int own = 0;
  MPI_Comm_rank(m.comm, &own);
  m.mine_out = own == m.source;
  m.mine_in = own == m.destination;
  return m;
}

inline void received(Message& m, const MPI_Status& status) {
  const Layout& layout = layouts[m.in_layout];
  int count = -1, cancelled = -1, elements = -1;
  MPI_Get_count(&status, layout.type, &count);
  MPI_Get_elements(&status, layout.basic, &elements);
  MPI_Test_cancelled(&status, &cancelled);
  expect(count == count_of(m.in_layout, m.units), "the count of a message");
  expect(elements == static_cast<int>(m.units * 12), "the elements of a message");
  expect(status.MPI_SOURCE == m.source && status.MPI_TAG == m.tag, "source and tag");
  expect(cancelled == 0, "a message is not cancelled");
  bool same = true;
  each_byte(layout, m.bytes(), [&](std::size_t place, std::size_t at) {
    same = same && m.in[place] == byte_of(m.key, at);
    m.in[place] = 0xee;
  });
  expect(same, "the bytes of a message");
  const std::size_t span = span_of(m.in_layout, m.units + m.spare);
  expect(std::all_of(m.in, m.in + span, [](unsigned char byte) { return byte == 0xee; }),
         "nothing else was written");
}

// Probes for a message, which must be reported as it was sent.
inline void look_at(const Message& m, const MPI_Status& status) {
  int bytes = -1;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  expect(bytes == static_cast<int>(m.bytes()), "the size that a probe reports");
  expect(status.MPI_SOURCE == m.source && status.MPI_TAG == m.tag, "what a probe reports");
}

// Receives a message that a probe finds first. A receive that is not blocking has a request then.
inline void receive_probed(Message& m, int source, int room, MPI_Datatype type,
                           MPI_Status& status) {
  MPI_Message found = MPI_MESSAGE_NULL;
  int flag = 0;
  // Whatever lies there may be looked at by anybody.
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m.comm, &flag, MPI_STATUS_IGNORE);
  flag = 0;
  switch (m.receive) {
    case Receive::probe:
      MPI_Probe(source, m.tag, m.comm, &status);
      look_at(m, status);
      MPI_Recv(m.in, room, type, source, m.tag, m.comm, &status);
      return received(m, status);
    case Receive::iprobe:
      while (flag == 0) MPI_Iprobe(source, m.tag, m.comm, &flag, &status);
      look_at(m, status);
      MPI_Irecv(m.in, room, type, source, m.tag, m.comm, &m.receiving);
      return;
    case Receive::mprobe:
      MPI_Mprobe(source, m.tag, m.comm, &found, &status);
      look_at(m, status);
      MPI_Mrecv(m.in, room, type, &found, &status);
      expect(found == MPI_MESSAGE_NULL, "a received message is null");
      return received(m, status);
    default:
      while (flag == 0) MPI_Improbe(source, m.tag, m.comm, &flag, &found, &status);
      look_at(m, status);
      MPI_Imrecv(m.in, room, type, &found, &m.receiving);
      expect(found == MPI_MESSAGE_NULL, "a message that is being received is null");
  }
}

// Starts a persistent receive. What it is to receive may have been taken out of MPI by a probe.
inline void start_receive(Message& m) {
  int flag = 0;
  if (m.receive == Receive::late_persistent) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m.comm, &flag, MPI_STATUS_IGNORE);
  }
  if (m.tag % 2 == 0) {
    MPI_Start(&m.receiving);
  } else {
    MPI_Startall(1, &m.receiving);
  }
}

// An inactive request is complete, and its status is empty.
inline void check_inactive(Message& m) {
  MPI_Status status;
  int flag = 0, count = -1;
  if (m.tag % 3 == 0) {
    MPI_Wait(&m.receiving, &status);
  } else {
    MPI_Request_get_status(m.receiving, &flag, &status);
    expect(flag == 1, "an inactive request is complete");
  }
  MPI_Get_count(&status, MPI_BYTE, &count);
  expect(count == 0 && status.MPI_SOURCE == MPI_ANY_SOURCE, "the status of an inactive request");
  expect(m.receiving != MPI_REQUEST_NULL, "a persistent request stays");
}

inline void post_receive(World& world, Message& m) {
  if (!m.mine_in) return;
  const std::size_t span = span_of(m.in_layout, m.units + m.spare);
  if (!m.arena_in) m.own_in.resize(span);
  m.in = m.arena_in ? world.in.take(span) : m.own_in.data();
  std::memset(m.in, 0xee, span);
  const int room = count_of(m.in_layout, m.units + m.spare);
  const int source = m.any_source ? MPI_ANY_SOURCE : m.source;
  // The program may free its type at once.
  MPI_Datatype type;
  MPI_Type_dup(layouts[m.in_layout].type, &type);
  const bool derived = m.in_layout % layouts_each != 0;
  MPI_Status status;
  if (m.receive == Receive::irecv) {
    MPI_Irecv(m.in, room, derived ? type : layouts[m.in_layout].type, source, m.tag, m.comm,
              &m.receiving);
  } else if (m.receive >= Receive::persistent) {
    MPI_Recv_init(m.in, room, derived ? type : layouts[m.in_layout].type, source, m.tag, m.comm,
                  &m.receiving);
    check_inactive(m);
    start_receive(m);
  } else if (m.receive != Receive::recv) {
    receive_probed(m, source, room, derived ? type : layouts[m.in_layout].type, status);
  } else {
    MPI_Recv(m.in, room, layouts[m.in_layout].type, source, m.tag, m.comm, &status);
    received(m, status);
  }
  MPI_Type_free(&type);
}

inline void fill(World& world, Message& m) {
  if (!m.mine_out) return;
  const std::size_t span = span_of(m.out_layout, m.units);
  if (!m.arena_out) m.own_out.resize(span);
  m.out = m.arena_out ? world.out.take(span) : m.own_out.data();
  each_byte(layouts[m.out_layout], m.bytes(),
            [&](std::size_t place, std::size_t at) { m.out[place] = byte_of(m.key, at); });
}

// Sets a persistent send up, and frees its type at once.
inline void set_up_send(Message& m, int count) {
  MPI_Datatype type;
  MPI_Type_dup(layouts[m.out_layout].type, &type);
  const bool derived = m.out_layout % layouts_each != 0;
  const auto init = m.send == Send::persistent_ssend   ? &MPI_Ssend_init
                    : m.send == Send::persistent_rsend ? &MPI_Rsend_init
                                                       : &MPI_Send_init;
  init(m.out, count, derived ? type : layouts[m.out_layout].type, m.destination, m.tag, m.comm,
       &m.sending);
  MPI_Type_free(&type);
}

inline void start_persistent_send(Message& m, int count) {
  if (m.sending == MPI_REQUEST_NULL) set_up_send(m, count);
  if (m.tag % 2 == 0) {
    MPI_Start(&m.sending);
  } else {
    MPI_Startall(1, &m.sending);
  }
  if (m.send != Send::persistent_freed) return;
  MPI_Request_free(&m.sending);
  expect(m.sending == MPI_REQUEST_NULL, "a freed request is null");
}

inline void start_send(Message& m) {
  if (!m.mine_out) return;
  const int count = count_of(m.out_layout, m.units);
  const MPI_Datatype type = layouts[m.out_layout].type;
  MPI_Request freed = MPI_REQUEST_NULL;
  switch (m.send) {
    case Send::send:
      MPI_Send(m.out, count, type, m.destination, m.tag, m.comm);
      break;
    case Send::ssend:
      MPI_Ssend(m.out, count, type, m.destination, m.tag, m.comm);
      break;
    case Send::rsend:
      MPI_Rsend(m.out, count, type, m.destination, m.tag, m.comm);
      break;
    case Send::isend:
      MPI_Isend(m.out, count, type, m.destination, m.tag, m.comm, &m.sending);
      break;
    case Send::issend:
      MPI_Issend(m.out, count, type, m.destination, m.tag, m.comm, &m.sending);
      break;
    case Send::irsend:
      MPI_Irsend(m.out, count, type, m.destination, m.tag, m.comm, &m.sending);
      break;
    case Send::freed:
      MPI_Isend(m.out, count, type, m.destination, m.tag, m.comm, &freed);
      MPI_Request_free(&freed);
      expect(freed == MPI_REQUEST_NULL, "a freed request is null");
      break;
    case Send::persistent:
    case Send::persistent_ssend:
    case Send::persistent_rsend:
    case Send::persistent_freed:
      start_persistent_send(m, count);
      break;
  }
  // The program's buffer is its own again.
  if (m.send <= Send::rsend) std::memset(m.out, 0x11, span_of(m.out_layout, m.units) - 64);
}

}  // namespace random_messages
