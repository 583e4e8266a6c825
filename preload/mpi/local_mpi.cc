#include "local_mpi.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>

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
  int (*grequest_start)(int (*)(void*, void*), int (*)(void*), int (*)(void*, int), void*,
                        Word*) = nullptr;
  int (*grequest_complete)(Word) = nullptr;
  int (*status_set_elements)(void*, Word, int) = nullptr;
  int (*status_set_cancelled)(void*, int) = nullptr;
  int (*comm_remote_size)(Word, int*) = nullptr;
  int (*topo_test)(Word, int*) = nullptr;
  int (*cartdim_get)(Word, int*) = nullptr;
  int (*graph_neighbors_count)(Word, int, int*) = nullptr;
  int (*dist_graph_neighbors_count)(Word, int*, int*, int*) = nullptr;
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
  find(file, call.grequest_start, "PMPI_Grequest_start");
  find(file, call.grequest_complete, "PMPI_Grequest_complete");
  find(file, call.status_set_elements, "PMPI_Status_set_elements");
  find(file, call.status_set_cancelled, "PMPI_Status_set_cancelled");
  find(file, call.comm_remote_size, "PMPI_Comm_remote_size");
  find(file, call.topo_test, "PMPI_Topo_test");
  find(file, call.cartdim_get, "PMPI_Cartdim_get");
  find(file, call.graph_neighbors_count, "PMPI_Graph_neighbors_count");
  find(file, call.dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
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

// The groups are compared in parts: a call that takes no memory cannot fail on one rank alone.
bool in_this_world(mpi::Comm comm) {
  if (comm == mpi::comm_world()) return true;
  const Group world(mpi::comm_world());
  const Group group(comm);
  const int size = mpi::size(comm);
  constexpr int part = 128;
  std::array<int, part> ranks{};
  std::array<int, part> found{};
  for (int begin = 0; begin < size; begin += part) {
    const int count = std::min(part, size - begin);
    std::iota(ranks.begin(), ranks.end(), begin);
    mpi::check(local().group_translate_ranks(group.word(), count, ranks.data(), world.word(),
                                             found.data()),
               "MPI_Group_translate_ranks");
    for (int i = 0; i < count; ++i) {
      if (found[static_cast<std::size_t>(i)] == mpi::undefined()) return false;
    }
  }
  return true;
}

std::vector<int> ranks_in_world(mpi::Comm comm) {
  const Group world(mpi::comm_world());
  const Group group(comm);
  std::vector<int> ranks(static_cast<std::size_t>(mpi::size(comm)));
  std::vector<int> found(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi::check(local().group_translate_ranks(group.word(), static_cast<int>(ranks.size()),
                                           ranks.data(), world.word(), found.data()),
             "MPI_Group_translate_ranks");
  return found;
}

GroupSizes group_sizes(mpi::Comm comm) noexcept {
  try {
    const auto own = static_cast<std::size_t>(mpi::size(comm));
    if (!mpi::is_inter(comm)) return {own, own};
    int other = 0;
    local().comm_remote_size(comm.value, &other);
    return {own, static_cast<std::size_t>(other)};
  } catch (...) {  // no communicator: MPI will say so
    return {};
  }
}

std::size_t blocks_at_root(mpi::Comm comm, int root) noexcept {
  try {
    const bool at_root =
        mpi::is_inter(comm) ? root == mpi::library().abi.root : root == mpi::rank(comm);
    return at_root ? group_sizes(comm).other : 0;
  } catch (...) {
    return 0;
  }
}

Degrees degrees(mpi::Comm comm) noexcept {
  int topology = 0;
  int in = 0;
  int out = 0;
  int weighted = 0;
  const mpi::Abi& abi = mpi::library().abi;
  if (local().topo_test(comm.value, &topology) != 0) return {};
  if (topology == abi.cartesian) {
    local().cartdim_get(comm.value, &in);
    in *= 2;
    out = in;
  } else if (topology == abi.graph) {
    local().graph_neighbors_count(comm.value, mpi::rank(comm), &in);
    out = in;
  } else if (topology == abi.dist_graph) {
    local().dist_graph_neighbors_count(comm.value, &in, &out, &weighted);
  }
  return {static_cast<std::size_t>(in), static_cast<std::size_t>(out)};
}

int error_code(const char* text) noexcept {
  constexpr int other = 15;  // MPI_ERR_OTHER in MPICH; only where MPI gives us no code of our own
  try {
    static std::mutex mutex;
    const int code = own_code();
    const std::lock_guard lock(mutex);
    char shortened[256];  // the least MPI_MAX_ERROR_STRING
    std::snprintf(shortened, sizeof shortened, "ropewalk: %s", text);
    local().add_error_string(code, shortened);
    return code;
  } catch (...) {
    return other;
  }
}

int raise(mpi::Comm comm, const char* text) noexcept {
  const int code = error_code(text);
  try {
    local().comm_call_errhandler(comm.value, code);
  } catch (...) {  // MPI has no such function: the code alone
  }
  return code;
}

mpi::Datatype one_of(mpi::Datatype type) {
  const mpi::Functions& call = mpi::library().call;
  mpi::Datatype made;
  mpi::check(call.type_contiguous(1, type.value, &made.value), "MPI_Type_contiguous");
  if (const int code = call.type_commit(&made.value); code != 0) {
    let_go(made);
    mpi::check(code, "MPI_Type_commit");
  }
  return made;
}

void let_go(mpi::Datatype type) noexcept { mpi::library().call.type_free(&type.value); }

namespace {

void write_handle(void* to, mpi::Request request) noexcept {
  std::memcpy(to, &request.value, mpi::library().abi.int_handles ? 4 : sizeof request.value);
}

}  // namespace

int OwnRequest::query(void* self, void* status) {
  local().status_set_elements(status, mpi::byte_type().value, 0);
  local().status_set_cancelled(status, 0);
  return static_cast<OwnRequest*>(self)->code_;
}

int OwnRequest::free(void* self) {
  delete static_cast<OwnRequest*>(self);
  return 0;
}

void OwnRequest::give_to(void* request) {
  mpi::check(local().grequest_start(
                 &query, &free, [](void*, int) { return 0; }, this, &request_.value),
             "MPI_Grequest_start");
  write_handle(request, request_);
}

void OwnRequest::give_none(void* request) noexcept { write_handle(request, mpi::request_null()); }

void OwnRequest::complete(int code) noexcept {
  code_ = code;
  local().grequest_complete(request_.value);
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
