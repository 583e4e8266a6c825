/* What programs may do with windows at the edges of the standard: units and sizes that differ from
 * rank to rank, types with gaps and absolute addresses, pairs at the end of the memory, epochs
 * without anybody, requests among those of messages, communicators that are gone, and errors. Each
 * check holds for every MPI, with or without the drop-in. */
#include "check.h"

static int rank, ranks;

struct Window {
  MPI_Win handle;
  char* memory;
};

static struct Window make(MPI_Aint bytes, int unit, MPI_Comm comm) {
  struct Window w = {MPI_WIN_NULL, NULL};
  CHECK_CALL(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, &w.memory, &w.handle));
  if (bytes > 0) memset(w.memory, 0, (size_t)bytes);
  MPI_Barrier(comm);
  return w;
}
static void end(struct Window* w) {
  CHECK_CALL(MPI_Win_free(&w->handle));
  CHECK(w->handle == MPI_WIN_NULL);
}
static int right(void) { return (rank + 1) % ranks; }
static int left(void) { return (rank + ranks - 1) % ranks; }

/* ---- rank r has r doubles, counted in units of 1, 2, 4, ...; rank 0 has nothing */
static void check_sizes_and_units(void) {
  struct Window w = make(rank * 8, 1 << rank % 4, MPI_COMM_WORLD);
  for (int target = 0; target < ranks; ++target) {
    const double mine = 100 * rank + target;
    const MPI_Aint own = (MPI_Aint)(target - 1) * 8 / (1 << target % 4);
    double found = -1;
    CHECK_CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.handle));
    CHECK_CALL(MPI_Put(&mine, 0, MPI_DOUBLE, target, 0, 0, MPI_DOUBLE, w.handle));
    if (target > 0) {
      CHECK_CALL(MPI_Put(&mine, 1, MPI_DOUBLE, target, own, 1, MPI_DOUBLE, w.handle));
      CHECK_CALL(MPI_Win_flush(target, w.handle));
      CHECK_CALL(MPI_Get(&found, 1, MPI_DOUBLE, target, own, 1, MPI_DOUBLE, w.handle));
    }
    CHECK_CALL(MPI_Win_unlock(target, w.handle));
    CHECK(found == (target > 0 ? mine : -1));
  }
  end(&w);
}

