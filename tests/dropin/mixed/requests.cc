// This file has the ways to complete requests, and what the kinds of actions have in common.
#include <sched.h>

#include "actions.hpp"

namespace mixed {

namespace {

constexpr std::size_t testall = 4;

class Completion {
 public:
  explicit Completion(const std::vector<Pending>& pending)
      : pending_(pending), requests_(pending.size()), statuses_(pending.size()) {
    for (std::size_t i = 0; i < pending.size(); ++i) requests_[i] = *pending[i].request;
  }
  ~Completion() {
    for (std::size_t i = 0; i < pending_.size(); ++i) *pending_[i].request = requests_[i];
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void by(std::size_t how) {
    if (pending_.empty()) return;
    switch (how) {
      case 0:
        return by_waitall();
      case 1:
        return by_waitany();
      case 2:
        return by_waitsome();
      case 3:
        return by_testany();
      case testall:
        return by_testall();
      case 5:
        return by_testsome();
      case 6:
        return by_wait();
      default:
        return by_test();
    }
  }

 private:
  int number() const { return static_cast<int>(requests_.size()); }
  void done(std::size_t i, const MPI_Status& status) const { pending_[i].done(status); }
  void all_done() const {
    for (std::size_t i = 0; i < pending_.size(); ++i) done(i, statuses_[i]);
  }

  void by_waitall() {
    MPI_Waitall(number(), requests_.data(), statuses_.data());
    all_done();
  }
  void by_waitany() {
    int index = 0;
    MPI_Status status;
    while (MPI_Waitany(number(), requests_.data(), &index, &status), index != MPI_UNDEFINED) {
      done(static_cast<std::size_t>(index), status);
    }
  }
  void by_testany() {
    for (;;) {
      int index = 0, flag = 0;
      MPI_Status status;
      MPI_Testany(number(), requests_.data(), &index, &flag, &status);
      if (flag != 0 && index == MPI_UNDEFINED) return;
      if (flag != 0) {
        done(static_cast<std::size_t>(index), status);
      } else {
        sched_yield();
      }
    }
  }
  void by_testall() {
    for (int flag = 0; flag == 0;) {
      MPI_Testall(number(), requests_.data(), &flag, statuses_.data());
      if (flag == 0) sched_yield();
    }
    all_done();
  }
  template <class Call>
  void by_some(Call call) {
    std::vector<int> indices(requests_.size());
    for (;;) {
      int number_done = 0;
      call(number(), requests_.data(), &number_done, indices.data(), statuses_.data());
      if (number_done == MPI_UNDEFINED) return;
      for (int i = 0; i < number_done; ++i) {
        const auto at = static_cast<std::size_t>(i);
        done(static_cast<std::size_t>(indices[at]), statuses_[at]);
      }
      if (number_done == 0) sched_yield();
    }
  }
  void by_waitsome() { by_some(&MPI_Waitsome); }
  void by_testsome() { by_some(&MPI_Testsome); }
  void by_wait() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      MPI_Wait(&requests_[i], &statuses_[i]);
      done(i, statuses_[i]);
    }
  }
  void by_test() {
    for (std::size_t i = requests_.size(); i-- > 0;) {
      for (int flag = 0; flag == 0;) {
        MPI_Test(&requests_[i], &flag, &statuses_[i]);
        if (flag == 0) sched_yield();
      }
      done(i, statuses_[i]);
    }
  }

  const std::vector<Pending>& pending_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace

const char* way_name(std::size_t how) {
  constexpr const char* names[] = {"Waitall", "Waitany",  "Waitsome", "Testany",
                                   "Testall", "Testsome", "Wait",     "Test"};
  return names[how % ways_to_complete];
}

std::size_t draw_way_of_persistent(Random& random) {
  const std::size_t how = random.below(ways_to_complete);
  return how == testall ? 0 : how;
}

void complete(const std::vector<Pending>& pending, std::size_t how) { Completion(pending).by(how); }

Data draw_data(Random& random, std::size_t most) {
  // The bounds are nothing, a word, less than a page, several pages, a rendezvous in every MPI, and
  // large.
  constexpr std::size_t bounds[] = {0, 1, 64, 4000, 20000, 300000, std::size_t{3} << 20};
  constexpr int percents[] = {5, 25, 25, 15, 24, 6};
  std::size_t drawn = random.below(100), which = 0;
  while (drawn >= static_cast<std::size_t>(percents[which])) {
    drawn -= static_cast<std::size_t>(percents[which++]);
  }
  std::size_t bytes = which == 0 ? 0 : random.between(bounds[which], bounds[which + 1]);
  if (bytes > most) bytes = random.between(1, most);
  const bool derived = random.chance(30);
  if (derived) bytes = bytes / derived_unit * derived_unit;
  return {bytes, derived, random.chance(30), random.next()};
}

const Comm& draw_comm(Random& random, const World& world) {
  return random.chance(40) ? world.comms[0] : world.comms[random.below(world.comms.size())];
}

const Group& draw_group(Random& random, const Comm& comm) {
  return comm.groups[random.below(comm.groups.size())];
}

}  // namespace mixed
