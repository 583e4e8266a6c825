// The ranks of a benchmark: start and end of MPI, gathers of results, and errors that every rank
// gets together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ropewalk/collectively.hpp"
#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {

// Returns true where a launcher (mpiexec, mpirun, srun, ropewalk run) started this process.
bool started_by_launcher();
// Returns the rank as the launcher's environment tells it, before MPI is up; 0 where it tells
// nothing.
int launcher_rank();

// "MPICH Version:      5.0.2", "Open MPI v5.0.11, package: ...": "MPICH 5.0.2", "Open MPI v5.0.11".
std::string short_version(const std::string& library);

enum class Need {
  mpi,     // Error(mpi) where none is found
  if_run,  // only where a launcher started the program; alone otherwise
};

class Ranks {
 public:
  // `threads`: comm threads will be used, so MPI_THREAD_MULTIPLE is asked for.
  Ranks(Need need, bool threads);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  bool has_mpi() const noexcept { return has_mpi_; }
  const std::string& library() const noexcept { return library_; }  // "none" without MPI
  int node_rank() const noexcept { return node_rank_; }             // among the ranks of this node
  int node_size() const noexcept { return node_size_; }
  Communicator communicator() const;  // Error(mpi) without MPI

  // Collective; with one rank they are what one expects.
  void barrier() const;
  double max(double value) const;
  double sum(double value) const;
  bool all(bool value) const;
  // Equal lengths on all ranks. Result [rank][i], on every rank.
  std::vector<std::vector<double>> gather(const std::vector<double>& values) const;
  std::vector<std::string> gather(const std::string& text) const;  // cut at 1023 bytes
  // Returns the text of the first rank that has one, on every rank; empty where none has.
  std::string first_text(const std::string& mine) const;
  // Value by value the largest of any rank: times of calls that all ranks make together.
  std::vector<double> slowest(const std::vector<double>& values) const;

  // Collective: ropewalk::collectively() on all ranks. `work` must not communicate. A rank without
  // MPI throws CollectiveError as well.
  void collectively(const Work& work) const;

 private:
  bool has_mpi_ = false;
  bool initialised_here_ = false;
  int rank_ = 0;
  int size_ = 1;
  int node_rank_ = 0;
  int node_size_ = 1;
  std::string library_ = "none";
};

// Ends all ranks at once, for errors that one rank alone has met.
[[noreturn]] void abandon(int code);

}  // namespace ropewalk::bench
