// This program sends random messages, which the drop-in takes through memory with
// ROPEWALK_MESSAGES=on. It uses every form of sending and receiving that the drop-in takes, and no
// other, so that each rank promises to understand. It checks each byte, count and status against
// what was to be sent.
//
//   messages [--seeds A..B] [--least BYTES] [--threads N]
//
// So many threads of each rank do so at the same time, with the same communicators and tags of
// their own, and each with a communicator for what takes any tag.
//
// Sizes around `least` are drawn most often, as are those around 0 and 64 bytes.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "requests.hpp"

namespace random_messages {
namespace {

// Sends random messages, all of which are under way together.
void graph(Random& random, World& world) {
  std::vector<Message> messages;
  const std::size_t number = 1 + below(random, 12);
  for (std::size_t i = 0; i < number; ++i) {
    messages.push_back(draw(random, world, own_tag(static_cast<int>(100 + i))));
  }
  const std::size_t how = below(random, 10);
  for (Message& m : messages) fill(world, m);
  for (Message& m : messages) {
    if (m.posted_early()) post_receive(world, m);
  }
  const bool ready =
      std::any_of(messages.begin(), messages.end(), [](const Message& m) { return m.is_ready(); });
  if (ready) MPI_Barrier(everybody);
  for (const bool blocking : {false, true}) {
    for (Message& m : messages) {
      if ((m.send <= Send::rsend) == blocking) start_send(m);
    }
  }
  for (Message& m : messages) {
    if (!m.posted_early()) post_receive(world, m);
  }
  Random own(random() + static_cast<std::uint64_t>(rank));
  Requests(own, messages).complete(how);
  MPI_Barrier(everybody);
}

// Starts the same persistent receives several times, each time for another message, and some
// persistent sends as well.
void rounds(Random& random, World& world) {
  std::vector<Message> messages;
  world.in.clear();
  for (int i = 0; i < 4; ++i) {
    messages.push_back(draw(random, world, own_tag(200 + i)));
    Message& m = messages.back();
    constexpr Send kinds[] = {Send::isend, Send::freed, Send::persistent, Send::persistent_ssend};
    m.send = kinds[below(random, 4)];
    m.receive = below(random, 2) == 0 ? Receive::persistent : Receive::late_persistent;
  }
  const std::size_t number = 1 + below(random, 3);
  for (std::size_t round = 0; round < number; ++round) {
    const std::size_t how = below(random, 10);
    world.out.clear();
    for (Message& m : messages) {
      m.again = round + 1 < number;
      m.key = random();
      if (m.send < Send::persistent) m.sending = MPI_REQUEST_NULL;
      fill(world, m);
    }
    const auto post = [&](Message& m) {
      if (m.receiving != MPI_REQUEST_NULL) return start_receive(m);
      post_receive(world, m);
    };
    for (Message& m : messages) {
      if (m.posted_early()) post(m);
    }
    for (Message& m : messages) start_send(m);
    for (Message& m : messages) {
      if (!m.posted_early()) post(m);
    }
    Random own(random() + static_cast<std::uint64_t>(rank));
    Requests(own, messages).complete(how);
    MPI_Barrier(everybody);
  }
}

struct Shift {
  bool replace;
  unsigned char *out, *in;
  int count, to, from;
  MPI_Comm comm;
};

// The same without blocking, and with a receive that has gaps. Returns false where MPI is too old.
bool shift_later([[maybe_unused]] Random& random, [[maybe_unused]] const Shift& s,
                 [[maybe_unused]] MPI_Status* status) {
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  const bool null = below(random, 4) == 0;
  // A receive from nobody stands beside it.
  if (null) {
    MPI_Isendrecv(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0,
                  s.comm, &requests[0]);
  }
  if (s.replace) {
    MPI_Isendrecv_replace(s.out, s.count, MPI_DOUBLE, s.to, own_tag(1), s.from, own_tag(1), s.comm,
                          &requests[1]);
  } else {
    MPI_Isendrecv(s.out, s.count, MPI_DOUBLE, s.to, own_tag(1), s.in, s.count, MPI_DOUBLE, s.from,
                  own_tag(1), s.comm, &requests[1]);
  }
  int at = -1, number = 0, places[2];
  switch (below(random, 4)) {
    case 0:
      MPI_Waitall(2, requests, statuses);
      expect(std::getenv("ROPEWALK_MESSAGES") == nullptr || !null ||
                 statuses[0].MPI_SOURCE == MPI_PROC_NULL,
             "the status of nobody's message");
      *status = statuses[1];
      break;
    case 1:
      while (at != 1) MPI_Waitany(2, requests, &at, status);
      break;
    case 2:
      while (number == 0 || places[number - 1] != 1) {
        MPI_Testsome(2, requests, &number, places, statuses);
      }
      *status = statuses[number - 1];
      break;
    default:
      MPI_Wait(&requests[1], status);
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  expect(requests[1] == MPI_REQUEST_NULL, "an exchange that is complete is null");
  return true;
#else
  return false;
#endif
}

// Every rank shifts a message around the ring.
void shift(Random& random, World& world) {
  const MPI_Comm comm = world.comms[below(random, world.comms.size())];
  const std::size_t bytes = draw_bytes(random) / 8 * 8;
  const bool replace = below(random, 3) == 0;
  int own = 0;
  MPI_Comm_rank(comm, &own);
  const int to = (own + 1) % size, from = (own + size - 1) % size;
  unsigned char* out = world.out.take(bytes + 64);
  unsigned char* in = world.in.take(bytes + 64);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = byte_of(static_cast<std::uint64_t>(own), i);
  MPI_Status status;
  const int count = static_cast<int>(bytes / 8);
  const bool waits = below(random, 2) == 0;
  if (waits && shift_later(random, {replace, out, in, count, to, from, comm}, &status)) {
    if (replace) in = out;
  } else if (replace) {
    MPI_Sendrecv_replace(out, count, MPI_DOUBLE, to, own_tag(1), from, own_tag(1), comm, &status);
    in = out;
  } else {
    MPI_Sendrecv(out, count, MPI_DOUBLE, to, own_tag(1), in, count, MPI_DOUBLE, from, own_tag(1),
                 comm, &status);
  }
  int got = -1;
  MPI_Get_count(&status, MPI_DOUBLE, &got);
  // MPICH's own MPI_Isendrecv tells neither count nor source.
  const bool told = std::getenv("ROPEWALK_MESSAGES") != nullptr || !waits;
  expect(!told || (got == count && status.MPI_SOURCE == from && status.MPI_TAG == own_tag(1)),
         "status of a shift");
  bool same = true;
  for (std::size_t i = 0; i < bytes; ++i) {
    same = same && in[i] == byte_of(static_cast<std::uint64_t>(from), i);
  }
  expect(same, "the bytes of a shift");
}

// Receives whatever comes, in one of the ways to do so, and returns how many bytes its probe has
// reported, or -1 where there was none.
int take_anything(Random& random, unsigned char* in, MPI_Comm comm, MPI_Status* status) {
  MPI_Message found;
  MPI_Request request;
  int bytes = -1, flag = 0;
  const std::size_t how = below(random, 6);
  if (how == 1) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, status);
  while (how == 2 && flag == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, status);
  if (how == 3) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, status);
  while (how == 4 && flag == 0) {
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &found, status);
  }
  if (how >= 1 && how <= 4) MPI_Get_count(status, MPI_BYTE, &bytes);
  const int source = bytes < 0 ? MPI_ANY_SOURCE : status->MPI_SOURCE;
  const int tag = bytes < 0 ? MPI_ANY_TAG : status->MPI_TAG;
  const int room = bytes < 0 ? static_cast<int>(most) : bytes;
  switch (how) {
    case 2:
      MPI_Irecv(in, room, MPI_BYTE, source, tag, comm, &request);
      MPI_Wait(&request, status);
      break;
    case 3:
      MPI_Mrecv(in, room, MPI_BYTE, &found, status);
      break;
    case 4:
      MPI_Imrecv(in, room, MPI_BYTE, &found, &request);
      MPI_Wait(&request, status);
      break;
    case 5: {
      // What is received may have been probed for, by a probe of another tag alone.
      MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &flag, MPI_STATUS_IGNORE);
      const int self = MPI_PROC_NULL;
      MPI_Sendrecv(in, 0, MPI_BYTE, self, 0, in, room, MPI_BYTE, source, tag, comm, status);
      break;
    }
    default:
      MPI_Recv(in, room, MPI_BYTE, source, tag, comm, status);
  }
  return bytes;
}

