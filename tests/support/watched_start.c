/* Preloaded by launch.sh into the ranks of a test: tells a hang of the MPI's own start from any
 * later one, and where each thread stood.
 *
 * MPI_Init and MPI_Init_thread go on to the MPI's. Under Open MPI each pair of ranks then sends one
 * another a first message, and MPI_COMM_WORLD is split once: what of that hangs is the MPI's fault
 * alone: of ropewalk at most the malloc library has run by then, under the MPI's own allocations.
 * When the time in ROPEWALK_TEST_HANG is over ("SECONDS FILE", of a run that should have ended long
 * ago) every rank appends to the file that it is past the start, and the stack of each of its
 * threads. One that is not past it after 40 s, or two fifths of the time, appends that it is in the
 * start, and ends with status 1, which ends the job.
 *
 * No MPI's header: the handles that Open MPI needs are looked up by name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { most_frames = 64, most_text = 16384, most_start_seconds = 40 };

static volatile sig_atomic_t started;
static char report_file[4096];
static long limit_seconds;
static timer_t timer;

/* ---- the report */

static int hang_signal(void) { return SIGRTMAX - 3; }

static size_t add_frame(char* text, size_t used, void* frame) {
  Dl_info info;
  if (dladdr(frame, &info) == 0 || info.dli_fname == NULL) return used;
  /* Of the call, not of what follows it. */
  unsigned long offset = (unsigned long)((char*)frame - (char*)info.dli_fbase) - 1;
  int added = snprintf(text + used, most_text - used, "  %s 0x%lx %s\n", info.dli_fname, offset,
                       info.dli_sname == NULL ? "" : info.dli_sname);
  return added < 0 || (size_t)added >= most_text - used ? used : used + (size_t)added;
}

/* One write, so that what several ranks append does not mix. */
static void report_this_thread(void) {
  static __thread char text[most_text];
  void* frames[most_frames];
  int found = backtrace(frames, most_frames);
  size_t used = (size_t)snprintf(text, sizeof text, "%s: process %d, thread %d\n",
                                 started ? "past the start" : "in the start", (int)getpid(),
                                 (int)syscall(SYS_gettid));
  for (int i = 2; i < found; ++i) used = add_frame(text, used, frames[i]);
  int file = open(report_file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, text, used) < 0) used = 0;
  close(file);
}

static void ask_other_threads(void) {
  DIR* folder = opendir("/proc/self/task");
  if (folder == NULL) return;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    int thread = atoi(entry->d_name);
    if (thread > 0 && thread != (int)syscall(SYS_gettid)) {
      syscall(SYS_tgkill, getpid(), thread, hang_signal());
    }
  }
  closedir(folder);
}

/* The process hangs: what a handler may call matters less than what it can tell. */
static void report(int number, siginfo_t* from, void* context) {
  (void)number;
  (void)context;
  int error = errno;
  report_this_thread();
  if (from->si_code == SI_TIMER) ask_other_threads();
  if (from->si_code == SI_TIMER && !started) _exit(1);
  errno = error;
}

static void fire_after(long seconds) {
  struct itimerspec when = {{0, 0}, {seconds, 0}};
  if (limit_seconds > 0) timer_settime(timer, 0, &when, NULL);
}

/* ROPEWALK_TEST_HANG: SECONDS FILE */
static void begin_watch(void) {
  const char* setting = getenv("ROPEWALK_TEST_HANG");
  char* rest = NULL;
  long seconds = setting == NULL ? 0 : strtol(setting, &rest, 10);
  if (seconds <= 0 || *rest != ' ' || strlen(rest) > sizeof report_file) return;
  strcpy(report_file, rest + 1);
  void* frames[1];
  backtrace(frames, 1); /* loads what unwinds, now that there is time */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(hang_signal(), &action, NULL);
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = hang_signal();
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) limit_seconds = seconds;
  long start = seconds * 2 / 5 < most_start_seconds ? seconds * 2 / 5 : most_start_seconds;
  fire_after(start > 0 ? start : 1);
}

/* ---- the start */

/* An MPI that a plug-in loaded for itself alone. */
static int note_mpi(struct dl_phdr_info* info, size_t size, void* result) {
  (void)size;
  const char* slash = strrchr(info->dlpi_name, '/');
  if (strncmp(slash == NULL ? info->dlpi_name : slash + 1, "libmpi", 6) != 0) return 0;
  void* library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  if (library != NULL && dlsym(library, "PMPI_Init") != NULL) *(void**)result = library;
  return *(void**)result != NULL;
}

static void* find(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  void* library = NULL;
  if (found == NULL) dl_iterate_phdr(note_mpi, &library);
  return library == NULL ? found : dlsym(library, name);
}

/* What a program refers to may have been copied into it: the first of that name counts. */
static void* find_data(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return found == NULL ? find(name) : found;
}

/* A first message from each rank to each, and a first split. */
static void open_ways_of_openmpi(void) {
  void* world = find_data("ompi_mpi_comm_world");
  void* byte = find_data("ompi_mpi_byte");
  int (*get_rank)(void*, int*) = (int (*)(void*, int*))find("PMPI_Comm_rank");
  int (*get_size)(void*, int*) = (int (*)(void*, int*))find("PMPI_Comm_size");
  int (*exchange)(const void*, int, void*, int, int, void*, int, void*, int, int, void*, void*) =
      (int (*)(const void*, int, void*, int, int, void*, int, void*, int, int, void*, void*))find(
          "PMPI_Sendrecv");
  int (*split)(void*, int, int, void*) = (int (*)(void*, int, int, void*))find("PMPI_Comm_split");
  int (*release)(void*) = (int (*)(void*))find("PMPI_Comm_free");
  if (!world || !byte || !get_rank || !get_size || !exchange || !split || !release) return;
  int rank = 0, size = 1;
  char to = 0, from = 0;
  void* part = NULL;
  get_rank(world, &rank);
  get_size(world, &size);
  for (int step = 1; step < size; ++step) {
    exchange(&to, 1, byte, (rank + step) % size, 0, &from, 1, byte, (rank + size - step) % size, 0,
             world, NULL);
  }
  if (split(world, 0, rank, &part) == 0) release(&part);
}

static int start_is_over(int result) {
  if (result == 0) open_ways_of_openmpi();
  started = 1;
  fire_after(limit_seconds);
  return result;
}

__attribute__((visibility("default"))) int MPI_Init(int* argc, char*** argv) {
  int (*next)(int*, char***) = (int (*)(int*, char***))find("MPI_Init");
  begin_watch();
  return start_is_over(next(argc, argv));
}

__attribute__((visibility("default"))) int MPI_Init_thread(int* argc, char*** argv, int level,
                                                           int* provided) {
  int (*next)(int*, char***, int, int*) =
      (int (*)(int*, char***, int, int*))find("MPI_Init_thread");
  begin_watch();
  return start_is_over(next(argc, argv, level, provided));
}
