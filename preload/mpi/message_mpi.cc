#include "message_mpi.hpp"

#include <dlfcn.h>

namespace ropewalk::preload::messages {

MessageFunctions real;

namespace {

class Loader {
 public:
  explicit Loader(void* file) noexcept : file_(file) {}
  template <class Function>
  void find(Function*& function, const char* name) noexcept {
    function = reinterpret_cast<Function*>(dlsym(file_, name));
    complete_ = complete_ && function != nullptr;
  }
  bool complete() const noexcept { return complete_; }

 private:
  void* file_;
  bool complete_ = true;
};

bool find_message_functions() noexcept {
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  Loader load(file == nullptr ? RTLD_DEFAULT : file);
  load.find(real.isend, "PMPI_Isend");
  load.find(real.issend, "PMPI_Issend");
  load.find(real.irecv, "PMPI_Irecv");
  load.find(real.send, "PMPI_Send");
  load.find(real.send_init, "PMPI_Send_init");
  load.find(real.sendrecv, "PMPI_Sendrecv");
  load.find(real.improbe, "PMPI_Improbe");
  load.find(real.mrecv, "PMPI_Mrecv");
  load.find(real.imrecv, "PMPI_Imrecv");
  load.find(real.test, "PMPI_Test");
  load.find(real.wait, "PMPI_Wait");
  load.find(real.cancel, "PMPI_Cancel");
  load.find(real.request_free, "PMPI_Request_free");
  load.find(real.request_get_status, "PMPI_Request_get_status");
  load.find(real.get_count, "PMPI_Get_count");
  load.find(real.get_elements_x, "PMPI_Get_elements_x");
  load.find(real.test_cancelled, "PMPI_Test_cancelled");
  load.find(real.status_set_elements_x, "PMPI_Status_set_elements_x");
  load.find(real.status_set_cancelled, "PMPI_Status_set_cancelled");
  load.find(real.comm_call_errhandler, "PMPI_Comm_call_errhandler");
  load.find(real.comm_get_errhandler, "PMPI_Comm_get_errhandler");
  load.find(real.comm_set_errhandler, "PMPI_Comm_set_errhandler");
  load.find(real.errhandler_free, "PMPI_Errhandler_free");
  load.find(real.info_get_valuelen, "PMPI_Info_get_valuelen");
  load.find(real.info_dup, "PMPI_Info_dup");
  load.find(real.info_delete, "PMPI_Info_delete");
  load.find(real.info_free, "PMPI_Info_free");
  return load.complete();
}

}  // namespace

// Other threads may call what was found.
bool load_message_functions() noexcept {
  static const bool complete = find_message_functions();
  return complete;
}

void set_error(void* status, int code) noexcept {
  std::memcpy(static_cast<std::byte*>(status) + abi().status_error, &code, sizeof code);
}

int error_of(const void* status) noexcept {
  int code = 0;
  std::memcpy(&code, static_cast<const std::byte*>(status) + abi().status_error, sizeof code);
  return code;
}

void copy_status(const void* from, void* status) noexcept {
  const int error = error_of(status);
  std::memcpy(status, from, abi().status_bytes);
  set_error(status, error);
}

int raise_code(Word comm, int code) noexcept {
  real.comm_call_errhandler(comm, code);
  return code;
}

// The numbers are from each MPI's mpi.h. An error class is a valid error code, too.
int error_in_status() noexcept {
  switch (abi().family) {
    case mpi::Family::mpich:
      return 17;
    case mpi::Family::openmpi:
      return 18;
    default:
      return 19;
  }
}

int error_truncate() noexcept { return abi().family == mpi::Family::mpich ? 14 : 15; }

}  // namespace ropewalk::preload::messages
