/* ropewalk-hugepages: lets ordinary users size the pool of huge pages, within an administrator's
 * limits.
 *
 * Made to be read before it is installed with a privilege (a file capability, sudoers or a prolog):
 * one file, no shell, no child, no environment, no locale, fixed absolute paths that are opened
 * without following links, and numbers that are parsed strictly and checked against the
 * configuration. After the one file it writes is open, all privileges are given up.
 *
 *   ropewalk-hugepages status            pages in the pool, free, and the limits, for each size
 *   ropewalk-hugepages set PAGES 2M|1G   makes the pool hold PAGES; prints what it holds then
 *
 * Status: 0; 1 an error; 2 the command line; 3 the kernel gave fewer pages; 77 no privilege.
 * The configuration is described in docs/how-to/huge-pages.md; without it everything is refused.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Only tests set it, when they compile the file for a tree of their own. */
#ifndef ROPEWALK_TEST_ROOT
#define ROPEWALK_TEST_ROOT ""
#endif
#define CONFIGURATION ROPEWALK_TEST_ROOT "/etc/ropewalk/hugepages.conf"
#define POOLS ROPEWALK_TEST_ROOT "/sys/kernel/mm/hugepages/"

enum { success = 0, failed = 1, wrong_command_line = 2, fewer_pages = 3, no_privilege = 77 };

struct pool {
  const char* name;  /* as on the command line and in the configuration */
  const char* total; /* the kernel's files */
  const char* free;
  const char* surplus;
  long minimum; /* from the configuration; -1: none given, all refused */
  long maximum;
};

#define FILES_OF(size)                                                                    \
  POOLS "hugepages-" size "kB/nr_hugepages", POOLS "hugepages-" size "kB/free_hugepages", \
      POOLS "hugepages-" size "kB/surplus_hugepages"

static struct pool pools[] = {
    {"2M", FILES_OF("2048"), 0, -1},
    {"1G", FILES_OF("1048576"), 0, -1},
};
enum { pool_count = sizeof pools / sizeof *pools };

/* More pages than any machine has, and far from overflow. */
static const long most_pages = 100000000;

static int complain(int status, const char* what, const char* why) {
  fprintf(stderr, "ropewalk-hugepages: %s: %s\n", what, why);
  return status;
}

/* Digits only, no sign, no space, at most most_pages; -1 otherwise. */
static long number(const char* text) {
  if (*text == '\0') return -1;
  long value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > most_pages) return -1;
  }
  return value;
}

static struct pool* pool_named(const char* name) {
  for (int i = 0; i < pool_count; ++i) {
    if (strcmp(pools[i].name, name) == 0) return &pools[i];
  }
  return NULL;
}

/* The number in one of the kernel's files, -1 if there is none. */
static long read_number(const char* path) {
  char text[32];
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return -1;
  text[length] = '\0';
  text[strcspn(text, "\n")] = '\0';
  return number(text);
}

/* One line, `maximum_2M = 512`, `minimum_1G = 0`, a comment or nothing. False if it is none. */
static int configure(char* line) {
  line[strcspn(line, "#\n")] = '\0';
  char name[32], value[32], rest[2];
  const int words = sscanf(line, " %31[a-zA-Z0-9_] = %31[0-9] %1s", name, value, rest);
  if (words != 2) {
    while (isspace((unsigned char)*line)) ++line;
    return *line == '\0';
  }
  const int is_maximum = strncmp(name, "maximum_", 8) == 0;
  if (!is_maximum && strncmp(name, "minimum_", 8) != 0) return 0;
  struct pool* pool = pool_named(name + 8);
  const long pages = number(value);
  if (pool == NULL || pages < 0) return 0;
  *(is_maximum ? &pool->maximum : &pool->minimum) = pages;
  return 1;
}

