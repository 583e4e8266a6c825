// This file has messages whose sender or receiver does not know the other: from anybody with any
// tag, to the next one of a ring, and a receive that nothing matches.
#include <algorithm>
#include <memory>

#include "actions.hpp"

namespace mixed {

namespace {

// All go to one rank, which takes them as they come; which is which, the tag says.
struct Crowd {
  struct One {
    int source, tag;
    Data data;
    bool synchronous;
    std::unique_ptr<Buffer> out;
    MPI_Request sending = MPI_REQUEST_NULL;
    bool received = false;
  };
  MPI_Comm comm;
  int destination;
  std::size_t room = 1;
  bool probed;
  std::vector<One> messages;
  std::vector<std::unique_ptr<Buffer>> in;
  std::vector<MPI_Request> receiving;

  void post();
  void receive_each();
  void send(std::size_t index, bool blocking);
  void taken(std::size_t index, const MPI_Status&);
};

void Crowd::post() {
  receiving.resize(messages.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    in.push_back(std::make_unique<Buffer>(bytes_layout(), room, i % 2 == 0));
    MPI_Irecv(in[i]->data(), static_cast<int>(room), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
              &receiving[i]);
  }
}

void Crowd::receive_each() {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    MPI_Status status;
    in.push_back(std::make_unique<Buffer>(bytes_layout(), room, i % 2 == 0));
    if (probed) {
      int bytes = 0;
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      MPI_Recv(in[i]->data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
    } else {
      MPI_Recv(in[i]->data(), static_cast<int>(room), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
               &status);
    }
    taken(i, status);
  }
}

void Crowd::send(std::size_t index, bool blocking) {
  One& one = messages[index];
  const int count = static_cast<int>(one.data.bytes);
  one.out = std::make_unique<Buffer>(bytes_layout(), one.data.bytes, one.data.mapped);
  one.out->fill(0, one.data.bytes, one.data.key);
  if (blocking) {
    (one.synchronous || synchronous ? MPI_Ssend : MPI_Send)(one.out->data(), count, MPI_BYTE,
                                                            destination, one.tag, comm);
  } else {
    (one.synchronous || synchronous ? MPI_Issend : MPI_Isend)(
        one.out->data(), count, MPI_BYTE, destination, one.tag, comm, &one.sending);
  }
}

void Crowd::taken(std::size_t index, const MPI_Status& status) {
  for (One& one : messages) {
    if (one.tag != status.MPI_TAG) continue;
    int bytes = -1;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    expect(!one.received, "a message from anybody comes once");
    one.received = true;
    expect(status.MPI_SOURCE == one.source && bytes == static_cast<int>(one.data.bytes),
           "source and bytes of a message from anybody");
    expect(in[index]->take(0, one.data.bytes, one.data.key), "the bytes of a message from anybody");
    expect(in[index]->untouched(), "nothing else was written by a message from anybody");
    return;
  }
  expect(false, "a message from anybody has a tag that was sent");
}

std::shared_ptr<Crowd> draw_crowd(Schedule& schedule, const Comm& comm) {
  Random& random = schedule.random;
  const auto size = static_cast<std::size_t>(world_size);
  auto made = std::make_shared<Crowd>();
  made->comm = comm.handle;
  made->destination = static_cast<int>(random.below(size));
  made->probed = random.chance(50);
  for (std::size_t n = random.between(1, 6); n > 0; --n) {
    const auto step = 1 + random.below(size - 1);
    const auto source = (static_cast<std::size_t>(made->destination) + step) % size;
    Data data = draw_data(random, 400000);
    data.derived = false;
    made->room = std::max(made->room, data.bytes);
    made->messages.push_back(
        {static_cast<int>(source), schedule.new_tag(), data, random.chance(30), nullptr});
  }
  return made;
}

void finish_receives(Crowd& crowd, std::size_t how) {
  std::vector<Pending> pending;
  for (std::size_t i = 0; i < crowd.receiving.size(); ++i) {
    pending.push_back(
        {&crowd.receiving[i], [&crowd, i](const MPI_Status& status) { crowd.taken(i, status); }});
  }
  complete(pending, how);
}

// All receives first: then senders may block.
void plan_posted(Schedule& schedule, const std::shared_ptr<Crowd>& crowd, double from, double to) {
  const double middle = schedule.within(from, to);
  const double posted = schedule.within(from, middle);
  const std::size_t how = schedule.random.below(ways_to_complete);
  schedule.add(posted, crowd->destination, "Irecv of anything, several",
               [crowd] { crowd->post(); });
  for (std::size_t i = 0; i < crowd->messages.size(); ++i) {
    schedule.add(
        schedule.within(posted, middle), crowd->messages[i].source,
        "Send to whom takes anything, " + std::to_string(crowd->messages[i].data.bytes) + " B",
        [crowd, i] { crowd->send(i, true); });
  }
  schedule.add(schedule.within(middle, to), crowd->destination,
               std::string(way_name(how)) + " of anything",
               [crowd, how] { finish_receives(*crowd, how); });
}

// All sends first, without blocking: they lie unexpected.
void plan_unexpected(Schedule& schedule, const std::shared_ptr<Crowd>& crowd, double from,
                     double to) {
  const double sent = schedule.within(from, to), received = schedule.within(sent, to);
  for (std::size_t i = 0; i < crowd->messages.size(); ++i) {
    const int source = crowd->messages[i].source;
    schedule.add(
        schedule.within(from, sent), source,
        "Isend to whom takes anything, " + std::to_string(crowd->messages[i].data.bytes) + " B",
        [crowd, i] { crowd->send(i, false); });
    schedule.add(schedule.within(received, to), source, "Wait of a send to whom takes anything",
                 [crowd, i] { MPI_Wait(&crowd->messages[i].sending, MPI_STATUS_IGNORE); });
  }
  schedule.add(received, crowd->destination,
               crowd->probed ? "Probe and Recv anything" : "Recv anything",
               [crowd] { crowd->receive_each(); });
}

struct Shift {
  const Comm* comm;
  int by, tag;
  bool replace;
  Data data;
  void run() const;
};

void Shift::run() const {
  const int size = comm->own->size(), index = comm->index;
  const int to = (index + by) % size, from = (index + size - by) % size;
  const std::uint64_t received = data.key + static_cast<std::uint64_t>(from);
  Buffer out(data.layout(0), data.count(0), data.mapped);
  const auto count = static_cast<int>(data.count(0));
  const MPI_Datatype type = out.layout().type;
  out.fill(0, out.elements(), data.key + static_cast<std::uint64_t>(index));
  if (replace) {
    MPI_Sendrecv_replace(out.data(), count, type, to, tag, from, tag, comm->handle,
                         MPI_STATUS_IGNORE);
    expect(out.take(0, out.elements(), received), "the bytes of MPI_Sendrecv_replace");
    return;
  }
  Buffer in(data.layout(1), data.count(1), !data.mapped);
  MPI_Sendrecv(out.data(), count, type, to, tag, in.data(), static_cast<int>(data.count(1)),
               in.layout().type, from, tag, comm->handle, MPI_STATUS_IGNORE);
  expect(in.take(0, in.elements(), received), "the bytes of MPI_Sendrecv");
  expect(in.untouched(), "nothing else was written by MPI_Sendrecv");
}

}  // namespace

void add_anything(Schedule& schedule, const Comm& comm, double from, double to) {
  if (world_size < 2) return;
  const auto crowd = draw_crowd(schedule, comm);
  if (schedule.random.chance(40)) {
    plan_posted(schedule, crowd, from, to);
  } else {
    plan_unexpected(schedule, crowd, from, to);
  }
}

void add_shift(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  Shift shift{&comm, static_cast<int>(random.below(3)) % comm.groups[0].size(), schedule.new_tag(),
              random.chance(40), draw_data(random, 500000)};
  // So large a message goes through memory, where that is asked for.
  const std::size_t large = random.between(140000, 500000);
  if (random.chance(30)) shift.data = {large, false, false, random.next()};
  // Groups of other sizes take their own remainder.
  schedule.add(schedule.begin(), comm.ranks(),
               std::string(shift.replace ? "Sendrecv_replace" : "Sendrecv") + " by " +
                   std::to_string(shift.by) + ", " + std::to_string(shift.data.bytes) + " B on " +
                   comm.name,
               [shift] {
                 Shift own = shift;
                 own.by %= own.comm->own->size();
                 own.run();
               });
}

void add_cancelled(Schedule& schedule, const World& world) {
  struct Receive {
    int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  const Group& group = draw_group(random, comm);
  const int rank = group.world_ranks[random.below(static_cast<std::size_t>(group.size()))];
  const int tag = schedule.new_tag();
  const double start = schedule.begin();
  const auto receive = std::make_shared<Receive>();
  schedule.add(start, rank, "Irecv that nothing matches, on " + comm.name, [=, &comm] {
    MPI_Irecv(&receive->value, 1, MPI_INT, MPI_ANY_SOURCE, tag, comm.handle, &receive->request);
  });
  schedule.add(schedule.after(start), rank, "Cancel of it", [receive] {
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&receive->request);
    MPI_Wait(&receive->request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled != 0, "the receive was cancelled");
  });
}

}  // namespace mixed
