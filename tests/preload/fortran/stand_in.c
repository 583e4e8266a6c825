/* A library whose functions have the names of MPI's in Fortran, and nothing else of MPI. */
double mpi_bcast(double a, int b, double c, long d, int e, int f, int g, int h, int on_stack);
double mpi_bcast(double a, int b, double c, long d, int e, int f, int g, int h, int on_stack) {
  return a * b + c * (double)d + e + 2 * f + 3 * g + 5 * h + 7 * on_stack;
}

void mpi_barrier_(const int* comm, int* error);
void mpi_barrier_(const int* comm, int* error) { *error = *comm + 1; }

/* Through the table of symbols, as a call from another file of the library. */
double call_bcast(void);
double call_bcast(void) { return mpi_bcast(1.5, 2, 0.25, 8, 3, 4, 5, 6, 7); }
int call_barrier(void);
int call_barrier(void) {
  int comm = 41;
  int error = 0;
  mpi_barrier_(&comm, &error);
  return error;
}