/* ---- origins at absolute addresses, and targets whose last gap lies outside of the window */
static void check_absolute_and_gaps(void) {
  enum { cells = 5 };
  struct Window w = make(cells * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD);
  int parts[3] = {rank * 10, -1, rank * 10 + 1}, last = rank * 10 + 2, got[3] = {-1, -1, -1};
  MPI_Aint places[3];
  const int ones[3] = {1, 1, 1};
  MPI_Datatype scattered, strided, wide;
  MPI_Get_address(&parts[0], &places[0]);
  MPI_Get_address(&parts[2], &places[1]);
  MPI_Get_address(&last, &places[2]);
  MPI_Type_create_hindexed(3, ones, places, MPI_INT, &scattered);
  MPI_Type_vector(3, 1, 2, MPI_INT, &strided);
  MPI_Type_create_resized(strided, 0, 64, &wide);
  MPI_Type_commit(&scattered);
  MPI_Type_commit(&wide);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Put(MPI_BOTTOM, 1, scattered, right(), 0, 1, wide, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  const int* memory = (const int*)w.memory;
  for (int i = 0; i < cells; ++i) CHECK(memory[i] == (i % 2 == 0 ? left() * 10 + i / 2 : 0));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Accumulate(MPI_BOTTOM, 1, scattered, right(), 0, 1, wide, MPI_SUM, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  for (int i = 0; i < cells; ++i) CHECK(memory[i] == (i % 2 == 0 ? 2 * (left() * 10 + i / 2) : 0));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get(got, 3, MPI_INT, right(), 0, 1, wide, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  for (int i = 0; i < 3; ++i) CHECK(got[i] == 2 * (rank * 10 + i));
  MPI_Type_free(&scattered);
  MPI_Type_free(&strided);
  MPI_Type_free(&wide);
  end(&w);
}

/* ---- a target type that reaches to both sides of its place */
static void check_negative_lower_bound(void) {
  struct Window w = make(3 * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD);
  const int both[2] = {rank + 1, rank + 2}, lengths[2] = {1, 1}, places[2] = {-1, 1};
  int sums[2] = {0, 0};
  MPI_Datatype around;
  MPI_Type_indexed(2, lengths, places, MPI_INT, &around);
  MPI_Type_commit(&around);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Put(both, 2, MPI_INT, right(), 1, 1, around, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Accumulate(both, 2, MPI_INT, right(), 1, 1, around, MPI_SUM, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get_accumulate(NULL, 0, MPI_INT, sums, 2, MPI_INT, right(), 1, 1, around,
                                MPI_NO_OP, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK(sums[0] == 2 * both[0] && sums[1] == 2 * both[1]);
  MPI_Type_free(&around);
  end(&w);
}

/* ---- a distributed array: blocks of two columns go round two processes, and the second one has
 * columns 2, 3 and 6 of seven */
static void check_distributed_array(void) {
  enum { cells = 14 };
  struct Window w = make(cells * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD);
  const int sizes[2] = {2, 7}, kinds[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC};
  const int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {1, 2};
  const int mine[6] = {rank, rank + 1, rank + 2, rank + 3, rank + 4, rank + 5};
  const int order[7] = {-1, -1, 0, 1, -1, -1, 2};
  int found[6] = {0};
  MPI_Datatype part;
  CHECK_CALL(
      MPI_Type_create_darray(2, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &part));
  MPI_Type_commit(&part);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Accumulate(mine, 6, MPI_INT, right(), 0, 1, part, MPI_SUM, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get_accumulate(mine, 6, MPI_INT, found, 6, MPI_INT, right(), 0, 1, part, MPI_SUM,
                                w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  for (int i = 0; i < 6; ++i) CHECK(found[i] == mine[i]);
  const int* memory = (const int*)w.memory;
  for (int i = 0; i < cells; ++i) {
    const int element = order[i % 7];
    CHECK(memory[i] == (element < 0 ? 0 : 2 * (left() + element + 3 * (i / 7))));
  }
  MPI_Type_free(&part);
  end(&w);
}

/* ---- pairs, of which the last has no room for the gap behind it, and whose gaps stay */
struct DoubleInt {
  double value;
  int index;
};
/* The origin's type is made of pairs, and the target's are pairs. */
static void move_pairs(const struct Window* w, struct DoubleInt* mine) {
  enum { data = sizeof(double) + sizeof(int), bytes = sizeof(struct DoubleInt) + data };
  char into[bytes + 1];
  MPI_Datatype both;
  MPI_Type_contiguous(2, MPI_DOUBLE_INT, &both);
  MPI_Type_commit(&both);
  memset(into, 0x22, sizeof into);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_fence(0, w->handle));
  CHECK_CALL(MPI_Put(mine, 1, both, right(), 0, 2, MPI_DOUBLE_INT, w->handle));
  CHECK_CALL(MPI_Win_fence(0, w->handle));
  CHECK_CALL(MPI_Get(into, 2, MPI_DOUBLE_INT, right(), 0, 2, MPI_DOUBLE_INT, w->handle));
  CHECK_CALL(MPI_Win_fence(0, w->handle));
  CHECK(memcmp(into, mine, data) == 0);
  CHECK(memcmp(into + sizeof(struct DoubleInt), &mine[1], data) == 0);
  CHECK(into[data] == 0x22 && into[bytes] == 0x22);
  MPI_Type_free(&both);
}

static void check_pairs(void) {
  enum { data = sizeof(double) + sizeof(int), bytes = sizeof(struct DoubleInt) + data };
  struct Window w = make(bytes, 1, MPI_COMM_WORLD);
  struct DoubleInt mine[2], before[2];
  memset(mine, 0x55, sizeof mine);
  for (int i = 0; i < 2; ++i) mine[i].value = i + 1, mine[i].index = 7 - i;
  memset(before, 0, sizeof before);
  memset(w.memory, 0, bytes);
  memset(w.memory + data, 0x11, sizeof(struct DoubleInt) - data);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Accumulate(mine, 2, MPI_DOUBLE_INT, right(), 0, 2, MPI_DOUBLE_INT, MPI_REPLACE,
                            w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK(memcmp(w.memory, mine, data) == 0);
  CHECK(memcmp(w.memory + sizeof(struct DoubleInt), &mine[1], data) == 0);
  for (size_t at = data; at < sizeof(struct DoubleInt); ++at) CHECK(w.memory[at] == 0x11);
  mine[0].value = 5;
  mine[1].value = 0;
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get_accumulate(mine, 2, MPI_DOUBLE_INT, before, 2, MPI_DOUBLE_INT, right(), 0, 2,
                                MPI_DOUBLE_INT, MPI_MAXLOC, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK(before[0].value == 1 && before[1].value == 2 && before[1].index == 6);
  struct DoubleInt now[2];
  memcpy(now, w.memory, bytes);
  CHECK(now[0].value == 5 && now[0].index == 7 && now[1].value == 2 && now[1].index == 6);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, w.handle));
  CHECK_CALL(MPI_Fetch_and_op(NULL, before, MPI_DOUBLE_INT, right(), sizeof(struct DoubleInt),
                              MPI_NO_OP, w.handle));
  CHECK_CALL(MPI_Win_unlock(right(), w.handle));
  CHECK(before[0].value == 2 && before[0].index == 6);
  move_pairs(&w, mine);
  end(&w);
}

/* ---- accumulates of one origin on one place are done in the order of the calls */
static void check_order(void) {
  struct Window w = make(8, 8, MPI_COMM_WORLD);
  const long long three = 3, four = 4, five = 5;
  long long seen[2] = {-1, -1};
  CHECK_CALL(MPI_Win_lock_all(0, w.handle));
  CHECK_CALL(MPI_Accumulate(&three, 1, MPI_LONG_LONG, right(), 0, 1, MPI_LONG_LONG, MPI_REPLACE,
                            w.handle));
  CHECK_CALL(
      MPI_Accumulate(&four, 1, MPI_LONG_LONG, right(), 0, 1, MPI_LONG_LONG, MPI_SUM, w.handle));
  CHECK_CALL(MPI_Fetch_and_op(&five, &seen[0], MPI_LONG_LONG, right(), 0, MPI_PROD, w.handle));
  CHECK_CALL(MPI_Fetch_and_op(NULL, &seen[1], MPI_LONG_LONG, right(), 0, MPI_NO_OP, w.handle));
  CHECK_CALL(MPI_Win_unlock_all(w.handle));
  CHECK(seen[0] == 7 && seen[1] == 35);
  end(&w);
}

/* ---- results of another layout than the target */
static void check_result_types(void) {
  struct Window w = make(3 * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD);
  const int add[3] = {1, 2, 3};
  int before[5] = {-1, -1, -1, -1, -1};
  MPI_Datatype strided;
  MPI_Type_vector(3, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  for (int i = 0; i < 3; ++i) ((int*)w.memory)[i] = 10 * rank + i;
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get_accumulate(add, 3, MPI_INT, before, 1, strided, right(), 0, 3, MPI_INT,
                                MPI_SUM, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  for (int i = 0; i < 5; ++i) CHECK(before[i] == (i % 2 ? -1 : 10 * right() + i / 2));
  for (int i = 0; i < 3; ++i) CHECK(((int*)w.memory)[i] == 10 * rank + i + add[i]);
  MPI_Type_free(&strided);
  end(&w);
}

/* ---- epochs towards nobody, a few, and with assertions */
static void check_groups(void) {
  struct Window w = make(8 * ranks, 8, MPI_COMM_WORLD);
  MPI_Group all, near;
  const int members[2] = {left(), right()};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, ranks > 2 ? 2 : 1, members, &near);
  for (int round = 1; round <= 4; ++round) {
    const double mine = rank + round;
    int over = 0;
    CHECK_CALL(MPI_Win_post(MPI_GROUP_EMPTY, 0, w.handle));
    CHECK_CALL(MPI_Win_start(MPI_GROUP_EMPTY, 0, w.handle));
    CHECK_CALL(MPI_Win_complete(w.handle));
    CHECK_CALL(MPI_Win_wait(w.handle));
    MPI_Barrier(MPI_COMM_WORLD); /* MPICH waits forever where a post meets the start above */
    const int assertion = round == 4 ? MPI_MODE_NOCHECK : 0;
    CHECK_CALL(MPI_Win_post(near, assertion, w.handle));
    if (round == 4) MPI_Barrier(MPI_COMM_WORLD);
    CHECK_CALL(MPI_Win_start(near, assertion, w.handle));
    CHECK_CALL(MPI_Put(&mine, 1, MPI_DOUBLE, right(), rank, 1, MPI_DOUBLE, w.handle));
    CHECK_CALL(MPI_Put(&mine, 1, MPI_DOUBLE, left(), rank, 1, MPI_DOUBLE, w.handle));
    CHECK_CALL(MPI_Win_complete(w.handle));
    while (round % 2 && !over) CHECK_CALL(MPI_Win_test(w.handle, &over));
    if (!over) CHECK_CALL(MPI_Win_wait(w.handle));
    CHECK(((double*)w.memory)[left()] == left() + round);
    CHECK(((double*)w.memory)[right()] == right() + round);
  }
  MPI_Group_free(&near);
  MPI_Group_free(&all);
  end(&w);
}

/* ---- requests of operations in one array with those of messages */
static void check_requests(void) {
  struct Window w = make(64, 1, MPI_COMM_WORLD);
  const int mine = rank;
  int got = -1, from = -1, sum = 0;
  MPI_Request all[6];
  MPI_Status statuses[6];
  CHECK_CALL(MPI_Win_lock_all(0, w.handle));
  CHECK_CALL(MPI_Irecv(&from, 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &all[0]));
  CHECK_CALL(MPI_Rput(&mine, 1, MPI_INT, right(), 0, 1, MPI_INT, w.handle, &all[1]));
  all[2] = MPI_REQUEST_NULL;
  CHECK_CALL(
      MPI_Raccumulate(&mine, 1, MPI_INT, right(), 8, 1, MPI_INT, MPI_SUM, w.handle, &all[3]));
  CHECK_CALL(MPI_Rget(&got, 1, MPI_INT, rank, 16, 1, MPI_INT, w.handle, &all[4]));
  CHECK_CALL(MPI_Isend(&mine, 1, MPI_INT, right(), 3, MPI_COMM_WORLD, &all[5]));
  CHECK_CALL(MPI_Waitall(6, all, statuses));
  for (int i = 0; i < 6; ++i) CHECK(all[i] == MPI_REQUEST_NULL);
  CHECK(from == left() && got == 0 && statuses[0].MPI_SOURCE == left() && statuses[0].MPI_TAG == 3);
  CHECK_CALL(MPI_Rget_accumulate(&mine, 1, MPI_INT, &sum, 1, MPI_INT, right(), 8, 1, MPI_INT,
                                 MPI_SUM, w.handle, &all[0]));
  CHECK_CALL(MPI_Rput(&mine, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.handle, &all[1]));
  for (int left_over = 2, index = -1; left_over > 0; --left_over) {
    CHECK_CALL(MPI_Waitany(2, all, &index, MPI_STATUS_IGNORE));
    CHECK(index == 0 || index == 1);
  }
  CHECK_CALL(MPI_Win_unlock_all(w.handle));
  CHECK(sum == rank);
  end(&w);
}

/* ---- windows of parts of the ranks, in another order, after their communicators are gone */
static void check_communicators(void) {
  enum { many = 12 };
  struct Window windows[many];
  int places[many], sizes[many];
  for (int i = 0; i < many; ++i) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 2 ? rank % 2 : 0, i % 2 ? -rank : rank, &part);
    MPI_Comm_rank(part, &places[i]);
    MPI_Comm_size(part, &sizes[i]);
    windows[i] = make(8, 8, part);
    MPI_Comm_free(&part);
  }
  for (int i = 0; i < many; ++i) {
    const double mine = 10 * i + places[i];
    const int next = (places[i] + 1) % sizes[i], last = (places[i] + sizes[i] - 1) % sizes[i];
    CHECK_CALL(MPI_Win_fence(MPI_MODE_NOPRECEDE, windows[i].handle));
    CHECK_CALL(MPI_Put(&mine, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, windows[i].handle));
    CHECK_CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[i].handle));
    CHECK(*(double*)windows[i].memory == 10 * i + last);
  }
  for (int i = 0; i < many; ++i) end(&windows[(i * 5) % many]);
}

/* ---- shared memory: side by side, found by whoever asks for nobody in particular */
static void check_shared(void) {
  char *memory = NULL, *first = NULL, *again = NULL;
  MPI_Win window;
  MPI_Aint bytes = -1;
  int unit = -1;
  CHECK_CALL(MPI_Win_allocate_shared(rank == 0 ? 0 : 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                                     &window));
  CHECK_CALL(MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &first));
  CHECK(bytes == 64 && unit == 4 && first != NULL);
  CHECK_CALL(MPI_Win_shared_query(window, rank, &bytes, &unit, &again));
  CHECK(bytes == (rank == 0 ? 0 : 64));
  if (rank > 0) CHECK(again == memory && memory == first + 64 * (rank - 1));
  CHECK_CALL(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
  if (rank == 1) *(volatile int*)memory = 41;
  CHECK_CALL(MPI_Win_sync(window));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_sync(window));
  CHECK(*(volatile int*)first == 41);
  CHECK_CALL(MPI_Win_unlock_all(window));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_free(&window));
}

/* ---- errors come back, once, by the handler of the window, which can be used on */
static int handled;
static void count_error(MPI_Win* window, int* code, ...) {
  (void)window;
  handled += *code != MPI_SUCCESS;
}
static int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}
static void check_errors(void) {
  struct Window w = make(8, 1, MPI_COMM_WORLD);
  MPI_Errhandler counting;
  int one = 1, got = 0;
  MPI_Win_set_errhandler(w.handle, MPI_ERRORS_RETURN);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK(class_of(MPI_Put(&one, 1, MPI_INT, ranks, 0, 1, MPI_INT, w.handle)) == MPI_ERR_RANK);
  CHECK(class_of(MPI_Put(&one, -1, MPI_INT, 0, 0, 1, MPI_INT, w.handle)) == MPI_ERR_COUNT);
  CHECK(class_of(MPI_Get(&one, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, w.handle)) == MPI_ERR_TYPE);
  CHECK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, w.handle) != MPI_SUCCESS);
  MPI_Win_create_errhandler(count_error, &counting);
  MPI_Win_set_errhandler(w.handle, counting);
  MPI_Put(&one, 1, MPI_INT, ranks, 0, 1, MPI_INT, w.handle); /* MPICH's handlers end the error */
  CHECK(handled == 1);
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK_CALL(MPI_Get(&got, 1, MPI_INT, right(), 0, 1, MPI_INT, w.handle));
  CHECK_CALL(MPI_Win_fence(0, w.handle));
  CHECK(handled == 1 && got == 0);
  MPI_Errhandler_free(&counting);
  end(&w);
}

