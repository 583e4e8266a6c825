// Stands before src/node/team.hpp in the model test of messages: ranks that share the model's
// arenas, none of which dies.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>

#include "model/messages/rank.hpp"
#include "model/model.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::node {

struct Peer;

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void look() = 0;
  virtual void lost(int rank) = 0;
};

class Team {
 public:
  static std::unique_ptr<Team> create(mpi::Comm, std::string& /*reason*/) {
    return std::unique_ptr<Team>(new Team);
  }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return model::ranks(); }
  bool cma() const noexcept { return false; }
  int process_id(int /*rank*/) const noexcept { return getpid(); }
  // One for all: nobody dies.
  Peer& peer(int rank) const noexcept;
  Team& waits() noexcept { return *this; }  // one class here
  bool crowded() const noexcept { return false; }
  bool broken() const noexcept { return false; }
  void share_cores() noexcept {}
  void watch_with(Watcher* watcher) noexcept { watcher_ = watcher; }
  std::byte* base(int rank) const noexcept { return model::arena(rank); }
  void wake_sleepers() noexcept {}
  void look_around() { watcher_->look(); }

  // The watcher looks in every round. That it has not looked for a while is the same as that it has
  // seen old values.
  template <class Ready>
  void until(Ready ready) {
    while (!ready()) {
      watcher_->look();
      model::pause(model::messages::remembered());
    }
  }

 private:
  Team() = default;
  int rank_ = model::rank();
  Watcher* watcher_ = nullptr;
};

using Waits = Team;

}  // namespace ropewalk::node
