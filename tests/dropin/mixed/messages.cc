// This file has messages from one rank to another, in every mode of sending and way of receiving.
#include <sched.h>

#include <algorithm>
#include <memory>

#include "actions.hpp"

namespace mixed {

namespace {

enum class Send { send, ssend, bsend, rsend, isend, issend, irsend };
enum class Receive { recv, irecv, probe, iprobe, mprobe, improbe };

constexpr const char* send_names[] = {"Send",  "Ssend",  "Bsend", "Rsend",
                                      "Isend", "Issend", "Irsend"};
constexpr const char* receive_names[] = {
    "Recv", "Irecv", "Probe and Recv", "Iprobe and Recv", "Mprobe and Mrecv", "Improbe and Imrecv"};
constexpr std::size_t most_bytes = std::size_t{3} << 20;
constexpr std::size_t most_buffered = std::size_t{32} << 10;

struct Message {
  const Comm* comm;
  int source, destination;  // in the communicator
  int from, to;             // of MPI_COMM_WORLD
  int tag;
  bool any_source;
  std::size_t spare;  // elements that the receiver has room for, and gets none of
  Data data;
  Send send;
  Receive receive;
  std::unique_ptr<Buffer> out, in;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
  int ack = 0;

  std::string text() const {
    return std::to_string(data.bytes) + " B" + (data.derived ? " derived" : "") + ", " +
           std::to_string(from) + " to " + std::to_string(to) + ", tag " + std::to_string(tag) +
           " on " + comm->name;
  }
  int room() const { return static_cast<int>(data.count(1) + spare); }

  void start_send();
  void start_receive();
  void find_and_receive();
  void acknowledge();
  void received(const MPI_Status&);
};

void Message::start_send() {
  out = std::make_unique<Buffer>(data.layout(0), data.count(0), data.mapped);
  out->fill(0, out->elements(), data.key);
  const int count = static_cast<int>(out->elements());
  const MPI_Datatype type = out->layout().type;
  const MPI_Comm on = comm->handle;
  void* const at = out->data();
  const Send mode = synchronous && send == Send::send    ? Send::ssend
                    : synchronous && send == Send::isend ? Send::issend
                                                         : send;
  switch (mode) {
    case Send::send:
      MPI_Send(at, count, type, destination, tag, on);
      break;
    case Send::ssend:
      MPI_Ssend(at, count, type, destination, tag, on);
      break;
    case Send::bsend:
      MPI_Bsend(at, count, type, destination, tag, on);
      break;
    case Send::rsend:
      MPI_Rsend(at, count, type, destination, tag, on);
      break;
    case Send::isend:
      MPI_Isend(at, count, type, destination, tag, on, &sending);
      break;
    case Send::issend:
      MPI_Issend(at, count, type, destination, tag, on, &sending);
      break;
    case Send::irsend:
      MPI_Irsend(at, count, type, destination, tag, on, &sending);
      break;
  }
}

void Message::start_receive() {
  const int of = any_source ? MPI_ANY_SOURCE : source;
  in = std::make_unique<Buffer>(data.layout(1), data.count(1) + spare, !data.mapped);
  if (receive == Receive::irecv) {
    MPI_Irecv(in->data(), room(), in->layout().type, of, tag, comm->handle, &receiving);
  } else if (receive == Receive::recv) {
    MPI_Status status;
    MPI_Recv(in->data(), room(), in->layout().type, of, tag, comm->handle, &status);
    received(status);
  } else {
    find_and_receive();
  }
}

void Message::find_and_receive() {
  const int of = any_source ? MPI_ANY_SOURCE : source;
  const MPI_Datatype type = in->layout().type;
  MPI_Status status;
  MPI_Message found;
  int flag = 0;
  if (receive == Receive::probe) {
    MPI_Probe(of, tag, comm->handle, &status);
  } else if (receive == Receive::mprobe) {
    MPI_Mprobe(of, tag, comm->handle, &found, &status);
  }
  while (receive == Receive::iprobe && flag == 0) {
    MPI_Iprobe(of, tag, comm->handle, &flag, &status);
    if (flag == 0) sched_yield();
  }
  while (receive == Receive::improbe && flag == 0) {
    MPI_Improbe(of, tag, comm->handle, &flag, &found, &status);
    if (flag == 0) sched_yield();
  }
  expect(status.MPI_SOURCE == source && status.MPI_TAG == tag, "the probed message");
  if (receive == Receive::mprobe) {
    MPI_Mrecv(in->data(), room(), type, &found, &status);
  } else if (receive == Receive::improbe) {
    MPI_Imrecv(in->data(), room(), type, &found, &receiving);
    return;
  } else {
    MPI_Recv(in->data(), room(), type, status.MPI_SOURCE, tag, comm->handle, &status);
  }
  received(status);
}

// The receiver has posted its receive, and tells the sender so.
void Message::acknowledge() {
  if (world_rank == to) MPI_Ssend(&ack, 1, MPI_INT, source, tag, comm->handle);
  if (world_rank == from) {
    MPI_Recv(&ack, 1, MPI_INT, destination, tag, comm->handle, MPI_STATUS_IGNORE);
  }
}

void Message::received(const MPI_Status& status) {
  int count = -1;
  MPI_Get_count(&status, in->layout().type, &count);
  expect(count == static_cast<int>(data.count(1)), "the count of a message");
  expect(status.MPI_SOURCE == source && status.MPI_TAG == tag, "source and tag of a message");
  expect(in->take(0, data.count(1), data.key), "the bytes of a message");
  expect(in->untouched(), "nothing else was written by a message");
}

std::shared_ptr<Message> draw_message(Schedule& schedule, const Comm& comm, const Group& group) {
  Random& random = schedule.random;
  const auto size = static_cast<std::size_t>(group.size());
  auto made = std::make_shared<Message>();
  made->comm = &comm;
  made->source = static_cast<int>(random.below(size));
  made->destination = static_cast<int>(
      (static_cast<std::size_t>(made->source) + 1 + random.below(size - 1)) % size);
  made->from = group.world_ranks[static_cast<std::size_t>(made->source)];
  made->to = group.world_ranks[static_cast<std::size_t>(made->destination)];
  made->tag = schedule.new_tag();
  made->any_source = random.chance(25);
  made->spare = random.chance(25) ? random.below(50) : 0;
  made->data = draw_data(random, most_bytes);
  return made;
}

struct Times {
  double send, receive, later;  // later: when both are over, or under way
};

// Chooses how both sides do it, and adds the steps of doing it; a wait comes afterwards.
class Planner {
 public:
  Planner(Schedule& schedule, std::shared_ptr<Message> message)
      : schedule_(schedule), random_(schedule.random), message_(std::move(message)) {}

