// This file has the persistent collectives that the ranks of one node serve.
//
// The ranks agree once, when the collective is set up. The program's request is MPI's own: a
// persistent send to nobody, which every function of MPI takes. The drop-in never starts it. So MPI
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

#include "collectives/operation.hpp"
#include "kept_elements.hpp"
#include "round_area.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

// What this rank sends and receives in each round.
struct RoundPlan {
  struct ReceivedBlock {
    int from;
    std::size_t number;  // among the blocks that `from` sends
    std::byte* to;
    std::size_t bytes;
  };
  std::vector<SentBlock> sent;
  std::vector<ReceivedBlock> received;
  // The blocks received are combined into the first one's place, in their order. Otherwise each is
  // copied.
  std::optional<collectives::Operation> operation;
  // Where datatypes may have gaps: what is packed before a round, and unpacked after it.
  std::shared_ptr<KeptView> packed;
  std::shared_ptr<KeptView> unpacked;
};

class PersistentCollective {
 public:
  // Collective over the team's communicator. `plan` is none where this rank cannot serve the
  // collective. Returns null on all ranks unless all of them serve it, and each receives as many
  // bytes as are sent to it.
  static std::shared_ptr<PersistentCollective> agree(Function, Collectives& team, mpi::Comm comm,
                                                     std::optional<RoundPlan> plan);
  PersistentCollective(Function, Collectives& team, RoundPlan plan);

  // Begins a round, and waits for nobody.
  void start() noexcept;
  // Completes the round once all ranks have started it; returns false before. It never waits. After
  // an error, `code` is not 0.
  bool complete(int& code) noexcept;

 private:
  bool connect(std::span<const std::uint64_t> offsets) noexcept;
  bool all_have_begun() noexcept;
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
  std::size_t sent_bytes_ = 0;
  RoundPlan plan_;
  RoundArea area_;
  std::vector<const void*> inputs_;
  std::optional<Watch> watch_;
};

}  // namespace ropewalk::preload
