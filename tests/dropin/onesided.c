/* Random valid sequences of one-sided operations on windows of all kinds, by all ways to
 * synchronise, against what a model of the window's memory says. Every rank draws the operations of
 * all ranks from one seed, so that each knows what its memory must hold; operations of one round on
 * one element commute.
 *
 *   onesided [SEEDS [OPERATIONS [KINDS]]]: windows of so many kinds */
#include "check.h"

enum { most_ranks = 16, most_operations = 32, slot = 256, elements = 24, constants = 1024 };
enum { kinds = 11, element_bytes = 16, ways = 4 };

static int rank, ranks, operations = 12;
static unsigned long long state;

static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % below;
}

/* ---- what lies in a window: what never changes, a place for each operation, what is added to, and
 * four numbers of the tests below */
static size_t places_at(void) { return constants; }
static size_t sums_at(void) { return constants + (size_t)(ranks * operations * slot); }
static size_t sums_bytes(void) { return (size_t)(kinds * elements * element_bytes * 2); }
static size_t numbers_at(void) { return sums_at() + sums_bytes(); }
static size_t window_bytes(void) { return numbers_at() + 64; }
static unsigned char constant(int of, size_t at) { return (unsigned char)(of * 37 + (int)at * 11); }

enum Kind { allocated, shared, created, window_kinds };
struct Window {
  MPI_Win handle;
  char* memory;
  int unit;
};

static unsigned char* model[most_ranks]; /* of each rank's memory */

static MPI_Aint place(const struct Window* w, size_t at) { return (MPI_Aint)at / w->unit; }

static struct Window make(enum Kind kind) {
  struct Window w = {MPI_WIN_NULL, NULL, kind == shared ? 8 : 1};
  MPI_Aint bytes = (MPI_Aint)window_bytes();
  if (kind == created) {
    CHECK_CALL(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &w.memory));
    CHECK_CALL(MPI_Win_create(w.memory, bytes, w.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w.handle));
  } else if (kind == shared) {
    CHECK_CALL(MPI_Win_allocate_shared(bytes, w.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w.memory,
                                       &w.handle));
  } else {
    CHECK_CALL(
        MPI_Win_allocate(bytes, w.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w.memory, &w.handle));
  }
  memset(w.memory, 0, (size_t)bytes);
  for (int at = 0; at < constants; ++at) w.memory[at] = (char)constant(rank, (size_t)at);
  for (int of = 0; of < ranks; ++of) {
    model[of] = calloc((size_t)bytes, 1);
    for (size_t at = 0; at < constants; ++at) model[of][at] = constant(of, at);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return w;
}

/* ---- one operation, drawn alike on all ranks */
enum What { put, put_strided, get, get_strided, add, add_strided, fetch_add, read_all, whats };
struct Operation {
  enum What what;
  int origin, number, target, kind, first, count, offset;
  unsigned char key;
};

static struct Operation draw_operation(int origin, int number) {
  struct Operation made;
  made.what = (enum What)draw(whats);
  made.origin = origin;
  made.number = number;
  made.target = (int)draw((unsigned)ranks);
  made.kind = (int)draw(kinds);
  made.count = (int)draw(elements / 2 + 1);
  made.first = (int)draw((unsigned)(elements - 2 * made.count + 1));
  made.offset = (int)draw(8) * 8;
  made.key = (unsigned char)draw(256);
  return made;
}

static size_t place_of(struct Operation o) {
  return places_at() + (size_t)((o.origin * operations + o.number) * slot + o.offset);
}

