// Intel MPI's thread-split model; see thread_split.hpp.
#include "mpi/thread_split.hpp"

#include <cstdlib>
#include <string>

#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string text = value != nullptr ? value : "";
  return text == "1" || text == "on" || text == "yes" || text == "enable" || text == "true";
}

bool has_info(const Functions& call) {
  return call.info_create != nullptr && call.info_set != nullptr && call.info_free != nullptr &&
         call.comm_set_info != nullptr;
}

// 2021.19 has no default that could be asked for; the guide's is thread_id.
const char* key() {
  const char* value = std::getenv("I_MPI_THREAD_ID_KEY");
  return value != nullptr && *value != '\0' ? value : "thread_id";
}

}  // namespace

bool may_split_threads() {
  return has_info(library().call) && library_version().rfind("Intel(R) MPI", 0) == 0;
}

int split_threads() {
  if (!may_split_threads() || !is_on("I_MPI_THREAD_SPLIT")) return 0;
  const char* most = std::getenv("I_MPI_THREAD_MAX");
  const int threads = most != nullptr ? std::atoi(most) : 1;
  return threads > 1 ? threads : 0;
}

void set_split_number(Comm comm, int number) {
  const Functions& call = library().call;
  Word info = library().abi.info_null;
  check(call.info_create(&info), "MPI_Info_create");
  int code = call.info_set(info, key(), std::to_string(number).c_str());
  const char* function = "MPI_Info_set";
  if (code == 0) {
    code = call.comm_set_info(comm.value, info);
    function = "MPI_Comm_set_info";
  }
  call.info_free(&info);
  check(code, function);
}

}  // namespace ropewalk::mpi
