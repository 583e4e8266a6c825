// differential [--cases N] [--seed S] [--only K] [--verbose 1] [--plain 1]: random collectives by
// MPI_X, each compared with PMPI_X of the same arguments, byte for byte.
//
// Every rank draws the same cases. What differs is named by its rank, with what runs it again, and
// every rank exits with 1. A case that hangs ends the job after a time, named too. --plain: the
// drop-in need not be there.
#include <dlfcn.h>

#include <random>

#include "cases.hpp"

namespace {

using namespace test;

struct Options {
  std::uint64_t cases = 200;
  std::uint64_t seed = 1;
  std::int64_t only = -1;
  bool verbose = false;
  bool plain = false;
};

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
  return options;
}

// ---- what the program has hung on its communicators

int copies = 0;
int handled = 0;

int count_copy(MPI_Comm, int, void*, void* value, void* to, int* flag) {
  ++copies;
  *static_cast<void**>(to) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

void count_error(MPI_Comm*, int*, ...) { ++handled; }

class Communicators {
 public:
  Communicators() {
    const int rank = rank_of(MPI_COMM_WORLD);
    const int size = size_of(MPI_COMM_WORLD);
    add("world", MPI_COMM_WORLD);
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_dup(MPI_COMM_WORLD, &made);
    own("a duplicate", made);
    PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
    own("a split into odd and even, backwards", made);
    PMPI_Comm_split(MPI_COMM_WORLD, 0, (rank * 5 + 3) % 7, &made);
    own("all, in another order", made);
    add_group(rank, size);
    add_grid(size);
    add_burdened();
  }
  ~Communicators() {
    for (MPI_Comm comm : owned_) MPI_Comm_free(&comm);
    PMPI_Comm_free_keyval(&keyval_);
    PMPI_Errhandler_free(&handler_);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  std::vector<Comm> all;

  // Attributes and error handler are as they were, and nobody has looked into them.
  void check_burdened() const {
    void* value = nullptr;
    int flag = 0;
    PMPI_Comm_get_attr(burdened_, keyval_, &value, &flag);
    expect(flag != 0 && value == this, "the program's attribute has gone");
    expect(copies == 0, "the program's attribute has been copied");
    expect(handled == 0, "the program's error handler has been called");
    MPI_Errhandler now_set;
    PMPI_Comm_get_errhandler(burdened_, &now_set);
    expect(now_set == handler_, "the program's error handler has gone");
    PMPI_Errhandler_free(&now_set);
  }

 private:
  void add(const std::string& name, MPI_Comm handle) {
    Comm comm{name, handle};
    if (handle != MPI_COMM_NULL) {
      comm.rank = rank_of(handle);
      comm.size = size_of(handle);
      PMPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    }
    all.push_back(comm);
  }
  void own(const std::string& name, MPI_Comm handle) {
    add(name, handle);
    if (handle != MPI_COMM_NULL) owned_.push_back(handle);
  }

  // All but the last, of three and more.
  void add_group(int rank, int size) {
    if (size < 3) return;
    MPI_Group world;
    MPI_Group most;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    const int last = size - 1;
    PMPI_Group_excl(world, 1, &last, &most);
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_create(MPI_COMM_WORLD, most, &made);
    own("all but the last", made);
    PMPI_Group_free(&world);
    PMPI_Group_free(&most);
    expect((made == MPI_COMM_NULL) == (rank == last), "MPI_Comm_create");
  }

  void add_grid(int size) {
    const std::array<int, 2> sides = {size % 2 == 0 ? 2 : 1, size % 2 == 0 ? size / 2 : size};
    const std::array<int, 2> periods = {1, 0};
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Cart_create(MPI_COMM_WORLD, 2, sides.data(), periods.data(), 1, &made);
    own("a grid", made);
  }

  void add_burdened() {
    PMPI_Comm_dup(MPI_COMM_WORLD, &burdened_);
    own("with an attribute and an error handler", burdened_);
    PMPI_Comm_create_keyval(&count_copy, MPI_COMM_NULL_DELETE_FN, &keyval_, nullptr);
    PMPI_Comm_set_attr(burdened_, keyval_, this);
    PMPI_Comm_create_errhandler(&count_error, &handler_);
    PMPI_Comm_set_errhandler(burdened_, handler_);
  }

  std::vector<MPI_Comm> owned_;
  MPI_Comm burdened_ = MPI_COMM_NULL;
  int keyval_ = MPI_KEYVAL_INVALID;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

void run_cases(const Options& options) {
  const Catalogue catalogue;
  const Communicators communicators;
  std::mt19937_64 seeds(options.seed);
  std::uint64_t done = 0;
  for (std::uint64_t i = 0; i < options.cases; ++i) {
    const Case the_case(catalogue, seeds(), communicators.all.size());
    if (options.only >= 0 && i != static_cast<std::uint64_t>(options.only)) continue;
    const Comm& comm = communicators.all[the_case.comm];
    if (comm.handle == MPI_COMM_NULL) continue;
    const std::string text = "case " + std::to_string(i) + " of --seed " +
                             std::to_string(options.seed) + ": " + the_case.text(catalogue, comm);
    now(text);
    if (options.verbose && rank_of(MPI_COMM_WORLD) == 0) std::fprintf(stderr, "%s\n", text.c_str());
    // A communicator's first collectives go to MPI: one case must do for --only.
    if (options.only >= 0) {
      for (int warm = 0; warm < 3; ++warm) MPI_Barrier(comm.handle);
    }
    const std::string problem = run(catalogue, the_case, comm);
    if (!problem.empty()) fail(text + ": " + problem);
    ++done;
  }
  communicators.check_burdened();
  if (rank_of(MPI_COMM_WORLD) == 0) {
    std::printf("%llu cases of all types and operations\n", static_cast<unsigned long long>(done));
  }
}

// ---- intercommunicators

void compare(const char* what, const std::vector<int>& ours, const std::vector<int>& theirs) {
  expect(ours == theirs, std::string(what) + " between two groups differs");
}

void run_between(MPI_Comm between, bool first_group, int far) {
  const int rank = rank_of(between);
  const int size = size_of(between);
  const auto many = static_cast<std::size_t>(far);
  const int root = !first_group ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  for (int i = 0; i < 4; ++i) {
    const std::vector<int> sent(many, rank * 10 + i + (first_group ? 1000 : 0));
    const auto filled = [&] { return std::vector<int>(many, -1); };
    std::vector<int> a = filled();
    std::vector<int> b = filled();
    MPI_Barrier(between);
    a[0] = b[0] = sent[0];
    MPI_Bcast(a.data(), 1, MPI_INT, root, between);
    PMPI_Bcast(b.data(), 1, MPI_INT, root, between);
    compare("MPI_Bcast", a, b);
    MPI_Allreduce(sent.data(), a.data(), 1, MPI_INT, MPI_SUM, between);
    PMPI_Allreduce(sent.data(), b.data(), 1, MPI_INT, MPI_SUM, between);
    compare("MPI_Allreduce", a, b);
    a = b = filled();
    MPI_Allgather(sent.data(), 1, MPI_INT, a.data(), 1, MPI_INT, between);
    PMPI_Allgather(sent.data(), 1, MPI_INT, b.data(), 1, MPI_INT, between);
    compare("MPI_Allgather", a, b);
    a = b = filled();
    MPI_Alltoall(sent.data(), 1, MPI_INT, a.data(), 1, MPI_INT, between);
    PMPI_Alltoall(sent.data(), 1, MPI_INT, b.data(), 1, MPI_INT, between);
    compare("MPI_Alltoall", a, b);
  }
  expect(size > 0, "size");
}

void run_intercommunicator() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  if (size < 2) return;
  now("an intercommunicator");
  const int first = (size + 1) / 2;
  const bool in_first = rank < first;
  MPI_Comm group;
  MPI_Comm between;
  PMPI_Comm_split(MPI_COMM_WORLD, in_first ? 0 : 1, rank, &group);
  PMPI_Intercomm_create(group, 0, MPI_COMM_WORLD, in_first ? first : 0, 5, &between);
  run_between(between, in_first, in_first ? size - first : first);
  MPI_Comm_free(&between);
  MPI_Comm_free(&group);
}

// Whether MPI_X is another library's than PMPI_X.
bool is_intercepted() {
  Dl_info ours{};
  Dl_info theirs{};
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Allreduce"), &ours);
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Allreduce"), &theirs);
  return ours.dli_fbase != theirs.dli_fbase;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  MPI_Init(&argc, &argv);
  end_after(200);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  expect(options.plain || is_intercepted(), "the drop-in is not in front of MPI");
  run_cases(options);
  run_intercommunicator();
  const bool failed = any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}
