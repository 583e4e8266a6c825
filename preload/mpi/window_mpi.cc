#include "window_mpi.hpp"

#include <dlfcn.h>

#include <numeric>
#include <string>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::preload::onesided {
namespace {

struct WindowFunctions {
  int (*shared_query)(Word, int, Count*, int*, void*) = nullptr;
  int (*call_errhandler)(Word, int) = nullptr;
  int (*get_group)(Word, Word*) = nullptr;
  int (*group_size)(Word, int*) = nullptr;
  int (*group_translate_ranks)(Word, int, const int*, Word, int*) = nullptr;
  int (*group_free)(Word*) = nullptr;
  int (*info_dup)(Word, Word*) = nullptr;
};

template <class Function>
void find(void* file, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(file, name));
  if (function == nullptr) throw Error(ErrorCode::mpi, std::string("mpi: no ") + name);
}

WindowFunctions load() {
  WindowFunctions call;
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (file == nullptr) file = RTLD_DEFAULT;
  find(file, call.shared_query, "PMPI_Win_shared_query");
  find(file, call.call_errhandler, "PMPI_Win_call_errhandler");
  find(file, call.get_group, "PMPI_Win_get_group");
  find(file, call.group_size, "PMPI_Group_size");
  find(file, call.group_translate_ranks, "PMPI_Group_translate_ranks");
  find(file, call.group_free, "PMPI_Group_free");
  find(file, call.info_dup, "PMPI_Info_dup");
  return call;
}

const WindowFunctions& local() {
  static const WindowFunctions loaded = load();
  return loaded;
}

}  // namespace

const mpi::WindowAbi& window_abi() noexcept {
  static const mpi::WindowAbi abi = mpi::window_abi_of(mpi::family());
  return abi;
}

int raise_on_window(Word window, const char* text) noexcept {
  const int code = error_code(text);
  try {
    local().call_errhandler(window, code);
  } catch (...) {  // MPI has no such function: the code alone
  }
  return code;
}

void free_window(Word window) noexcept { next.Win_free(&window); }

SharedPart shared_part(Word window, int rank) {
  SharedPart part;
  mpi::check(local().shared_query(window, rank, &part.bytes, &part.unit, &part.base),
             "MPI_Win_shared_query");
  return part;
}

std::vector<int> ranks_in_window(Word group, Word window) {
  int size = 0;
  mpi::check(local().group_size(group, &size), "MPI_Group_size");
  std::vector<int> own(static_cast<std::size_t>(size));
  std::vector<int> found(own.size());
  std::iota(own.begin(), own.end(), 0);
  Word all = 0;
  mpi::check(local().get_group(window, &all), "MPI_Win_get_group");
  const int code = local().group_translate_ranks(group, size, own.data(), all, found.data());
  local().group_free(&all);
  mpi::check(code, "MPI_Group_translate_ranks");
  return found;
}

ScatteredInfo::ScatteredInfo(Word given) {
  const mpi::Library& library = mpi::library();
  if (given == library.abi.info_null) {
    mpi::check(library.call.info_create(&word_), "MPI_Info_create");
  } else {
    mpi::check(local().info_dup(given, &word_), "MPI_Info_dup");
  }
  library.call.info_set(word_, "alloc_shared_noncontig", "true");
}

ScatteredInfo::~ScatteredInfo() { mpi::library().call.info_free(&word_); }

}  // namespace ropewalk::preload::onesided
