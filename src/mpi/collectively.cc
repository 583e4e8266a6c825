#include "mpi/collectively.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "mpi/library.hpp"

namespace ropewalk::mpi {

namespace {

thread_local CollectiveSection* innermost = nullptr;

Failure failure(ErrorCode code, const char* text) noexcept {
  Failure out;
  out.code = static_cast<std::int64_t>(code);
  std::strncpy(out.text.data(), text, out.text.size() - 1);
  return out;
}

}  // namespace

int FailuresByMpi::rank() const { return mpi::rank(comm_); }

// These calls go straight to MPI: those of mpi.hpp would call meet() first.
void FailuresByMpi::least(std::array<std::int64_t, 2>& values) const {
  const Abi& abi = library().abi;
  check(
      library().call.allreduce(in_place(), values.data(), static_cast<int>(values.size()),
                               abi.datatype(DatatypeName::int64), abi.op(OpName::min), comm_.value),
      "MPI_Allreduce");
}

void FailuresByMpi::tell(Failure& failure, int root) const {
  check(library().call.bcast(&failure, sizeof failure, byte_type().value, root, comm_.value),
        "MPI_Bcast");
}

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_dead) throw;
    return failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::memory,
                   "memory: the process can have no more, expected some for what is being made; "
                   "make less of it, or raise the limit (`ulimit -v`, the job's memory)");
  } catch (const std::system_error& error) {
    return failure(ErrorCode::system, error.what());
  } catch (const std::exception& error) {
    return failure(ErrorCode::internal, error.what());
  }
}

void share_failure(const FailureExchange& ranks, const Failure* own) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  // This finds the lowest rank that has failed, and whether all have.
  std::array<std::int64_t, 2> least{own != nullptr ? ranks.rank() : none, own != nullptr ? 1 : 0};
  ranks.least(least);
  if (least[0] == none) return;
  const int root = static_cast<int>(least[0]);
  Failure error;
  if (own != nullptr) error = *own;
  ranks.tell(error, root);
  std::string text = error.text.data();
  if (least[1] == 0) text += " (found on rank " + std::to_string(root) + ")";
  throw SharedError(static_cast<ErrorCode>(error.code), text, ranks.id());
}

CollectiveSection::CollectiveSection(const FailureExchange& ranks) noexcept
    : ranks_(ranks.id()), outer_(innermost) {
  innermost = this;
}
CollectiveSection::~CollectiveSection() { innermost = outer_; }

void meet(const FailureExchange& ranks) {
  if (innermost != nullptr && innermost->ranks_ == ranks.id()) share_failure(ranks, nullptr);
}

void same_on_all(Comm comm, std::span<const Fact> facts, std::span<std::int64_t> largest) {
  std::vector<std::int64_t> values;
  values.reserve(2 * facts.size() + largest.size());
  for (const Fact& fact : facts) {
    Extremes own(fact.value);
    values.insert(values.end(), own.values().begin(), own.values().end());
  }
  values.insert(values.end(), largest.begin(), largest.end());
  all_reduce(values, Combine::max, comm);
  std::copy(values.end() - static_cast<std::ptrdiff_t>(largest.size()), values.end(),
            largest.begin());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::int64_t highest = values[2 * i];
    const std::int64_t lowest = -values[2 * i + 1];
    if (lowest == highest) continue;
    throw Error(ErrorCode::argument, facts[i].name + ": from " + std::to_string(lowest) + " to " +
                                         std::to_string(highest) +
                                         " over the ranks, expected the same on all; pass the "
                                         "same on every rank");
  }
}

bool true_on_all(Comm comm, bool value) {
  std::int64_t all = value ? 1 : 0;
  all_reduce(std::span(&all, 1), Combine::min, comm);
  return all != 0;
}

}  // namespace ropewalk::mpi