/* ---- elements that are added to: small numbers, so that every order of sums gives the same */
static MPI_Datatype type_of(int kind) {
  const MPI_Datatype types[kinds] = {MPI_INT,        MPI_DOUBLE,      MPI_UNSIGNED_CHAR,
                                     MPI_SHORT,      MPI_LONG_LONG,   MPI_FLOAT,
                                     MPI_FLOAT_INT,  MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
                                     MPI_DOUBLE_INT, MPI_C_BOOL};
  return types[kind];
}
static size_t size_of(int kind) {
  const size_t sizes[kinds] = {4, 8, 1, 2, 8, 4, 8, sizeof(long double), 16, 16, 1};
  return sizes[kind];
}
static MPI_Op op_of(int kind) {
  if (kind == 6 || kind == 9) return MPI_MAXLOC;
  return kind == 10 ? MPI_LOR : kind == 2 ? MPI_BXOR : kind == 3 ? MPI_MAX : MPI_SUM;
}
struct DoubleInt {
  double value;
  int index;
};
struct FloatInt {
  float value;
  int index;
};

static void operand(int kind, unsigned n, void* to) {
  memset(to, 0, size_of(kind));
  if (kind == 0) *(int*)to = (int)n;
  if (kind == 1) *(double*)to = n;
  if (kind == 2) *(unsigned char*)to = (unsigned char)n;
  if (kind == 3) *(short*)to = (short)n;
  if (kind == 4) *(long long*)to = (long long)n << 20;
  if (kind == 5) *(float*)to = (float)n;
  if (kind == 6) *(struct FloatInt*)to = (struct FloatInt){(float)n, (int)n % 7};
  if (kind == 7) *(long double*)to = n;
  if (kind == 8) ((double*)to)[1] = *(double*)to = n;
  if (kind == 9) *(struct DoubleInt*)to = (struct DoubleInt){n, (int)n % 5};
  if (kind == 10) *(unsigned char*)to = n % 2;
}

static void combine_pair(int kind, const void* from, void* to) {
  const struct FloatInt f = *(const struct FloatInt*)from;
  if (kind == 6) {
    struct FloatInt* most = to;
    if (f.value > most->value || (f.value == most->value && f.index < most->index)) *most = f;
    return;
  }
  const struct DoubleInt* d = from;
  struct DoubleInt* most = to;
  if (d->value < most->value || (d->value == most->value && d->index >= most->index)) return;
  most->value = d->value; /* and not the gap behind the index */
  most->index = d->index;
}

static void combine(int kind, const void* from, void* to) {
  const unsigned char byte = *(const unsigned char*)from;
  if (kind == 0) *(int*)to += *(const int*)from;
  if (kind == 1) *(double*)to += *(const double*)from;
  if (kind == 2) *(unsigned char*)to ^= byte;
  if (kind == 3 && *(short*)to < *(const short*)from) *(short*)to = *(const short*)from;
  if (kind == 4) *(long long*)to += *(const long long*)from;
  if (kind == 5) *(float*)to += *(const float*)from;
  if (kind == 7) *(long double*)to += *(const long double*)from;
  for (int i = 0; kind == 8 && i < 2; ++i) ((double*)to)[i] += ((const double*)from)[i];
  if (kind == 10) *(unsigned char*)to |= byte;
  if (kind == 6 || kind == 9) combine_pair(kind, from, to);
}

static size_t sum_at(struct Operation o, int element) {
  return sums_at() + (size_t)(o.kind * elements * element_bytes * 2) +
         (size_t)element * size_of(o.kind);
}
static int stride(struct Operation o) { return o.what == add_strided ? 2 : 1; }

/* ---- the model */
static void expect(struct Operation o) {
  unsigned char* memory = model[o.target];
  if (o.what == put) memset(memory + place_of(o), o.key, (size_t)o.count * 8);
  for (int i = 0; o.what == put_strided && i < o.count; ++i) {
    memset(memory + place_of(o) + i * 16, o.key, 4);
  }
  if (o.what != add && o.what != add_strided && o.what != fetch_add) return;
  for (int i = 0; i < o.count; ++i) {
    char one[element_bytes];
    operand(o.kind, o.key % 50 + (unsigned)i, one);
    combine(o.kind, one, memory + sum_at(o, o.first + i * stride(o)));
  }
}

