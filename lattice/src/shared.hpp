// What the operators and solvers of one lattice share.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "ropewalk/lattice/lattice.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::lattice::detail {

// Threads of several teams would wait for work on the cores where one of them computes.
class Shared {
 public:
  // Collective. The team of so many threads of `lattice`, whose this is; it ends with its last
  // user.
  std::shared_ptr<ThreadTeam> team(const Lattice& lattice, int threads);

  // What Strategy::automatic came to for exchanges of about so many bytes, by what was kept; or
  // `automatic`. All ranks make the same operators in the same order, so all know the same.
  Strategy strategy(std::size_t bytes) const;
  void keep(std::size_t bytes, Strategy chosen);

 private:
  mutable std::mutex mutex_;
  std::map<int, std::weak_ptr<ThreadTeam>> teams_;  // by threads
  std::map<std::size_t, Strategy> strategies_{};    // by bytes
};

Shared& shared(const Lattice&);
// Collective, inside of collectively().
inline std::shared_ptr<ThreadTeam> shared_team(const Lattice& lattice, int threads) {
  return shared(lattice).team(lattice, threads);
}

}  // namespace ropewalk::lattice::detail
