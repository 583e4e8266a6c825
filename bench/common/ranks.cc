// Ranks of a benchmark over the table of MPI calls; see ranks.hpp. With collectives/calls.cc, what
// bench/ knows of src/mpi.
#include "common/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <sstream>

#include "common/scheduling.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

// Hydra (MPICH, Intel MPI), Open MPI, PMIx launchers, Slurm with any PMI.
constexpr std::array rank_variables = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                       "SLURM_PROCID"};
constexpr std::size_t text_bytes = 1024;

const char* launcher_word() {
  for (const char* variable : rank_variables) {
    if (const char* word = std::getenv(variable)) return word;
  }
  return nullptr;
}

void require_threads(mpi::ThreadLevel provided) {
  if (provided == mpi::ThreadLevel::multiple) return;
  throw Error(ErrorCode::mpi,
              fmt::format("MPI_Init_thread: {} gives thread level {}, comm threads need "
                          "MPI_THREAD_MULTIPLE (3); use --strategy sequential,concurrent or an MPI "
                          "built with thread support",
                          mpi::library_version(), static_cast<int>(provided)));
}

}  // namespace

std::string short_version(const std::string& library) {
  std::istringstream words(library.substr(0, library.find_first_of(",\n")));
  std::string text;
  for (std::string word; words >> word;) {
    if (word != "Version:") text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

bool started_by_launcher() { return launcher_word() != nullptr; }

int launcher_rank() {
  const char* word = launcher_word();
  return word == nullptr ? 0 : std::atoi(word);
}

Ranks::Ranks(Need need, bool threads) {
  if (need == Need::if_run && !(started_by_launcher() && mpi::loaded())) return;
  if (!mpi::initialized()) {
    const auto wanted = threads ? mpi::ThreadLevel::multiple : mpi::ThreadLevel::funneled;
    const auto provided = mpi::init(wanted);
    initialised_here_ = true;
    if (threads) require_threads(provided);
  }
  has_mpi_ = true;
  const mpi::Comm world = mpi::comm_world();
  rank_ = mpi::rank(world);
  size_ = mpi::size(world);
  library_ = short_version(mpi::library_version());
  mpi::Comm node = mpi::split_shared(world);
  node_rank_ = mpi::rank(node);
  node_size_ = mpi::size(node);
  mpi::free(node);
}

Ranks::~Ranks() {
  if (!initialised_here_) return;
  try {
    mpi::finalize();
  } catch (const std::exception&) {
    // The results are out; an MPI that cannot finalise must not turn them into a failure.
  }
}

Communicator Ranks::communicator() const {
  if (!has_mpi_) {
    throw Error(ErrorCode::mpi,
                "MPI: this program was started alone; start it with ropewalk run -n 2 --");
  }
  return Communicator::world();
}

void Ranks::barrier() const {
  if (size_ > 1) mpi::barrier(mpi::comm_world());
}

double Ranks::max(double value) const {
  if (size_ > 1) {
    mpi::all_reduce(std::span<double>(&value, 1), mpi::Combine::max, mpi::comm_world());
  }
  return value;
}

double Ranks::sum(double value) const {
  if (size_ > 1) {
    mpi::all_reduce(std::span<double>(&value, 1), mpi::Combine::sum, mpi::comm_world());
  }
  return value;
}

bool Ranks::all(bool value) const { return max(value ? 0 : 1) == 0; }

std::vector<std::vector<double>> Ranks::gather(const std::vector<double>& values) const {
  std::vector<std::vector<double>> result(size_, values);
  if (size_ == 1 || values.empty()) return result;
  std::vector<double> flat(values.size() * size_);
  mpi::all_gather(values.data(), flat.data(), values.size() * sizeof(double), mpi::comm_world());
  for (int r = 0; r < size_; ++r) {
    const auto begin = flat.begin() + static_cast<std::ptrdiff_t>(values.size()) * r;
    result[r].assign(begin, begin + static_cast<std::ptrdiff_t>(values.size()));
  }
  return result;
}

std::vector<std::string> Ranks::gather(const std::string& text) const {
  if (size_ == 1) return {text};
  std::vector<char> mine(text_bytes, '\0');
  std::memcpy(mine.data(), text.data(), std::min(text.size(), text_bytes - 1));
  std::vector<char> flat(text_bytes * size_);
  mpi::all_gather(mine.data(), flat.data(), text_bytes, mpi::comm_world());
  std::vector<std::string> result;
  result.reserve(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) result.emplace_back(flat.data() + text_bytes * r);
  return result;
}

std::string Ranks::first_text(const std::string& mine) const {
  if (all(mine.empty())) return "";
  for (const std::string& text : gather(mine)) {
    if (!text.empty()) return text;
  }
  return mine;
}

std::vector<double> Ranks::slowest(const std::vector<double>& values) const {
  std::vector<double> most = values;
  for (const std::vector<double>& rank : gather(values)) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], rank[i]);
  }
  return most;
}

void Ranks::collectively(const Work& work) const {
  if (has_mpi_) return ropewalk::collectively(communicator(), work);
  try {
    work();
  } catch (const Error& error) {
    throw CollectiveError(error.code(), error.what());
  } catch (const std::exception& error) {
    throw CollectiveError(ErrorCode::internal, error.what());
  }
}

void abandon(int code) {
  put_back_group();
  if (mpi::loaded() && mpi::initialized() && !mpi::finalized()) mpi::abort(code);
  std::_Exit(code);
}

}  // namespace ropewalk::bench
