#include "local_mpi.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <numeric>
#include <vector>

#include "mpi/functions.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::preload {
namespace {

using mpi::Word;

struct LocalFunctions {
  int (*comm_group)(Word, Word*) = nullptr;
  int (*group_translate_ranks)(Word, int, const int*, Word, int*) = nullptr;
  int (*group_free)(Word*) = nullptr;
  int (*add_error_code)(int, int*) = nullptr;
  int (*add_error_string)(int, const char*) = nullptr;
  int (*comm_call_errhandler)(Word, int) = nullptr;
  int (*type_create_keyval)(mpi::CopyAttribute*, mpi::DeleteAttribute*, int*, void*) = nullptr;
  int (*type_set_attr)(Word, int, void*) = nullptr;
  int (*add_error_class)(int*) = nullptr;
};

template <class Function>
void find(void* file, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(file, name));
  if (function == nullptr) throw Error(ErrorCode::mpi, std::string("mpi: no ") + name);
}

LocalFunctions load() {
  LocalFunctions call;
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (file == nullptr) file = RTLD_DEFAULT;
  find(file, call.comm_group, "PMPI_Comm_group");
  find(file, call.group_translate_ranks, "PMPI_Group_translate_ranks");
  find(file, call.group_free, "PMPI_Group_free");
  find(file, call.add_error_class, "PMPI_Add_error_class");
  find(file, call.add_error_code, "PMPI_Add_error_code");
  find(file, call.add_error_string, "PMPI_Add_error_string");
  find(file, call.comm_call_errhandler, "PMPI_Comm_call_errhandler");
  find(file, call.type_create_keyval, "PMPI_Type_create_keyval");
  find(file, call.type_set_attr, "PMPI_Type_set_attr");
  return call;
}

const LocalFunctions& local() {
  static const LocalFunctions loaded = load();
  return loaded;
}

class Group {
 public:
  explicit Group(mpi::Comm comm) {
    mpi::check(local().comm_group(comm.value, &word_), "MPI_Comm_group");
  }
  ~Group() { local().group_free(&word_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  Word word() const noexcept { return word_; }

 private:
  Word word_ = 0;
};

// One code for all our errors: MPI has no way to give codes back.
int own_code() {
  static const int made = [] {
    int error_class = 0;
    int code = 0;
    mpi::check(local().add_error_class(&error_class), "MPI_Add_error_class");
    mpi::check(local().add_error_code(error_class, &code), "MPI_Add_error_code");
    return code;
  }();
  return made;
}

int copy_nothing(Word, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return 0;
}

int on_delete(Word, int, void* value, void* extra) {
  reinterpret_cast<void (*)(void*) noexcept>(extra)(value);
  return 0;
}

}  // namespace

bool in_this_world(mpi::Comm comm) {
  if (comm == mpi::comm_world()) return true;
  const Group world(mpi::comm_world());
  const Group group(comm);
  const auto size = static_cast<std::size_t>(mpi::size(comm));
  std::vector<int> ranks(size);
  std::vector<int> found(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi::check(local().group_translate_ranks(group.word(), static_cast<int>(size), ranks.data(),
                                           world.word(), found.data()),
             "MPI_Group_translate_ranks");
  for (const int rank : found) {
    if (rank == mpi::undefined()) return false;
  }
  return true;
}

int raise(mpi::Comm comm, const char* text) noexcept {
  constexpr int other = 15;  // MPI_ERR_OTHER in MPICH; only where MPI gives us no code of our own
  try {
    static std::mutex mutex;
    const int code = own_code();
    {
      const std::lock_guard lock(mutex);
      char shortened[256];  // the least MPI_MAX_ERROR_STRING
      std::snprintf(shortened, sizeof shortened, "ropewalk: %s", text);
      local().add_error_string(code, shortened);
    }
    local().comm_call_errhandler(comm.value, code);
    return code;
  } catch (...) {
    return other;
  }
}

void set_type_attribute(mpi::Datatype type, void* value, void (*function)(void*) noexcept) {
  static const int keyval = [&] {
    int made = 0;
    mpi::check(local().type_create_keyval(&copy_nothing, &on_delete, &made,
                                          reinterpret_cast<void*>(function)),
               "MPI_Type_create_keyval");
    return made;
  }();
  mpi::check(local().type_set_attr(type.value, keyval, value), "MPI_Type_set_attr");
}

}  // namespace ropewalk::preload
