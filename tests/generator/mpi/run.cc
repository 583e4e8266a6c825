#include "generator/mpi/run.hpp"

namespace generator {
namespace {

// Makes a type of the block at an absolute address.
MPI_Datatype absolute(MPI_Datatype type, std::int64_t extent, int count, const void* data) {
  MPI_Aint address = 0;
  PMPI_Get_address(data, &address);
  MPI_Datatype placed;
  PMPI_Type_create_hindexed(1, &count, &address, type, &placed);
  MPI_Datatype made;
  PMPI_Type_create_resized(placed, 0, count * extent, &made);
  PMPI_Type_free(&placed);
  PMPI_Type_commit(&made);
  return made;
}

// What one side passes.
class Passed {
 public:
  Passed(const Handles& handles, const Case& drawn, const Side& side, const Memory& memory) {
    const bool matters = side.significant && !side.stays;
    if (side.stays) argument.data = MPI_IN_PLACE;
    if (!matters && drawn.nothing) {
      argument.count = -7;
      return;  // the null pointers and the null type stay
    }
    if (matters || (!side.stays && drawn.of == Interface::mpi)) argument.data = memory.data();
    argument.type = handles.type(*side.type);
    argument.count = side.blocks.empty() ? 0 : side.blocks.front().count;
    if (matters && drawn.bottom && argument.count > 0) {
      argument.type = absolute(argument.type, side.type->extent, argument.count, memory.data());
      argument.count = 1;
      argument.data = MPI_BOTTOM;
      own_type_ = true;
    }
    // The C interface asks for none where they do not matter.
    if (side.by_vector && (matters || drawn.of == Interface::mpi)) add_blocks(side);
  }
  ~Passed() {
    if (own_type_) PMPI_Type_free(&argument.type);
  }
  Passed(const Passed&) = delete;
  Passed& operator=(const Passed&) = delete;

  Argument argument;

 private:
  void add_blocks(const Side& side) {
    for (const Block& block : side.blocks) {
      argument.counts.push_back(block.count);
      argument.displacements.push_back(static_cast<int>(block.first));
    }
  }
  bool own_type_ = false;
};

// Runs one case on one rank.
class Trial {
 public:
  Trial(const Handles& handles, const Case& drawn, const Comm& comm, const Executor& executor)
      : handles_(handles),
        case_(drawn),
        comm_(comm),
        executor_(executor),
        plan_(plan(handles.catalogue, drawn, comm.rank, comm.size)),
        theirs_plan_(plan_),
        ours_(executor.memory, drawn, plan_, comm.rank),
        theirs_(executor.memory, drawn, plan_, comm.rank) {
    theirs_.send.take(ours_.send);  // bytes of nobody as well
    theirs_.receive.take(ours_.receive);
    if (apart()) {
      // MPICH 5.0.2 aborts in place where the result overlaps its place, so it is given a copy.
      theirs_plan_.send.stays = false;
      fill(drawn, plan_.send, theirs_.send.data(), comm.rank, 2);
    }
  }

  std::string run() {
    handles_.use_layout(*plan_.send.type);
    int code = MPI_SUCCESS;
    if (case_.mpi_first) code = by_mpi();
    const std::string problem = by_executor();
    if (!case_.mpi_first) code = by_mpi();
    if (code != MPI_SUCCESS) return "MPI itself: " + text_of(code);
    return problem.empty() ? difference() : problem;
  }

 private:
  // Ours is in place, theirs is not.
  bool apart() const { return case_.of == Interface::c && case_.in_place && case_.scatters(); }

  template <class Function>
  auto with(const Plan& of, const Buffers& buffers, const Function& function) const {
    Passed send(handles_, case_, of.send, buffers.send);
    Passed receive(handles_, case_, of.receive, buffers.receive);
    if (case_.reduces()) count_reduction(receive.argument);
    return function({case_.collective, send.argument, receive.argument, handles_.op(case_.op),
                     case_.root(comm_.size), comm_.handle, &case_});
  }
  int by_mpi() const { return with(theirs_plan_, theirs_, call_pmpi); }
  std::string by_executor() const { return with(plan_, ours_, executor_.make); }