/* Whoever may write the configuration decides, so it must be root's alone. */
static int trusted(int file) {
  struct stat found;
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) return 0;
  const uid_t owner = sizeof ROPEWALK_TEST_ROOT > 1 ? geteuid() : 0;
  return found.st_uid == owner && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static int read_configuration(void) {
  const int descriptor = open(CONFIGURATION, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    return complain(failed, CONFIGURATION, "cannot be opened; an administrator writes it first");
  }
  if (!trusted(descriptor)) {
    close(descriptor);
    return complain(failed, CONFIGURATION, "must be a file that root owns and nobody else writes");
  }
  FILE* file = fdopen(descriptor, "r");
  if (file == NULL) {
    close(descriptor);
    return complain(failed, CONFIGURATION, strerror(errno));
  }
  char line[256];
  int good = 1;
  while (good && fgets(line, sizeof line, file) != NULL) good = configure(line);
  fclose(file);
  return good ? success : complain(failed, CONFIGURATION, "a line is not `maximum_2M = PAGES`");
}

/* Gives up every capability, and root, for good. */
static int give_up_privileges(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
  memset(none, 0, sizeof none);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_capset, &header, none) == 0;
}

static int status(void) {
  for (int i = 0; i < pool_count; ++i) {
    const long total = read_number(pools[i].total);
    if (total < 0) continue; /* a size this kernel does not have */
    printf("%s %ld pages, %ld free, ", pools[i].name, total, read_number(pools[i].free));
    if (pools[i].maximum < 0) {
      printf("no limit configured\n");
    } else {
      printf("%ld to %ld allowed\n", pools[i].minimum, pools[i].maximum);
    }
  }
  return success;
}

/* The kernel counts pages beyond the pool, which go with their users, among its pages. */
static long lasting_pages(const struct pool* pool) {
  const long total = read_number(pool->total);
  const long surplus = read_number(pool->surplus);
  return surplus > 0 && surplus <= total ? total - surplus : total;
}

static int write_pages(int file, long pages) {
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld", pages);
  return write(file, text, (size_t)length) == length;
}

static int set(const struct pool* pool, long pages) {
  /* The pool's own file is opened while the privilege lasts; nothing is decided after. */
  const int file = open(pool->total, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  const int reason = errno;
  if (!give_up_privileges()) return complain(failed, "giving up privileges", strerror(errno));
  if (file < 0) {
    return complain(reason == EACCES || reason == EPERM ? no_privilege : failed, pool->total,
                    strerror(reason));
  }
  if (!write_pages(file, pages)) return complain(failed, pool->total, strerror(errno));
  close(file);
  const long now = lasting_pages(pool);
  if (now < 0) return complain(failed, pool->total, "cannot be read back");
  printf("%ld\n", now);
  return now < pages ? fewer_pages : success;
}

static int set_checked(const char* count, const char* size) {
  const struct pool* pool = pool_named(size);
  if (pool == NULL) return complain(wrong_command_line, size, "expected 2M or 1G");
  const long pages = strcmp(count, "minimum") == 0 ? pool->minimum : number(count);
  if (pages < 0) {
    return complain(wrong_command_line, count, "expected a number of pages, or `minimum`");
  }
  if (pool->maximum < 0) return complain(failed, size, "no maximum in " CONFIGURATION);
  if (pages > pool->maximum) return complain(failed, count, "above the maximum in " CONFIGURATION);
  if (pages < pool->minimum) return complain(failed, count, "below the minimum in " CONFIGURATION);
  return set(pool, pages);
}

int main(int argc, char** argv) {
  const int is_status = argc == 2 && strcmp(argv[1], "status") == 0;
  const int is_set = argc == 4 && strcmp(argv[1], "set") == 0;
  if (!is_status && !is_set) {
    fputs("usage: ropewalk-hugepages status | set PAGES|minimum 2M|1G\n", stderr);
    return wrong_command_line;
  }
  const int configured = read_configuration();
  if (is_status) return status();
  if (configured != success) return configured;
  return set_checked(argv[2], argv[3]);
}
