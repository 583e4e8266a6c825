/* The forms with 64-bit counts of what sends and receives. A program of an MPI without these finds
 * them in the drop-in. */
#ifndef ROPEWALK_TESTS_DROPIN_COUNT_FORMS_H
#define ROPEWALK_TESTS_DROPIN_COUNT_FORMS_H

#include <mpi.h>

#ifdef OPEN_MPI
#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif
#define SEND(name) \
  int name(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm) __attribute__((weak));
SEND(MPI_Send_c)
SEND(MPI_Ssend_c)
SEND(MPI_Rsend_c)
#undef SEND
#define SEND(name)                                                                 \
  int name(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) \
      __attribute__((weak));
SEND(MPI_Isend_c)
SEND(MPI_Issend_c)
SEND(MPI_Irsend_c)
SEND(MPI_Send_init_c)
SEND(MPI_Ssend_init_c)
SEND(MPI_Rsend_init_c)
#undef SEND
int MPI_Recv_c(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*)
    __attribute__((weak));
int MPI_Irecv_c(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)
    __attribute__((weak));
int MPI_Recv_init_c(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)
    __attribute__((weak));
int MPI_Mrecv_c(void*, MPI_Count, MPI_Datatype, MPI_Message*, MPI_Status*) __attribute__((weak));
int MPI_Imrecv_c(void*, MPI_Count, MPI_Datatype, MPI_Message*, MPI_Request*) __attribute__((weak));
int MPI_Sendrecv_c(const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype,
                   int, int, MPI_Comm, MPI_Status*) __attribute__((weak));
int MPI_Isendrecv_c(const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype,
                    int, int, MPI_Comm, MPI_Request*) __attribute__((weak));
int MPI_Sendrecv_replace_c(void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm,
                           MPI_Status*) __attribute__((weak));
int MPI_Isendrecv_replace_c(void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm,
                            MPI_Request*) __attribute__((weak));
#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif

#endif