// Every rank sends a few messages of any size to one rank, which takes whatever comes.
void anything(Random& random, World& world, MPI_Comm comm) {
  const int root = static_cast<int>(below(random, static_cast<std::size_t>(size)));
  const std::size_t each = 1 + below(random, 5);
  std::vector<std::size_t> bytes(each * static_cast<std::size_t>(size));
  for (std::size_t& one : bytes) one = std::max<std::size_t>(16, draw_bytes(random));
  std::vector<MPI_Request> sent;
  Random mine(random() + static_cast<std::uint64_t>(rank));
  for (std::size_t i = 0; i < each && rank != root; ++i) {
    const std::size_t n = bytes[static_cast<std::size_t>(rank) * each + i];
    unsigned char* out = world.out.take(n);
    std::memset(out, static_cast<int>(i + 1), n);
    sent.emplace_back();
    if (below(mine, 2) == 0) {
      MPI_Isend(out, static_cast<int>(n), MPI_BYTE, root, static_cast<int>(i % 2), comm,
                &sent.back());
    } else {
      sent.back() = MPI_REQUEST_NULL;
      MPI_Send(out, static_cast<int>(n), MPI_BYTE, root, static_cast<int>(i % 2), comm);
    }
  }
  if (rank == root) {
    std::vector<std::size_t> next(static_cast<std::size_t>(size), 0);
    unsigned char* in = world.in.take(most + 64);
    for (std::size_t left = each * static_cast<std::size_t>(size - 1); left > 0; --left) {
      MPI_Status status;
      const int probed = take_anything(mine, in, comm, &status);
      const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
      const std::size_t i = next[from]++, n = bytes[from * each + i];
      int count = -1;
      MPI_Get_count(&status, MPI_BYTE, &count);
      expect(count == static_cast<int>(n), "messages of one rank come in order");
      expect(probed < 0 || probed == count, "the size that a probe reports");
      expect(status.MPI_TAG == static_cast<int>(i % 2), "their tags");
      expect(std::all_of(
                 in, in + n,
                 [&](unsigned char byte) { return byte == static_cast<unsigned char>(i + 1); }),
             "their bytes");
    }
  }
  MPI_Waitall(static_cast<int>(sent.size()), sent.data(), MPI_STATUSES_IGNORE);
  MPI_Barrier(everybody);
}

