#include "generator/mpi/communicators.hpp"

#include "generator/cases.hpp"

namespace generator {
namespace {

int copies = 0;
int handled = 0;

int count_copy(MPI_Comm, int, void*, void* value, void* to, int* flag) {
  ++copies;
  *static_cast<void**>(to) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

void count_error(MPI_Comm*, int*, ...) { ++handled; }

}  // namespace

Communicators::Communicators(std::uint64_t seed)
    : rank_(test::rank_of(MPI_COMM_WORLD)), size_(test::size_of(MPI_COMM_WORLD)) {
  add("world", MPI_COMM_WORLD);
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &made);
  own("a duplicate", made);
  add_splits(seed);
  add_group();
  add_grid();
  add_burdened();
  test::expect(all.size() == kinds, "as many communicators as are drawn from");
}

Communicators::~Communicators() {
  for (MPI_Comm comm : owned_) MPI_Comm_free(&comm);
  PMPI_Comm_free_keyval(&keyval_);
  PMPI_Errhandler_free(&handler_);
}

void Communicators::add(const std::string& name, MPI_Comm handle) {
  Comm comm{name, handle};
  if (handle != MPI_COMM_NULL) {
    comm.rank = test::rank_of(handle);
    comm.size = test::size_of(handle);
    PMPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  }
  all.push_back(comm);
}

void Communicators::own(const std::string& name, MPI_Comm handle) {
  add(name, handle);
  if (handle != MPI_COMM_NULL) owned_.push_back(handle);
}

void Communicators::add_splits(std::uint64_t seed) {
  const auto draw = [&](std::uint64_t what) {
    return static_cast<int>(mix(seed ^ mix(what << 32 ^ static_cast<unsigned>(rank_))) % 1000);
  };
  const auto split = [&](const char* name, int colour, int key) {
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, colour, key, &made);
    own(name, made);
  };
  split("odd and even, backwards", rank_ % 2, -rank_);
  split("all, backwards", 0, -rank_);
  split("all, in another order", 0, (rank_ * 5 + 3) % 7);
  split("a part in two", draw(1) % 2, draw(2));
  split("a part in three", draw(3) % 3, draw(4));
}

// The group has all ranks but the last, of three and more.
void Communicators::add_group() {
  if (size_ < 3) return add("world again", MPI_COMM_WORLD);
  MPI_Group world;
  MPI_Group most;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  const int last = size_ - 1;
  PMPI_Group_excl(world, 1, &last, &most);
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_create(MPI_COMM_WORLD, most, &made);
  own("all but the last", made);
  PMPI_Group_free(&world);
  PMPI_Group_free(&most);
  test::expect((made == MPI_COMM_NULL) == (rank_ == last), "MPI_Comm_create");
}

void Communicators::add_grid() {
  const bool even = size_ % 2 == 0;
  const std::array<int, 2> sides = {even ? 2 : 1, even ? size_ / 2 : size_};
  const std::array<int, 2> periods = {1, 0};
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Cart_create(MPI_COMM_WORLD, 2, sides.data(), periods.data(), 1, &made);
  own("a grid", made);
}

void Communicators::add_burdened() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &burdened_);
  own("with an attribute and an error handler", burdened_);
  PMPI_Comm_create_keyval(&count_copy, MPI_COMM_NULL_DELETE_FN, &keyval_, nullptr);
  PMPI_Comm_set_attr(burdened_, keyval_, this);
  PMPI_Comm_create_errhandler(&count_error, &handler_);
  PMPI_Comm_set_errhandler(burdened_, handler_);
}

void Communicators::check_burdened() const {
  void* value = nullptr;
  int flag = 0;
  PMPI_Comm_get_attr(burdened_, keyval_, &value, &flag);
  test::expect(flag != 0 && value == this, "the program's attribute has gone");
  test::expect(copies == 0, "the program's attribute has been copied");
  test::expect(handled == 0, "the program's error handler has been called");
  MPI_Errhandler now_set;
  PMPI_Comm_get_errhandler(burdened_, &now_set);
  test::expect(now_set == handler_, "the program's error handler has gone");
  PMPI_Errhandler_free(&now_set);
}

}  // namespace generator
