// This file has the persistent collectives that the ranks of one node serve.
//
// The ranks agree once, when the collective is set up. The program's request is MPI's own: a
// persistent send to itself, which every function of MPI takes. The drop-in never starts it. So MPI
// sees an inactive request, which it completes at once, or skips among others, and the table of
// requests (pending.hpp) knows better. (MPI's request for the same collective would not do:
// MPI_Waitall of MPICH 5.0.2 never returns with one that is inactive.) The request of a collective
// that is not served is MPI's for that collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rare_look.hpp"
#include "round_area.hpp"
#include "round_plan.hpp"
#include "round_tasks.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

class PersistentCollective {
 public:
  // Collective over the team's communicator. `plan` is none where this rank cannot serve the
  // collective. Returns null on all ranks unless all of them serve it, and each receives as many
  // bytes as are sent to it.
  static std::shared_ptr<PersistentCollective> agree(Function, Collectives& team, mpi::Comm comm,
                                                     std::optional<RoundPlan> plan);
  // `shares`: all ranks share the work, by the memory of the program.
  PersistentCollective(Function, Collectives& team, RoundPlan plan, bool shares);

  // Begins a round, and waits for nobody.
  void start() noexcept;
  // Does what this rank can do for the round, and returns true where nothing but complete() is left
  // for it. It never waits. It helps others with what is left to them, `at_once` or where they do
  // not go on with it.
  bool is_ready(bool at_once) noexcept { return tasks_ ? do_tasks(at_once) : rooms_are_ready(); }
  // Completes the round once all ranks have started it, and nothing of it is left to do; returns
  // false before. It never waits. After an error, `code` is not 0.
  bool complete(int& code) noexcept;

 private:
  SharedArea& memory() noexcept { return tasks_ ? tasks_->memory() : area_->memory(); }
  bool connect(std::span<const std::uint64_t> offsets) noexcept;
  bool do_tasks(bool at_once) noexcept;
  void find_peers();
  // All that this rank receives is there, and the others are not too far behind.
  bool rooms_are_ready() noexcept;
  bool has_done_its_part(int rank) noexcept;
  int judge() noexcept;
  int code_of_death() noexcept;
  int fail(int code) noexcept;

  Function function_;
  int rank_;
  int size_;
  std::uint64_t round_ = 0;
  int failed_ = 0;  // the error code of every round of rooms from now on
  RareLook look_;
  int found_dead_ = 0;  // so often in this round, while tasks were left
  std::size_t sent_bytes_ = 0;
  RoundPlan plan_;
  // One of these two.
  std::unique_ptr<RoundArea> area_;
  std::unique_ptr<RoundTasks> tasks_;
  // Of rooms: the ranks that this one waits for until they have begun a round, and the others that
  // read its rooms. The first `begun_` and `gone_` of these have been seen in this round.
  std::vector<int> sources_;
  std::vector<int> readers_;
  std::size_t begun_ = 0;
  std::size_t gone_ = 0;
  // Where the blocks received lie behind the beginning of a room, and then where in this round.
  std::vector<std::size_t> places_;
  std::vector<const void*> inputs_;
  std::optional<Watch> watch_;
};

}  // namespace ropewalk::preload
