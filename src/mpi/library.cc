#include "mpi/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "mpi/load_functions.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"

namespace ropewalk::mpi {
namespace {

// A library is put here with release, and library() acquires it, so that readers see it filled.
std::atomic<const Library*> current{nullptr};

constexpr const char* entry = "PMPI_Init_thread";  // every MPI since 2.0 has it
constexpr const char* remedy =
    "start the program with `ropewalk run -- program` (`pip install mpich` brings an MPI where "
    "there is none), link it to MPI, or set ROPEWALK_MPI_LIBRARY to the full path of libmpi.so";

[[noreturn]] void refuse(const std::string& found) {
  throw Error(ErrorCode::mpi, "mpi: " + found + "; " + remedy);
}

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Libraries that were loaded without RTLD_GLOBAL do not show in the default scope.
void* local_library() {
  std::vector<std::string> candidates;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (std::strncmp(base_name(info->dlpi_name), "libmpi", 6) == 0) {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &candidates);
  for (const std::string& path : candidates) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (dlsym(handle, entry) != nullptr) return handle;
    dlclose(handle);
  }
  return nullptr;
}

// Open MPI opens its own plug-ins, which look for its symbols in the global scope.
void* named_library() {
  const settings::Value given = settings::read(settings::Id::mpi_library);
  if (!given.given) refuse("no MPI library is loaded in this process");
  const char* path = given.text.data();
  void* handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    refuse(std::string("ROPEWALK_MPI_LIBRARY cannot be opened: ") +
           (reason == nullptr ? path : reason));
  }
  if (dlsym(handle, entry) == nullptr) {
    refuse(std::string("ROPEWALK_MPI_LIBRARY=") + path + " has no symbol " + entry);
  }
  return handle;
}

void* open_library() {
  if (dlsym(RTLD_DEFAULT, entry) != nullptr) return RTLD_DEFAULT;
  if (void* handle = local_library()) return handle;
  return named_library();
}

struct Origin {
  std::string path;
  std::string soname;  // of the file itself: its path may be a symbolic link
};

Origin origin(void* symbol) {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(symbol, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return {};
  Origin result{info.dli_fname == nullptr ? "" : info.dli_fname, ""};
  const char* strings = nullptr;
  const ElfW(Dyn)* soname = nullptr;
  for (const ElfW(Dyn)* d = map == nullptr ? nullptr : map->l_ld; d && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_SONAME) soname = d;
  }
  if (strings != nullptr && soname != nullptr) result.soname = strings + soname->d_un.d_val;
  return result;
}

// The soname comes first: an Open MPI with the standard ABI still carries ompi_ symbols below it.
// MPI_Abi_get_version alone decides nothing: MPICH's and Intel's classic libmpi.so.12 export it
// too and answer -1.-1.
Family recognise(const Origin& origin, const SymbolLookup& symbol) {
  if (origin.soname.rfind("libmpi_abi", 0) == 0) return Family::standard;
  if (symbol("ompi_mpi_comm_self") != nullptr) return Family::openmpi;
  if (auto* version = reinterpret_cast<int (*)(int*, int*)>(symbol("PMPI_Abi_get_version"))) {
    int major = -1;
    int minor = -1;
    if (version(&major, &minor) == 0 && major >= 1) return Family::standard;
  }
  return Family::mpich;
}

// Functions are looked up in MPI's own file: another library in front may have some of the same
// names. Its variables are not, since a program may have copies of them.
void* file_of(const Origin& from, void* otherwise) {
  void* file = from.path.empty() ? nullptr : dlopen(from.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return file == nullptr ? otherwise : file;
}

const Library* load() {
  void* handle = open_library();
  const SymbolLookup symbol = [handle](const char* name) { return dlsym(handle, name); };
  const Origin from = origin(symbol(entry));
  auto* made = new Library(abi_of(recognise(from, symbol), symbol), from.path);
  const SymbolLookup function = [file = file_of(from, handle)](const char* name) {
    return dlsym(file, name);
  };
  const std::string missing = load_functions(made->call, function);
  if (!missing.empty()) {
    delete made;
    refuse(from.path + " lacks " + missing + ", which every MPI since 3.0 has");
  }
  return made;  // kept for the life of the process
}

}  // namespace

Library::Library(const Abi& facts, std::string file) : abi(facts), path(std::move(file)) {
  for (std::size_t i = 0; i < datatype_names; ++i) {
    datatypes.insert(abi.datatypes[i], static_cast<DatatypeName>(i));
  }
  for (std::size_t i = 0; i < op_names; ++i) ops.insert(abi.ops[i], static_cast<OpName>(i));
}

const Library& library() {
  const Library* found = current.load(std::memory_order_acquire);  // pairs with the store below
  if (found != nullptr) [[likely]] {
    return *found;
  }
  static std::mutex loading;
  const std::lock_guard lock(loading);
  found = current.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = load();
    current.store(found, std::memory_order_release);
  }
  return *found;
}

const Library* exchange_library(const Library* other) noexcept {
  return current.exchange(other, std::memory_order_acq_rel);
}

bool loaded() noexcept {
  try {
    library();
    return true;
  } catch (...) {
    return false;
  }
}

void fail(int code, const char* function) {
  // 8192 covers MPI_MAX_ERROR_STRING of every MPI (256 to 512).
  std::array<char, 8192> text{};
  int length = 0;
  const int rc = library().call.error_string(code, text.data(), &length);
  throw Error(ErrorCode::mpi, std::string(function) + ": " +
                                  (rc == 0 ? text.data() : "error code " + std::to_string(code)));
}

}  // namespace ropewalk::mpi