/* ---- attributes of the program's go when the window goes */
static int deleted;
static int forget_attribute(MPI_Win window, int key, void* value, void* extra) {
  (void)window, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}
static void check_attributes(void) {
  struct Window w = make(8, 8, MPI_COMM_WORLD);
  int key = MPI_KEYVAL_INVALID, value = 5, *model = NULL, *found = NULL, flag = 0;
  CHECK_CALL(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget_attribute, &key, NULL));
  CHECK_CALL(MPI_Win_set_attr(w.handle, key, &value));
  CHECK_CALL(MPI_Win_get_attr(w.handle, key, &found, &flag));
  CHECK(flag && found == &value);
  CHECK_CALL(MPI_Win_get_attr(w.handle, MPI_WIN_MODEL, &model, &flag));
  CHECK(flag && *model == MPI_WIN_UNIFIED);
  end(&w);
  CHECK(deleted == 1);
  CHECK_CALL(MPI_Win_free_keyval(&key));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check_warm(MPI_COMM_WORLD);
  check_sizes_and_units();
  check_absolute_and_gaps();
  check_negative_lower_bound();
  check_distributed_array();
  check_pairs();
  check_order();
  check_result_types();
  check_groups();
  check_requests();
  check_communicators();
  check_shared();
  check_errors();
  check_attributes();
  return check_finish();
}