/* ---- the same by MPI. Buffers stay until the round is over. */
struct Buffers {
  char from[most_operations][elements * element_bytes * 2], into[most_operations][constants];
};
static struct Buffers buffers;

static void finish(MPI_Request request) { CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE)); }

static void perform_put(const struct Window* w, struct Operation o, int passive) {
  char* from = buffers.from[o.number];
  MPI_Datatype strided;
  MPI_Request request;
  memset(from, o.key, sizeof buffers.from[0]);
  const MPI_Aint at = place(w, place_of(o));
  if (o.what == put && passive && o.key % 2) {
    CHECK_CALL(MPI_Rput(from, o.count, MPI_DOUBLE, o.target, at, o.count * 8, MPI_BYTE, w->handle,
                        &request));
    finish(request);
  } else if (o.what == put) {
    CHECK_CALL(MPI_Put(from, o.count, MPI_DOUBLE, o.target, at, o.count, MPI_DOUBLE, w->handle));
  } else {
    MPI_Type_vector(o.count, 1, 4, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    CHECK_CALL(MPI_Put(from, o.count, MPI_INT, o.target, at, 1, strided, w->handle));
    MPI_Type_free(&strided);
  }
}

static void perform_get(const struct Window* w, struct Operation o, int passive) {
  char* into = buffers.into[o.number];
  MPI_Datatype strided;
  MPI_Request request;
  memset(into, 0, constants);
  const MPI_Aint at = place(w, (size_t)o.offset);
  if (o.what == get && passive && o.key % 2) {
    CHECK_CALL(MPI_Rget(into, o.count * 8, MPI_BYTE, o.target, at, o.count * 8, MPI_BYTE, w->handle,
                        &request));
    finish(request);
  } else if (o.what == get) {
    CHECK_CALL(MPI_Get(into, o.count, MPI_DOUBLE, o.target, at, o.count, MPI_DOUBLE, w->handle));
  } else if (o.what == get_strided) {
    MPI_Type_vector(o.count, 1, 2, MPI_DOUBLE, &strided);
    MPI_Type_commit(&strided);
    CHECK_CALL(MPI_Get(into, 1, strided, o.target, at, 1, strided, w->handle));
    MPI_Type_free(&strided);
  } else {
    CHECK_CALL(MPI_Get_accumulate(NULL, 0, MPI_INT, into, o.count, MPI_INT, o.target, at, o.count,
                                  MPI_INT, MPI_NO_OP, w->handle));
  }
}

static void perform_add(const struct Window* w, struct Operation o, int passive) {
  char* from = buffers.from[o.number];
  const MPI_Datatype type = type_of(o.kind);
  MPI_Datatype strided;
  MPI_Request request;
  for (int i = 0; i < o.count; ++i) {
    operand(o.kind, o.key % 50 + (unsigned)i, from + (size_t)i * size_of(o.kind));
  }
  const size_t byte = sum_at(o, o.first);
  if (byte % (size_t)w->unit != 0) return; /* expected() says so, too */
  const MPI_Aint at = place(w, byte);
  if (o.what == add && passive && o.key % 2) {
    CHECK_CALL(MPI_Raccumulate(from, o.count, type, o.target, at, o.count, type, op_of(o.kind),
                               w->handle, &request));
    finish(request);
  } else if (o.what == add) {
    CHECK_CALL(
        MPI_Accumulate(from, o.count, type, o.target, at, o.count, type, op_of(o.kind), w->handle));
  } else if (o.what == add_strided) {
    MPI_Type_vector(o.count, 1, 2, type, &strided);
    MPI_Type_commit(&strided);
    CHECK_CALL(
        MPI_Accumulate(from, o.count, type, o.target, at, 1, strided, op_of(o.kind), w->handle));
    MPI_Type_free(&strided);
  } else {
    CHECK_CALL(MPI_Get_accumulate(from, o.count, type, buffers.into[o.number], o.count, type,
                                  o.target, at, o.count, type, op_of(o.kind), w->handle));
  }
}

static void perform(const struct Window* w, struct Operation o, int passive) {
  if (o.what <= put_strided) perform_put(w, o, passive);
  if (o.what == get || o.what == get_strided || o.what == read_all) perform_get(w, o, passive);
  if (o.what == add || o.what == add_strided || o.what == fetch_add) perform_add(w, o, passive);
}

static void check_got(struct Operation o) {
  const unsigned char* into = (const unsigned char*)buffers.into[o.number];
  const int each = o.what == read_all ? 4 : 8, step = o.what == get_strided ? 16 : each;
  if (o.what != get && o.what != get_strided && o.what != read_all) return;
  for (int i = 0; i < o.count; ++i) {
    for (int byte = 0; byte < each; ++byte) {
      CHECK(into[i * step + byte] == constant(o.target, (size_t)(o.offset + i * step + byte)));
    }
  }
}

/* ---- a round, by each way to synchronise */
static MPI_Group everybody(void) {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  return group;
}

static void begin(const struct Window* w, int way) {
  MPI_Group all = everybody();
  if (way == 0) CHECK_CALL(MPI_Win_fence(0, w->handle));
  if (way == 1) CHECK_CALL(MPI_Win_lock_all(0, w->handle));
  if (way == 2) CHECK_CALL(MPI_Win_post(all, 0, w->handle));
  if (way == 2) CHECK_CALL(MPI_Win_start(all, 0, w->handle));
  MPI_Group_free(&all);
}

static void end(const struct Window* w, int way, int tests) {
  if (way == 0) CHECK_CALL(MPI_Win_fence(0, w->handle));
  if (way == 1) CHECK_CALL(MPI_Win_unlock_all(w->handle));
  if (way == 2) CHECK_CALL(MPI_Win_complete(w->handle));
  if (way == 2 && !tests) CHECK_CALL(MPI_Win_wait(w->handle));
  for (int done = !(way == 2 && tests); !done;) CHECK_CALL(MPI_Win_test(w->handle, &done));
  if (way == 1 || way == 3) MPI_Barrier(MPI_COMM_WORLD); /* else all is there */
}

static void perform_in_own_epoch(const struct Window* w, struct Operation o) {
  CHECK_CALL(
      MPI_Win_lock(o.key % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, o.target, 0, w->handle));
  perform(w, o, 1);
  if (o.key % 4 == 0) CHECK_CALL(MPI_Win_flush(o.target, w->handle));
  CHECK_CALL(MPI_Win_unlock(o.target, w->handle));
}

static void check_memory(const struct Window* w) {
  CHECK_CALL(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->handle));
  size_t bad = 0;
  while (bad < window_bytes() && (unsigned char)w->memory[bad] == model[rank][bad]) ++bad;
  if (bad < window_bytes()) fprintf(stderr, "rank %d: byte %zu differs\n", rank, bad);
  CHECK(bad == window_bytes());
  CHECK_CALL(MPI_Win_unlock(rank, w->handle));
}

