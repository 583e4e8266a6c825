#include "mpi/attributes.hpp"

#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

int copy_nothing(Word, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return 0;
}

int on_delete(Word, int, void* value, void* extra) {
  reinterpret_cast<OnDelete>(extra)(value);
  return 0;
}

}  // namespace

Keyval create_keyval(OnDelete function) {
  Keyval made{library().abi.keyval_invalid};
  check(library().call.comm_create_keyval(&copy_nothing, &on_delete, &made.value,
                                          reinterpret_cast<void*>(function)),
        "MPI_Comm_create_keyval");
  return made;
}

void free_keyval(Keyval& keyval) {
  check(library().call.comm_free_keyval(&keyval.value), "MPI_Comm_free_keyval");
}

void set_attribute(Comm comm, Keyval keyval, void* value) {
  check(library().call.comm_set_attr(comm.value, keyval.value, value), "MPI_Comm_set_attr");
}

void* attribute(Comm comm, Keyval keyval) {
  void* value = nullptr;
  int flag = 0;
  check(library().call.comm_get_attr(comm.value, keyval.value, &value, &flag), "MPI_Comm_get_attr");
  return flag != 0 ? value : nullptr;
}

void delete_attribute(Comm comm, Keyval keyval) {
  check(library().call.comm_delete_attr(comm.value, keyval.value), "MPI_Comm_delete_attr");
}

int tag_upper_bound(Comm comm) {
  const void* bound = attribute(comm, Keyval{library().abi.tag_upper_bound});
  return bound == nullptr ? least_tag_bound : *static_cast<const int*>(bound);
}

}  // namespace ropewalk::mpi
