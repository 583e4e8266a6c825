// This file has persistent messages in every mode of sending, several of them in both directions,
// which the ranks start together and complete as one array.
#include <algorithm>
#include <memory>

#include "actions.hpp"

namespace mixed {

namespace {

enum class Init { send, ssend, rsend, bsend };

// Of a buffered message: a rendezvous in every MPI, so that it may be under way when it is started
// again. A batch has at most 15 of them, and the buffer has room for those of all batches.
constexpr std::size_t most_buffered = 20000;

struct Member {
  int source, destination, from, to, tag;  // in the communicator, and in MPI_COMM_WORLD
  bool any_source;
  Init init;
  Data data;
  std::unique_ptr<Buffer> out, in;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;

  std::uint64_t key(std::size_t round) const { return mix(data.key + round); }
};

struct PersistentBatch {
  const Comm* comm;
  std::vector<Member> members;
  Ranks ranks = 0;

  std::string text() const {
    std::string made =
        " of " + std::to_string(members.size()) + " persistent messages on " + comm->name + ":";
    for (const Member& m : members) {
      made += " " + std::to_string(m.from) + "-" + std::to_string(m.to) + " " +
              std::to_string(m.data.bytes) + " B" + (m.data.derived ? " derived" : "") +
              (m.init == Init::ssend   ? " synchronous"
               : m.init == Init::rsend ? " ready"
               : m.init == Init::bsend ? " buffered"
                                       : "");
    }
    return made;
  }
  bool has_ready() const {
    return std::any_of(members.begin(), members.end(),
                       [](const Member& m) { return m.init == Init::rsend; });
  }
  void set_up();
  void set_up_send(Member&);
  void start(std::size_t round, bool receives, bool sends);
  void acknowledge();
  void finish(std::size_t round, std::size_t how);
  void free();
};

void PersistentBatch::set_up_send(Member& m) {
  const auto init = m.init == Init::rsend                  ? &MPI_Rsend_init
                    : m.init == Init::bsend                ? &MPI_Bsend_init
                    : m.init == Init::ssend || synchronous ? &MPI_Ssend_init
                                                           : &MPI_Send_init;
  m.out = std::make_unique<Buffer>(m.data.layout(0), m.data.count(0), m.data.mapped);
  init(m.out->data(), static_cast<int>(m.out->elements()), m.out->layout().type, m.destination,
       m.tag, comm->handle, &m.sending);
}

void PersistentBatch::set_up() {
  for (Member& m : members) {
    if (world_rank == m.from) set_up_send(m);
    if (world_rank != m.to) continue;
    m.in = std::make_unique<Buffer>(m.data.layout(1), m.data.count(1),
                                    m.data.mapped != (m.data.key % 3 != 0));
    MPI_Recv_init(m.in->data(), static_cast<int>(m.in->elements()), m.in->layout().type,
                  m.any_source ? MPI_ANY_SOURCE : m.source, m.tag, comm->handle, &m.receiving);
  }
}

void PersistentBatch::start(std::size_t round, bool receives, bool sends) {
  std::vector<MPI_Request*> own;
  for (Member& m : members) {
    if (receives && world_rank == m.to) own.push_back(&m.receiving);
    if (!sends || world_rank != m.from) continue;
    m.out->fill(0, m.out->elements(), m.key(round));
    own.push_back(&m.sending);
  }
  std::vector<MPI_Request> requests;
  for (const MPI_Request* one : own) requests.push_back(*one);
  if (!requests.empty()) MPI_Startall(static_cast<int>(requests.size()), requests.data());
  for (std::size_t i = 0; i < own.size(); ++i) *own[i] = requests[i];
}

// All receives are posted: their ranks tell those that send in ready mode.
void PersistentBatch::acknowledge() {
  int value = 0;
  for (const Member& m : members) {
    if (m.init != Init::rsend) continue;
    if (world_rank == m.to) MPI_Send(&value, 1, MPI_INT, m.source, m.tag, comm->handle);
    if (world_rank == m.from) {
      MPI_Recv(&value, 1, MPI_INT, m.destination, m.tag, comm->handle, MPI_STATUS_IGNORE);
    }
  }
}

void PersistentBatch::finish(std::size_t round, std::size_t how) {
  std::vector<Pending> pending;
  for (Member& m : members) {
    if (world_rank == m.to) {
      pending.push_back({&m.receiving, [&m, round](const MPI_Status& status) {
                           expect(status.MPI_SOURCE == m.source && status.MPI_TAG == m.tag,
                                  "source and tag of a persistent message");
                           expect(m.in->take(0, m.in->elements(), m.key(round)),
                                  "the bytes of a persistent message");
                           expect(m.in->untouched(), "nothing else was written by it");
                         }});
    }
    if (world_rank == m.from) pending.push_back({&m.sending, [](const MPI_Status&) {}});
  }
  complete(pending, how);
  for (Member& m : members) {
    if (world_rank != m.from) continue;
    expect(m.out->take(0, m.out->elements(), m.key(round)), "what was sent again is as it was");
  }
}

void PersistentBatch::free() {
  for (Member& m : members) {
    if (m.sending != MPI_REQUEST_NULL) MPI_Request_free(&m.sending);
    if (m.receiving != MPI_REQUEST_NULL) MPI_Request_free(&m.receiving);
  }
}

Member draw_member(Schedule& schedule, const Group& group) {
  Random& random = schedule.random;
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t source = random.below(size);
  const std::size_t destination = (source + 1 + random.below(size - 1)) % size;
  Member made{};
  made.source = static_cast<int>(source);
  made.destination = static_cast<int>(destination);
  made.from = group.world_ranks[source];
  made.to = group.world_ranks[destination];
  made.tag = schedule.new_tag();
  made.any_source = random.chance(20);
  made.init = static_cast<Init>(random.below(4));
  made.data = draw_data(random, made.init == Init::bsend ? most_buffered : 600000);
  return made;
}

double add_round(Schedule& schedule, const std::shared_ptr<PersistentBatch>& batch, double time,
                 std::size_t round) {
  const std::string text = batch->text();
  const std::size_t how = draw_way_of_persistent(schedule.random);
  if (!batch->has_ready() && schedule.random.chance(50)) {
    time = schedule.add_on_each(time, batch->ranks, "Startall" + text,
                                [=] { batch->start(round, true, true); });
  } else {
    time = schedule.add_on_each(time, batch->ranks, "Startall, receives" + text,
                                [=] { batch->start(round, true, false); });
    time = schedule.after(time);
    schedule.add(time, batch->ranks, "tell that receives are posted" + text,
                 [batch] { batch->acknowledge(); });
    time = schedule.add_on_each(time, batch->ranks, "Startall, sends" + text,
                                [=] { batch->start(round, false, true); });
  }
  return schedule.add_on_each(time, batch->ranks, way_name(how) + text,
                              [=] { batch->finish(round, how); });
}

}  // namespace

void add_persistent_batch(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const auto batch = std::make_shared<PersistentBatch>();
  batch->comm = &draw_comm(random, world);
  const Group& group = draw_group(random, *batch->comm);
  if (group.size() < 2) return;
  for (std::size_t n = random.between(1, 5); n > 0; --n) {
    batch->members.push_back(draw_member(schedule, group));
    batch->ranks |= Ranks{1} << batch->members.back().from | Ranks{1} << batch->members.back().to;
  }
  double time = schedule.add_on_each(schedule.begin(), batch->ranks, "set up" + batch->text(),
                                     [batch] { batch->set_up(); });
  for (std::size_t round = 0, rounds = random.between(1, 3); round < rounds; ++round) {
    time = add_round(schedule, batch, time, round);
  }
  schedule.add_on_each(time, batch->ranks, "Request_free" + batch->text(),
                       [batch] { batch->free(); });
}

}  // namespace mixed
