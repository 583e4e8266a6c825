// A batch: parts that are posted together and completed together, by one thread.
#pragma once

#include <exception>
#include <span>

#include "mpi/mpi.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

// Never throws: an error of MPI is kept until the caller's thread takes it. After an error, or
// stop(), the batch ends early: its receives stay posted until the last send is complete, so that
// peers which end early as well can complete their sends; then the receives are cancelled.
class Batch {
 public:
  // `one_by_one`: requests are tested alone, as an MPI that splits threads needs it: Intel MPI
  // 2021.19 makes no progress in an MPI_Testall over requests of several numbers.
  Batch(std::span<const Part> parts, std::span<const mpi::Comm> lanes,
        std::span<mpi::Request> requests, bool one_by_one = false) noexcept
      : parts_(parts), lanes_(lanes), requests_(requests), one_by_one_(one_by_one) {}

  bool empty() const noexcept { return parts_.empty(); }

  // Receives first: a message that finds its receive posted is not copied twice.
  void post() noexcept;
  // Returns true when nothing is pending any more. It progresses MPI.
  bool advance() noexcept;
  // These do the same in two steps, for batches that end early together: the first waits until all
  // is complete or, when stopping, the last send is; then, when stopping, cancel_receives()
  // follows.
  bool advance_sends() noexcept;
  void cancel_receives() noexcept;
  void stop() noexcept { stopping_ = true; }
  // Gives up at once, where a rank has died: receives are cancelled where that is possible, and
  // sends are left to MPI.
  void abandon() noexcept;
  bool stopping() const noexcept { return stopping_; }
  bool failed() const noexcept { return error_ != nullptr; }

  // What went wrong since the last call, or null.
  std::exception_ptr take_error() noexcept;

 private:
  void post_kind(bool receives);
  bool test();
  void fail() noexcept;

  std::span<const Part> parts_;
  std::span<const mpi::Comm> lanes_;
  std::span<mpi::Request> requests_;
  bool one_by_one_ = false;
  std::exception_ptr error_;
  bool stopping_ = false;
};

// Tests one request; what MPI reports about it counts as its end.
bool test_quietly(mpi::Request& request) noexcept;

}  // namespace ropewalk::transport
