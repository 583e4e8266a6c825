/* The smallest C user. */
#include <stdio.h>

#include "ropewalk/ropewalk.h"

int main(void) {
  void* address = NULL;
  if (rw_alloc(1000, 0, &address) != RW_SUCCESS) {
    fprintf(stderr, "%s\n", rw_last_error());
    return 1;
  }
  if (rw_free(address) != RW_SUCCESS) return 2;
  puts(rw_version());
  return 0;
}