  double plan(double start) {
    switch (random_.below(8)) {
      case 0:
        return early_receive(start, random_.chance(50) ? Send::send : Send::ssend);
      case 1:
        return late_receive(start, Receive::recv);
      case 2:
        return together(start);
      case 3:
        return buffered(start);
      case 4:
        return ready(start);
      case 5:
        return late_receive(start, static_cast<Receive>(random_.between(2, 5)));
      default:
        return both_nonblocking(start);
    }
  }

 private:
  Send nonblocking() { return random_.chance(70) ? Send::isend : Send::issend; }

  void add_send(double time) {
    schedule_.add(time, message_->from,
                  send_names[static_cast<int>(message_->send)] + (" " + message_->text()),
                  [m = message_] { m->start_send(); });
  }
  void add_receive(double time) {
    schedule_.add(time, message_->to,
                  receive_names[static_cast<int>(message_->receive)] + (" " + message_->text()),
                  [m = message_] { m->start_receive(); });
  }

  double early_receive(double start, Send send) {
    message_->receive = Receive::irecv;
    message_->send = send;
    const double then = schedule_.after(start);
    add_receive(start);
    add_send(then);
    return then;
  }
  double late_receive(double start, Receive receive) {
    message_->send = nonblocking();
    message_->receive = receive;
    const double then = schedule_.after(start);
    add_send(start);
    add_receive(then);
    return then;
  }
  double together(double start) {
    message_->send = random_.chance(50) ? Send::send : Send::ssend;
    message_->receive = Receive::recv;
    add_send(start);
    add_receive(start);
    return start;
  }
  double buffered(double start) {
    message_->data.bytes =
        std::min(message_->data.bytes, most_buffered) / derived_unit * derived_unit;
    message_->send = Send::bsend;
    message_->receive = random_.chance(50) ? Receive::irecv : Receive::recv;
    const double then = schedule_.after(start);
    const bool received_first = message_->receive == Receive::irecv && random_.chance(50);
    add_send(received_first ? then : start);
    add_receive(received_first ? start : then);
    return then;
  }
  double ready(double start) {
    message_->send = random_.chance(50) ? Send::rsend : Send::irsend;
    message_->receive = Receive::irecv;
    const double told = schedule_.after(start), then = schedule_.after(told);
    add_receive(start);
    schedule_.add(told, Ranks{1} << message_->from | Ranks{1} << message_->to,
                  "tell that a receive is posted: " + message_->text(),
                  [m = message_] { m->acknowledge(); });
    add_send(then);
    return then;
  }
  double both_nonblocking(double start) {
    message_->send = nonblocking();
    message_->receive = Receive::irecv;
    const double then = schedule_.after(start);
    const bool received_first = random_.chance(50);
    add_send(received_first ? then : start);
    add_receive(received_first ? start : then);
    return then;
  }

  Schedule& schedule_;
  Random& random_;
  std::shared_ptr<Message> message_;
};

using Batch = std::vector<std::shared_ptr<Message>>;

void wait_for(const Batch& batch, std::size_t how) {
  std::vector<Pending> pending;
  for (const auto& m : batch) {
    if (m->sending != MPI_REQUEST_NULL) {
      pending.push_back({&m->sending, [](const MPI_Status&) {}});
    }
    if (m->receiving != MPI_REQUEST_NULL) {
      pending.push_back({&m->receiving, [m](const MPI_Status& status) { m->received(status); }});
    }
  }
  complete(pending, how);
  for (const auto& m : batch) {
    if (world_rank == m->from) {
      expect(m->out->take(0, m->out->elements(), m->data.key), "what was sent is as it was");
    }
  }
}

}  // namespace

void add_messages(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const Comm& comm = draw_comm(random, world);
  const Group& group = draw_group(random, comm);
  if (group.size() < 2) return;
  Batch batch;
  double last = 0;
  Ranks ranks = 0;
  const double start = schedule.begin();
  for (std::size_t n = random.between(1, 5); n > 0; --n) {
    batch.push_back(draw_message(schedule, comm, group));
    const Message& message = *batch.back();
    last = std::max(last, Planner(schedule, batch.back()).plan(schedule.after(start)));
    ranks |= Ranks{1} << message.from | Ranks{1} << message.to;
  }
  for (int rank = 0; rank < world_size; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    const std::size_t how = random.below(ways_to_complete);
    schedule.add(schedule.after(last), rank,
                 std::string(way_name(how)) + " of messages on " + comm.name + " from tag " +
                     std::to_string(batch.front()->tag),
                 [batch, how] { wait_for(batch, how); });
  }
}

}  // namespace mixed
