// With PROFILED, the program calls all that receives and completes by its PMPI name, as a binding
// to Fortran or a tool does.
#pragma once

#ifdef PROFILED
#define MPI_Recv PMPI_Recv
#define MPI_Irecv PMPI_Irecv
#define MPI_Sendrecv PMPI_Sendrecv
#define MPI_Sendrecv_replace PMPI_Sendrecv_replace
#define MPI_Probe PMPI_Probe
#define MPI_Iprobe PMPI_Iprobe
#define MPI_Mprobe PMPI_Mprobe
#define MPI_Improbe PMPI_Improbe
#define MPI_Mrecv PMPI_Mrecv
#define MPI_Imrecv PMPI_Imrecv
#define MPI_Wait PMPI_Wait
#define MPI_Waitall PMPI_Waitall
#define MPI_Waitany PMPI_Waitany
#define MPI_Waitsome PMPI_Waitsome
#define MPI_Test PMPI_Test
#define MPI_Testall PMPI_Testall
#define MPI_Testany PMPI_Testany
#define MPI_Testsome PMPI_Testsome
#define MPI_Request_get_status PMPI_Request_get_status
#define MPI_Request_free PMPI_Request_free
#define MPI_Cancel PMPI_Cancel
#define MPI_Recv_init PMPI_Recv_init
#define MPI_Isendrecv PMPI_Isendrecv
#define MPI_Isendrecv_replace PMPI_Isendrecv_replace
#define MPI_Start PMPI_Start
#define MPI_Startall PMPI_Startall
#endif