  // One type and count for both sides, those of the result.
  void count_reduction(Argument& receive) const {
    const Type& type = *plan_.send.type;
    receive.type = handles_.type(type);
    receive.count = case_.count(type, comm_.size) * type.repeat;
    if (case_.collective != Collective::reduce_scatter) return;
    receive.counts = shares(case_, type, comm_.size).each;
    for (int& count : receive.counts) count *= type.repeat;
  }

  std::string difference() const {
    if (wrong_types > 0 && case_.of == Interface::mpi) {
      return "an operation of the user was called with another type";
    }
    for (const Buffers* buffers : {&ours_, &theirs_}) {
      fill_behind(handles_.catalogue, case_, plan_.receive, buffers->receive, comm_.rank,
                  comm_.size);
      clear_padding(plan_.send, buffers->send);
      clear_padding(plan_.receive, buffers->receive);
    }
    std::string found;
    if (!apart()) found = ours_.send.difference("send", plan_.send, theirs_.send);
    if (!found.empty()) return found;
    return ours_.receive.difference("receive", plan_.receive, theirs_.receive);
  }

  static std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
    int length = 0;
    PMPI_Error_string(code, text.data(), &length);
    return text.data();
  }

  const Handles& handles_;
  const Case& case_;
  const Comm& comm_;
  const Executor& executor_;
  Plan plan_;
  Plan theirs_plan_;
  Buffers ours_;
  Buffers theirs_;
};

// Runs one case after the other.
class Runner {
 public:
  Runner(const Options& options, const Executor& executor)
      : options_(options), executor_(executor) {}

  void round(std::uint64_t begin, std::uint64_t end) {
    const Communicators communicators(options_.seed + begin);
    executor_.begin(communicators);
    for (std::uint64_t i = begin; i < end; ++i) {
      if (options_.only >= 0 && i != static_cast<std::uint64_t>(options_.only)) continue;
      const Case drawn(handles_.catalogue, options_.seed * 1000003 + i, executor_.limits);
      const Comm& comm = communicators.all[drawn.communicator];
      if (comm.handle != MPI_COMM_NULL) one(i, drawn, comm);
    }
    executor_.end();
    communicators.check_burdened();
  }

  std::uint64_t done() const { return done_; }

 private:
  void one(std::uint64_t index, const Case& drawn, const Comm& comm) {
    const std::string text = "case " + std::to_string(index) + " of --seed " +
                             std::to_string(options_.seed) + ": " +
                             drawn.text(handles_.catalogue, comm.rank, comm.size) + ", on " +
                             comm.name + " of " + std::to_string(comm.size);
    test::now(text);
    if (options_.verbose && comm.rank == 0) std::fprintf(stderr, "%s\n", text.c_str());
    // A communicator's first collectives go to MPI: one case must do for --only.
    for (int warm = 0; options_.only >= 0 && warm < 3; ++warm) MPI_Barrier(comm.handle);
    const std::string problem = Trial(handles_, drawn, comm, executor_).run();
    if (!problem.empty()) test::fail(text + ": " + problem);
    ++done_;
  }

  const Options& options_;
  const Executor& executor_;
  const Handles handles_;
  std::uint64_t done_ = 0;
};

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 0);
    if (name == "--cases") options.cases = value;
    if (name == "--seed") options.seed = value;
    if (name == "--verbose") options.verbose = value != 0;
    if (name == "--plain") options.plain = value != 0;
    if (name == "--only") options.only = static_cast<std::int64_t>(value);
  }
  const auto least = static_cast<std::uint64_t>(options.only + 1);
  if (options.cases < least) options.cases = least;
  return options;
}

void run_cases(const Options& options, const Executor& executor) {
  Runner runner(options, executor);
  const std::uint64_t each = executor.cases_a_round;
  for (std::uint64_t begin = 0; begin < options.cases && !test::any_failure(); begin += each) {
    const auto only = static_cast<std::uint64_t>(options.only);
    if (options.only >= 0 && (only < begin || only >= begin + each)) continue;
    runner.round(begin, begin + each < options.cases ? begin + each : options.cases);
  }
  if (test::rank_of(MPI_COMM_WORLD) == 0) {
    std::printf("%llu cases of all types and operations\n",
                static_cast<unsigned long long>(runner.done()));
  }
}

}  // namespace generator
