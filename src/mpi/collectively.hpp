// The collective check: an error of one rank becomes an error of all, and facts that must be the
// same on all ranks are compared. Programs use ropewalk/collectively.hpp.
//
// A collective constructor takes memory, opens files and starts threads on every rank, and any of
// that may fail on one rank alone. If that rank just threw, the others would wait in the next
// collective call for ever. So such work runs in collectively(). There, before every collective
// call of MPI on that communicator, the ranks tell each other whether any of them has failed (one
// reduction of 16 bytes). A rank that has failed takes part in that reduction at the end of
// collectively(), and so the others learn of it before their next call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "mpi/mpi.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {

// This is an error as it travels between ranks. It takes no memory: there may be none left.
struct Failure {
  std::int64_t code = 0;             // ErrorCode
  std::array<char, 1016> text = {};  // bytes; longer texts are cut
};

// These are the ranks that share failures, and the calls by which they do.
class FailureExchange {
 public:
  virtual ~FailureExchange() = default;
  // Tells these ranks from others: another number for each communicator.
  virtual std::uint64_t id() const noexcept = 0;
  virtual int rank() const = 0;
  // Collective. Takes of each value the least over the ranks.
  virtual void least(std::array<std::int64_t, 2>& values) const = 0;
  // Collective. Brings the root's failure to every rank.
  virtual void tell(Failure& failure, int root) const = 0;
};

// By calls of MPI.
class FailuresByMpi final : public FailureExchange {
 public:
  explicit FailuresByMpi(Comm comm) noexcept : comm_(comm) {}
  std::uint64_t id() const noexcept override { return comm_.value; }
  int rank() const override;
  void least(std::array<std::int64_t, 2>& values) const override;
  void tell(Failure& failure, int root) const override;

 private:
  Comm comm_;
};

// All of these ranks throw this error: no rank waits for another any more.
class SharedError : public CollectiveError {
 public:
  SharedError(ErrorCode code, const std::string& text, std::uint64_t ranks)
      : CollectiveError(code, text), ranks_(ranks) {}
  std::uint64_t ranks() const noexcept { return ranks_; }  // FailureExchange::id()

 private:
  std::uint64_t ranks_;
};

// Describes the exception that is being handled in a catch clause. Rethrows Error(peer_dead), since
// a dead rank cannot take part in a reduction.
Failure current_failure();

// Collective. Throws SharedError on every rank, with the error of the lowest rank that has one, and
// says which rank that is where others have none.
void share_failure(const FailureExchange&, const Failure* own);

// While one exists, collective calls of its thread on these ranks begin with meet(); but not while
// another one exists inside of it.
class CollectiveSection {
 public:
  explicit CollectiveSection(const FailureExchange& ranks) noexcept;
  ~CollectiveSection();
  CollectiveSection(const CollectiveSection&) = delete;
  CollectiveSection& operator=(const CollectiveSection&) = delete;

 private:
  friend void meet(const FailureExchange&);
  std::uint64_t ranks_;
  CollectiveSection* outer_;
};

// Before a collective call of these ranks: inside of collectively(), throws what a rank has failed
// with. Does nothing otherwise.
void meet(const FailureExchange&);
inline void meet(Comm comm) { meet(FailuresByMpi(comm)); }

// Collective. What `body` throws on any rank is thrown on all; where MPI does not run, each rank
// throws Error(mpi) by itself. `body` may make collective calls of
// these ranks, all the same; before it makes others, or waits for ranks in another way, it calls
// meet(), after which nothing may fail that can fail on one rank alone. A body that goes on after a
// SharedError has caught it around a collectively() of its own, with a meet() right before.
template <class Body>
void collectively(const FailureExchange& ranks, Body&& body) {
  std::optional<Failure> own;
  try {
    const CollectiveSection open(ranks);
    body();
  } catch (const SharedError& error) {
    if (error.ranks() == ranks.id()) throw;
    own = current_failure();
  } catch (...) {
    own = current_failure();
  }
  share_failure(ranks, own ? &*own : nullptr);
}
template <class Body>
void collectively(Comm comm, Body&& body) {
  collectively(FailuresByMpi(usable(comm)), body);
}

// ---- facts

// This is a number that all ranks must have passed alike.
struct Fact {
  std::string name;
  std::int64_t value;
};
// Collective, with the same number of facts on every rank. Throws Error(argument) on every rank,
// which names the first fact that differs. Each number in `largest` becomes the largest over the
// ranks, with the same reduction.
void same_on_all(Comm, std::span<const Fact> facts, std::span<std::int64_t> largest = {});

// Collective. Tells whether `value` is true on every rank.
bool true_on_all(Comm, bool value);

// The lowest and the highest of a number over the ranks, once values() are the maxima over all.
class Extremes {
 public:
  explicit Extremes(std::int64_t own) : values_{own, -own} {}
  std::span<std::int64_t, 2> values() noexcept { return values_; }
  std::int64_t lowest() const noexcept { return -values_[1]; }
  std::int64_t highest() const noexcept { return values_[0]; }
  bool same() const noexcept { return lowest() == highest(); }

 private:
  std::array<std::int64_t, 2> values_;
};

}  // namespace ropewalk::mpi
