// This file has the persistent collectives that the ranks of one node serve.
//
// The ranks agree once, when the collective is set up. The program's request is MPI's own: a
// persistent send to nobody, which every function of MPI takes. The drop-in never starts it. So MPI
// sees an inactive request, which it completes at once, or skips among others, and the table of
// requests (pending.hpp) knows better. (MPI's request for the same collective would not do:
// MPI_Waitall of MPICH 5.0.2 never returns with one that is inactive.) The request of a collective
// that is not served is MPI's for that collective.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/operation.hpp"
#include "kept_elements.hpp"
#include "round_area.hpp"
#include "round_tasks.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

// What this rank sends and receives in each round.
struct RoundPlan {
  std::vector<SentBlock> sent;
  std::vector<ReceivedBlock> received;
  // The blocks received are combined into the first one's place, in their order. Otherwise each is
  // copied.
  std::optional<collectives::Operation> operation;
  // What this rank receives takes the place of what it sends to others.
  bool overwrites = false;
  // A reduction of which the ranks may share the work.
  std::optional<SharedReduction> shared;
  // Where datatypes may have gaps: what is packed before a round, and unpacked after it.
  std::shared_ptr<KeptBlocks> packed;
  std::shared_ptr<KeptBlocks> unpacked;
  // Where each block has a type of its own: the elements of those sent, and of those received.
  std::vector<collectives::TypedPart> sent_parts;
  std::vector<collectives::TypedPart> received_parts;
  bool typed = false;

  // What the ranks share where their memory is mapped.
  RoundWork work() const noexcept {
    return {sent, received, shared ? &*shared : nullptr, typed, sent_parts, received_parts};
  }
};

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
  // for it. It never waits. Where it `helps`, it does what is left to others as well.
  bool is_ready(bool helps) noexcept { return tasks_ ? do_tasks(helps) : all_have_begun(); }
  // Completes the round once all ranks have started it, and nothing of it is left to do; returns
  // false before. It never waits. After an error, `code` is not 0.
  bool complete(int& code) noexcept;

 private:
  SharedArea& memory() noexcept { return tasks_ ? tasks_->memory() : area_->memory(); }
  bool connect(std::span<const std::uint64_t> offsets) noexcept;
  bool do_tasks(bool helps) noexcept;
  bool all_have_begun() noexcept;
  bool has_done_its_part(int rank) noexcept;
  void receive();
  int judge() noexcept;
  int code_of_death() noexcept;

  Function function_;
  int rank_;
  int size_;
  int next_ = 0;  // the ranks below have begun the round
  std::uint64_t round_ = 0;
  std::int64_t looked_ns_ = 0;
  unsigned looks_ = 0;
  int found_dead_ = 0;  // so often in this round, while tasks were left
  std::size_t sent_bytes_ = 0;
  RoundPlan plan_;
  // One of these two.
  std::unique_ptr<RoundArea> area_;
  std::unique_ptr<RoundTasks> tasks_;
  // Where the blocks received lie in the rooms, in even rounds and in odd ones.
  std::array<std::vector<const void*>, 2> inputs_;
  std::optional<Watch> watch_;
};

}  // namespace ropewalk::preload