static void run_round(const struct Window* w, int way) {
  struct Operation own[most_operations];
  begin(w, way);
  for (int origin = 0; origin < ranks; ++origin) {
    for (int number = 0; number < operations; ++number) {
      const struct Operation o = draw_operation(origin, number);
      if (o.what < add || o.what == read_all || sum_at(o, o.first) % (size_t)w->unit == 0)
        expect(o);
      if (origin == rank) own[number] = o;
    }
  }
  for (int number = 0; number < operations; ++number) {
    if (way == 3) {
      perform_in_own_epoch(w, own[number]);
    } else {
      perform(w, own[number], way == 1);
    }
    if (way == 1 && number % 4 == 0) CHECK_CALL(MPI_Win_flush_all(w->handle));
  }
  end(w, way, (int)draw(2));
  for (int number = 0; number < operations; ++number) check_got(own[number]);
  check_memory(w);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- numbers that all ranks draw from rank 0, each once */
static void take_numbers(const struct Window* w) {
  const long long one = 1;
  long long taken[8];
  int seen[8 * most_ranks] = {0}, all[8 * most_ranks];
  MPI_Win_lock_all(0, w->handle);
  for (int i = 0; i < 8; ++i) {
    CHECK_CALL(MPI_Fetch_and_op(&one, &taken[i], MPI_LONG_LONG, 0, place(w, numbers_at()), MPI_SUM,
                                w->handle));
    CHECK_CALL(MPI_Win_flush(0, w->handle));
  }
  MPI_Win_unlock_all(w->handle);
  for (int i = 0; i < 8; ++i) {
    CHECK(taken[i] >= 0 && taken[i] < 8 * ranks);
    ++seen[taken[i]];
  }
  MPI_Allreduce(seen, all, 8 * ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 8 * ranks; ++i) CHECK(all[i] == 1);
}

/* ---- elements that all ranks add to at once, narrow and wide ones */
static void add_at_once(const struct Window* w) {
  enum { times = 100, wide = 4 };
  const size_t at = sums_at() + (size_t)(7 * elements * element_bytes * 2);
  long double ones[wide] = {1, 1, 1, 1}, before[wide] = {0}, after[wide] = {0};
  const long long one = 1;
  const MPI_Aint number = place(w, numbers_at() + 32), sums = place(w, at);
  MPI_Win_lock_all(0, w->handle);
  MPI_Get(before, wide, MPI_LONG_DOUBLE, 0, sums, wide, MPI_LONG_DOUBLE, w->handle);
  MPI_Win_flush(0, w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < times; ++i) {
    CHECK_CALL(MPI_Accumulate(ones, wide, MPI_LONG_DOUBLE, 0, sums, wide, MPI_LONG_DOUBLE, MPI_SUM,
                              w->handle));
    CHECK_CALL(
        MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, number, 1, MPI_LONG_LONG, MPI_SUM, w->handle));
  }
  MPI_Win_flush(0, w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  long long sum = 0;
  MPI_Get(after, wide, MPI_LONG_DOUBLE, 0, sums, wide, MPI_LONG_DOUBLE, w->handle);
  MPI_Get(&sum, 1, MPI_LONG_LONG, 0, number, 1, MPI_LONG_LONG, w->handle);
  MPI_Win_unlock_all(w->handle);
  CHECK(sum == times * ranks);
  for (int i = 0; i < wide; ++i) CHECK(after[i] == before[i] + times * ranks);
}

/* ---- a number that one rank at a time reads and writes, under a lock of the window and under one
 * made of swaps */
static void raise_number(const struct Window* w, size_t at) {
  long long number = -1;
  CHECK_CALL(MPI_Get(&number, 1, MPI_LONG_LONG, 0, place(w, at), 1, MPI_LONG_LONG, w->handle));
  CHECK_CALL(MPI_Win_flush(0, w->handle));
  ++number;
  CHECK_CALL(MPI_Put(&number, 1, MPI_LONG_LONG, 0, place(w, at), 1, MPI_LONG_LONG, w->handle));
  CHECK_CALL(MPI_Win_flush(0, w->handle));
}

static void take_turns(const struct Window* w) {
  const size_t number = numbers_at() + 8, lock = numbers_at() + 16, other = numbers_at() + 24;
  const int open = 0, closed = 1;
  for (int i = 0; i < 4; ++i) {
    CHECK_CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->handle));
    raise_number(w, number);
    CHECK_CALL(MPI_Win_unlock(0, w->handle));
  }
  MPI_Win_lock_all(0, w->handle);
  for (int i = 0; i < 2; ++i) {
    for (int was = closed; was != open;) {
      CHECK_CALL(MPI_Compare_and_swap(&closed, &open, &was, MPI_INT, 0, place(w, lock), w->handle));
      CHECK_CALL(MPI_Win_flush(0, w->handle));
    }
    raise_number(w, other);
    CHECK_CALL(
        MPI_Accumulate(&open, 1, MPI_INT, 0, place(w, lock), 1, MPI_INT, MPI_REPLACE, w->handle));
    CHECK_CALL(MPI_Win_flush(0, w->handle));
  }
  MPI_Win_unlock_all(w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->handle);
  long long found[2] = {0, 0};
  MPI_Get(&found[0], 1, MPI_LONG_LONG, 0, place(w, number), 1, MPI_LONG_LONG, w->handle);
  MPI_Get(&found[1], 1, MPI_LONG_LONG, 0, place(w, other), 1, MPI_LONG_LONG, w->handle);
  MPI_Win_unlock(0, w->handle);
  CHECK(found[0] == 4 * ranks);
  CHECK(found[1] == 2 * ranks);
}

