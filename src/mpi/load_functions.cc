#include "mpi/load_functions.hpp"

namespace ropewalk::mpi {
namespace {

class Loader {
 public:
  explicit Loader(const SymbolLookup& symbol) : symbol_(symbol) {}

  template <class Function>
  void optional(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol_(name));
  }
  template <class Function>
  void required(Function*& function, const char* name) {
    optional(function, name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const SymbolLookup& symbol_;
  std::string missing_;
};

void load_environment(Functions& call, Loader& load) {
  load.required(call.init_thread, "PMPI_Init_thread");
  load.required(call.initialized, "PMPI_Initialized");
  load.required(call.finalized, "PMPI_Finalized");
  load.required(call.finalize, "PMPI_Finalize");
  load.required(call.query_thread, "PMPI_Query_thread");
  load.required(call.abort, "PMPI_Abort");
  load.required(call.error_string, "PMPI_Error_string");
  load.required(call.get_library_version, "PMPI_Get_library_version");
  load.required(call.wtime, "PMPI_Wtime");
}

void load_communicators(Functions& call, Loader& load) {
  load.required(call.comm_rank, "PMPI_Comm_rank");
  load.required(call.comm_size, "PMPI_Comm_size");
  load.required(call.comm_dup, "PMPI_Comm_dup");
  load.required(call.comm_split, "PMPI_Comm_split");
  load.required(call.comm_split_type, "PMPI_Comm_split_type");
  load.required(call.comm_free, "PMPI_Comm_free");
  load.required(call.comm_test_inter, "PMPI_Comm_test_inter");
  load.required(call.comm_set_errhandler, "PMPI_Comm_set_errhandler");
  load.optional(call.comm_get_errhandler, "PMPI_Comm_get_errhandler");
  load.optional(call.errhandler_free, "PMPI_Errhandler_free");
  load.required(call.comm_create_keyval, "PMPI_Comm_create_keyval");
  load.required(call.comm_free_keyval, "PMPI_Comm_free_keyval");
  load.required(call.comm_set_attr, "PMPI_Comm_set_attr");
  load.required(call.comm_get_attr, "PMPI_Comm_get_attr");
  load.required(call.comm_delete_attr, "PMPI_Comm_delete_attr");
  load.optional(call.comm_set_info, "PMPI_Comm_set_info");
  load.optional(call.info_create, "PMPI_Info_create");
  load.optional(call.info_set, "PMPI_Info_set");
  load.optional(call.info_free, "PMPI_Info_free");
}

void load_point_to_point(Functions& call, Loader& load) {
  load.required(call.send, "PMPI_Send");
  load.required(call.recv, "PMPI_Recv");
  load.required(call.isend, "PMPI_Isend");
  load.required(call.irecv, "PMPI_Irecv");
  load.required(call.test, "PMPI_Test");
  load.required(call.wait, "PMPI_Wait");
  load.required(call.testall, "PMPI_Testall");
  load.required(call.waitall, "PMPI_Waitall");
  load.required(call.cancel, "PMPI_Cancel");
  load.required(call.iprobe, "PMPI_Iprobe");
  load.required(call.grequest_start, "PMPI_Grequest_start");
  load.required(call.grequest_complete, "PMPI_Grequest_complete");
  load.required(call.get_elements_x, "PMPI_Get_elements_x");
}

void load_datatypes(Functions& call, Loader& load) {
  load.required(call.type_size_x, "PMPI_Type_size_x");
  load.required(call.type_get_extent, "PMPI_Type_get_extent");
  load.required(call.type_get_true_extent, "PMPI_Type_get_true_extent");
  load.required(call.type_contiguous, "PMPI_Type_contiguous");
  load.required(call.type_create_struct, "PMPI_Type_create_struct");
  load.required(call.type_create_resized, "PMPI_Type_create_resized");
  load.required(call.type_commit, "PMPI_Type_commit");
  load.required(call.type_free, "PMPI_Type_free");
  load.optional(call.type_get_envelope, "PMPI_Type_get_envelope");
  load.optional(call.type_get_contents, "PMPI_Type_get_contents");
  load.required(call.pack, "PMPI_Pack");
  load.required(call.unpack, "PMPI_Unpack");
  load.required(call.op_commutative, "PMPI_Op_commutative");
  load.required(call.reduce_local, "PMPI_Reduce_local");
}

void load_collectives(Functions& call, Loader& load) {
  load.required(call.barrier, "PMPI_Barrier");
  load.required(call.bcast, "PMPI_Bcast");
  load.required(call.allgather, "PMPI_Allgather");
  load.required(call.allgatherv, "PMPI_Allgatherv");
  load.required(call.gather, "PMPI_Gather");
  load.required(call.gatherv, "PMPI_Gatherv");
  load.required(call.scatter, "PMPI_Scatter");
  load.required(call.scatterv, "PMPI_Scatterv");
  load.required(call.alltoall, "PMPI_Alltoall");
  load.required(call.alltoallv, "PMPI_Alltoallv");
  load.required(call.reduce, "PMPI_Reduce");
  load.required(call.allreduce, "PMPI_Allreduce");
  load.required(call.reduce_scatter, "PMPI_Reduce_scatter");
  load.required(call.reduce_scatter_block, "PMPI_Reduce_scatter_block");
  load.required(call.scan, "PMPI_Scan");
  load.required(call.exscan, "PMPI_Exscan");
}

void load_nonblocking_collectives(Functions& call, Loader& load) {
  load.required(call.ibarrier, "PMPI_Ibarrier");
  load.required(call.ibcast, "PMPI_Ibcast");
  load.required(call.iallgather, "PMPI_Iallgather");
  load.required(call.iallgatherv, "PMPI_Iallgatherv");
  load.required(call.igather, "PMPI_Igather");
  load.required(call.igatherv, "PMPI_Igatherv");
  load.required(call.iscatter, "PMPI_Iscatter");
  load.required(call.iscatterv, "PMPI_Iscatterv");
  load.required(call.ialltoall, "PMPI_Ialltoall");
  load.required(call.ialltoallv, "PMPI_Ialltoallv");
  load.required(call.ireduce, "PMPI_Ireduce");
  load.required(call.iallreduce, "PMPI_Iallreduce");
  load.required(call.ireduce_scatter, "PMPI_Ireduce_scatter");
  load.required(call.ireduce_scatter_block, "PMPI_Ireduce_scatter_block");
  load.required(call.iscan, "PMPI_Iscan");
  load.required(call.iexscan, "PMPI_Iexscan");
}

// These functions are absent before MPI 4.
void load_large_counts(Functions& call, Loader& load) {
  load.optional(call.send_c, "PMPI_Send_c");
  load.optional(call.recv_c, "PMPI_Recv_c");
  load.optional(call.isend_c, "PMPI_Isend_c");
  load.optional(call.irecv_c, "PMPI_Irecv_c");
  load.optional(call.type_get_envelope_c, "PMPI_Type_get_envelope_c");
  load.optional(call.type_get_contents_c, "PMPI_Type_get_contents_c");
  load.optional(call.pack_c, "PMPI_Pack_c");
  load.optional(call.unpack_c, "PMPI_Unpack_c");
  load.optional(call.reduce_local_c, "PMPI_Reduce_local_c");
  load.optional(call.bcast_c, "PMPI_Bcast_c");
  load.optional(call.allgather_c, "PMPI_Allgather_c");
  load.optional(call.allgatherv_c, "PMPI_Allgatherv_c");
  load.optional(call.gather_c, "PMPI_Gather_c");
  load.optional(call.gatherv_c, "PMPI_Gatherv_c");
  load.optional(call.scatter_c, "PMPI_Scatter_c");
  load.optional(call.scatterv_c, "PMPI_Scatterv_c");
  load.optional(call.alltoall_c, "PMPI_Alltoall_c");
  load.optional(call.alltoallv_c, "PMPI_Alltoallv_c");
  load.optional(call.reduce_c, "PMPI_Reduce_c");
  load.optional(call.allreduce_c, "PMPI_Allreduce_c");
  load.optional(call.reduce_scatter_c, "PMPI_Reduce_scatter_c");
  load.optional(call.reduce_scatter_block_c, "PMPI_Reduce_scatter_block_c");
  load.optional(call.scan_c, "PMPI_Scan_c");
  load.optional(call.exscan_c, "PMPI_Exscan_c");
  load.optional(call.ibcast_c, "PMPI_Ibcast_c");
  load.optional(call.iallgather_c, "PMPI_Iallgather_c");
  load.optional(call.iallgatherv_c, "PMPI_Iallgatherv_c");
  load.optional(call.igather_c, "PMPI_Igather_c");
  load.optional(call.igatherv_c, "PMPI_Igatherv_c");
  load.optional(call.iscatter_c, "PMPI_Iscatter_c");
  load.optional(call.iscatterv_c, "PMPI_Iscatterv_c");
  load.optional(call.ialltoall_c, "PMPI_Ialltoall_c");
  load.optional(call.ialltoallv_c, "PMPI_Ialltoallv_c");
  load.optional(call.ireduce_c, "PMPI_Ireduce_c");
  load.optional(call.iallreduce_c, "PMPI_Iallreduce_c");
  load.optional(call.ireduce_scatter_c, "PMPI_Ireduce_scatter_c");
  load.optional(call.ireduce_scatter_block_c, "PMPI_Ireduce_scatter_block_c");
  load.optional(call.iscan_c, "PMPI_Iscan_c");
  load.optional(call.iexscan_c, "PMPI_Iexscan_c");
}

}  // namespace

std::string load_functions(Functions& call, const SymbolLookup& symbol) {
  Loader load(symbol);
  load_environment(call, load);
  load_communicators(call, load);
  load_point_to_point(call, load);
  load_datatypes(call, load);
  load_collectives(call, load);
  load_nonblocking_collectives(call, load);
  load_large_counts(call, load);
  load.optional(call.file_get_errhandler, "PMPI_File_get_errhandler");
  return load.missing();
}

}  // namespace ropewalk::mpi
