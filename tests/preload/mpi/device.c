/* A device's runtime by name, and an MPI's word that it takes its memory: as much of both as the
 * drop-in looks at. DEVICE_AWARE=1 in the environment: it does. */
#include <stdlib.h>

int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void) {
  const char* aware = getenv("DEVICE_AWARE");
  return aware != NULL && aware[0] == '1';
}