void cancel(World& world) {
  MPI_Request request;
  MPI_Status status;
  int cancelled = 0;
  MPI_Irecv(world.in.take(least), static_cast<int>(least), MPI_BYTE, MPI_ANY_SOURCE, own_tag(99),
            MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  expect(cancelled != 0, "a receive is cancelled");
}

// A persistent receive that was cancelled can be started again.
void cancel_persistent(World& world) {
  unsigned char* in = world.in.take(least);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(in, static_cast<int>(least), MPI_BYTE, (rank + size - 1) % size, own_tag(98),
                MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Status statuses[2];
    int cancelled = 0;
    MPI_Start(&requests[1]);
    MPI_Cancel(&requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Test_cancelled(&statuses[1], &cancelled);
    expect(cancelled != 0, "a persistent receive is cancelled");
  }
  MPI_Barrier(everybody);
  unsigned char* out = world.out.take(least);
  std::memset(out, rank, least);
  std::memset(in, 0xee, least);
  MPI_Start(&requests[1]);
  MPI_Request sent;
  MPI_Isend(out, static_cast<int>(least), MPI_BYTE, (rank + 1) % size, own_tag(98), MPI_COMM_WORLD,
            &sent);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  const auto from = static_cast<unsigned char>((rank + size - 1) % size);
  expect(std::all_of(in, in + least, [&](unsigned char byte) { return byte == from; }),
         "what comes after a receive was cancelled");
  MPI_Request_free(&requests[1]);
  expect(requests[1] == MPI_REQUEST_NULL, "a freed persistent request is null");
  MPI_Barrier(everybody);
}

// A persistent receive goes on, though its request was freed while it was active.
void free_active(World& world) {
  const std::size_t n = std::max<std::size_t>(least * 2, 256);
  unsigned char* a = rank == 0 ? world.out.take(n) : world.in.take(n);
  int b = 0;
  if (rank == 1) {
    MPI_Request request;
    std::memset(a, 0, n);
    MPI_Recv_init(a, static_cast<int>(n), MPI_BYTE, 0, own_tag(96), MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Request_free(&request);
    expect(request == MPI_REQUEST_NULL, "a freed active request is null");
    MPI_Send(&b, 1, MPI_INT, 0, own_tag(97), MPI_COMM_WORLD);
    // Messages keep their order, so that the first has come when the second has; and what was freed
    // makes progress in calls of the drop-in.
    MPI_Recv(&b, 1, MPI_INT, 0, own_tag(97), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&b, 1, MPI_INT, 0, own_tag(97), MPI_COMM_WORLD);
    for (int i = 0; i < 1'000'000 && a[n - 1] != 5; ++i) {
      int flag = 0;
      MPI_Iprobe(0, own_tag(97), MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    expect(std::all_of(a, a + n, [](unsigned char byte) { return byte == 5; }),
           "what a freed request receives");
  } else if (rank == 0) {
    std::memset(a, 5, n);
    MPI_Recv(&b, 1, MPI_INT, 1, own_tag(97), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(a, static_cast<int>(n), MPI_BYTE, 1, own_tag(96), MPI_COMM_WORLD);
    MPI_Send(&b, 1, MPI_INT, 1, own_tag(97), MPI_COMM_WORLD);
    MPI_Recv(&b, 1, MPI_INT, 1, own_tag(97), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// This is the standard's example of progress: the receive of `a` is posted, so that its synchronous
// send completes, though the receiver waits for `b`.
void progress(World& world) {
  const std::size_t n = std::max<std::size_t>(least * 2, 256);
  unsigned char* a = rank == 0 ? world.out.take(n) : world.in.take(n);
  int b = 0;
  if (rank == 0) {
    std::memset(a, 7, n);
    MPI_Ssend(a, static_cast<int>(n), MPI_BYTE, 1, own_tag(1), MPI_COMM_WORLD);
    MPI_Send(&b, 1, MPI_INT, 1, own_tag(2), MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(a, static_cast<int>(n), MPI_BYTE, 0, own_tag(1), MPI_COMM_WORLD, &request);
    MPI_Recv(&b, 1, MPI_INT, 0, own_tag(2), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(std::all_of(a, a + n, [](unsigned char byte) { return byte == 7; }), "what was sent");
  }
}

// Here the receiver is in a collective, and the send must complete all the same. It is not
// synchronous, since MPI alone serves those to a receiver that probes.
void progress_in_barrier(World& world) {
  const std::size_t n = std::max<std::size_t>(least * 2, 256);
  MPI_Request request = MPI_REQUEST_NULL;
  unsigned char* a = world.in.take(n);
  if (rank == 1) {
    MPI_Irecv(a, static_cast<int>(n), MPI_BYTE, 0, own_tag(3), MPI_COMM_WORLD, &request);
  }
  if (rank == 0) {
    unsigned char* out = world.out.take(n);
    std::memset(out, 9, n);
    MPI_Send(out, static_cast<int>(n), MPI_BYTE, 1, own_tag(3), MPI_COMM_WORLD);
    std::memset(out, 0, n);
  }
  MPI_Barrier(everybody);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank != 1) return;
  expect(std::all_of(a, a + n, [](unsigned char byte) { return byte == 9; }), "what was kept");
}

void run(World& world, MPI_Comm exclusive, std::uint64_t thread) {
  Random random(seed * 64 + static_cast<std::uint64_t>(size) + (thread << 32));
  for (int step = 0; step < 30; ++step) {
    world.out.clear();
    world.in.clear();
    const std::size_t drawn = below(random, 10);
    if (drawn < 6) {
      graph(random, world);
    } else if (drawn < 8) {
      shift(random, world);
    } else if (drawn < 9) {
      anything(random, world, exclusive);
      rounds(random, world);
    } else {
      cancel(world);
      cancel_persistent(world);
      if (size > 1) free_active(world);
      if (size > 1) progress(world);
      if (size > 1) progress_in_barrier(world);
    }
  }
}

}  // namespace
}  // namespace random_messages

namespace {

using namespace random_messages;

std::uint64_t first_seed = 1, last_seed = 10;
int threads = 1;

void read_arguments(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    char* end = nullptr;
    const std::string name = argv[i];
    if (name == "--seeds") {
      first_seed = last_seed = std::strtoull(argv[i + 1], &end, 10);
      if (*end == '.') last_seed = std::strtoull(end + 2, nullptr, 10);
    } else if (name == "--threads") {
      threads = std::atoi(argv[i + 1]);
    } else {
      least = std::strtoull(argv[i + 1], nullptr, 10);
    }
  }
}

// The communicators of one thread.
struct Own {
  MPI_Comm everybody, exclusive;
};

void run_thread(int thread, const Own& own, MPI_Comm turned) {
  World world;
  world.comms = {MPI_COMM_WORLD, turned};
  everybody = own.everybody;
  first_tag = 1000 * thread;
  for (seed = first_seed; seed <= last_seed; ++seed) {
    run(world, own.exclusive, static_cast<std::uint64_t>(thread));
  }
}

void run_threads(MPI_Comm turned) {
  std::vector<Own> own(static_cast<std::size_t>(threads));
  for (Own& one : own) {
    MPI_Comm_dup(MPI_COMM_WORLD, &one.everybody);
    MPI_Comm_dup(MPI_COMM_WORLD, &one.exclusive);
  }
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { run_thread(i, own[static_cast<std::size_t>(i)], turned); });
  }
  run_thread(0, own[0], turned);
  for (std::thread& one : others) one.join();
  for (Own& one : own) {
    MPI_Comm_free(&one.everybody);
    MPI_Comm_free(&one.exclusive);
  }
}

}  // namespace

int main(int argc, char** argv) {
  read_arguments(argc, argv);
  int provided = 0;
  const int wanted = threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided < wanted) {
    if (rank == 0) std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
  make_layouts();
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  run_threads(turned);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i % layouts_each != 0) MPI_Type_free(&layouts[i].type);
  }
  MPI_Comm_free(&turned);
  int all = 0, own = failures;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