/* ---- what the program may ask the window, and what goes nowhere */
static void check_edges(const struct Window* w, enum Kind kind) {
  static const int flavors[] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                                MPI_WIN_FLAVOR_CREATE};
  void* base = NULL;
  MPI_Aint* size = NULL;
  int *unit = NULL, *flavor = NULL, flag = 0;
  CHECK_CALL(MPI_Win_get_attr(w->handle, MPI_WIN_BASE, &base, &flag));
  CHECK(flag && base == w->memory);
  CHECK_CALL(MPI_Win_get_attr(w->handle, MPI_WIN_SIZE, &size, &flag));
  CHECK(flag && *size == (MPI_Aint)window_bytes());
  CHECK_CALL(MPI_Win_get_attr(w->handle, MPI_WIN_DISP_UNIT, &unit, &flag));
  CHECK(flag && *unit == w->unit);
  CHECK_CALL(MPI_Win_get_attr(w->handle, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
  CHECK(flag && *flavor == flavors[kind]);
  CHECK_CALL(MPI_Win_fence(0, w->handle));
  int nothing = 7;
  CHECK_CALL(MPI_Put(&nothing, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w->handle));
  CHECK_CALL(MPI_Get(&nothing, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w->handle));
  CHECK_CALL(MPI_Put(&nothing, 0, MPI_INT, 0, 0, 0, MPI_INT, w->handle));
  CHECK_CALL(MPI_Accumulate(&nothing, 0, MPI_INT, 0, 0, 0, MPI_INT, MPI_SUM, w->handle));
  CHECK(nothing == 7);
  CHECK_CALL(MPI_Win_fence(0, w->handle));
  MPI_Win_set_errhandler(w->handle, MPI_ERRORS_RETURN);
  CHECK(MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, w->handle) != MPI_SUCCESS);
  MPI_Win_set_errhandler(w->handle, MPI_ERRORS_ARE_FATAL);
}

static void run(enum Kind kind, int way) {
  struct Window w = make(kind);
  check_edges(&w, kind);
  for (int i = 0; i < 2; ++i) run_round(&w, way);
  take_numbers(&w);
  add_at_once(&w);
  take_turns(&w);
  CHECK_CALL(MPI_Win_free(&w.handle));
  CHECK(w.handle == MPI_WIN_NULL);
  if (kind == created) MPI_Free_mem(w.memory);
  for (int of = 0; of < ranks; ++of) free(model[of]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int seeds = argc > 1 ? atoi(argv[1]) : 2;
  if (argc > 2) operations = atoi(argv[2]);
  const int most_kinds = argc > 3 ? atoi(argv[3]) : window_kinds;
  check_warm(MPI_COMM_WORLD);
  for (int seed = 0; seed < seeds; ++seed) {
    state = (unsigned long long)seed;
    for (int way = 0; way < ways; ++way) {
      for (int kind = 0; kind < most_kinds; ++kind) run(kind, way);
    }
  }
  return check_finish();
}
