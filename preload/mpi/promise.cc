#include "promise.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "message_peers.hpp"
#include "mpi/library.hpp"

namespace ropewalk::preload::messages {
namespace {

// These names follow MPI_ or PMPI_.
//
// Objects made from a session have a thread level of their own, so that several threads may call
// MPI below MPI_THREAD_MULTIPLE.
constexpr std::array sessions = {"Session_init"};
// These extensions receive nothing, and complete no request. Any other may.
constexpr std::array harmless = {
    "Comm_ack_failed",   "Comm_agree",         "Comm_failure_ack",  "Comm_failure_get_acked",
    "Comm_get_failed",   "Comm_iagree",        "Comm_is_revoked",   "Comm_ishrink",
    "Comm_revoke",       "Comm_shrink",        "GPU_query_support", "Query_cuda_support",
    "Query_hip_support", "Query_rocm_support", "Query_ze_support"};
// These bindings of MPI to Fortran are loaded beside C programs as well. An object that uses them
// is known by Fortran's names.
constexpr std::array bindings = {"libmpifort", "libmpichfort", "libmpi_mpifh", "libmpi_usempi"};

template <std::size_t count>
bool is_one_of(std::string_view name, const std::array<const char*, count>& names) {
  return std::ranges::any_of(names, [&](const char* one) { return name == one; });
}
template <std::size_t count>
bool begins_with(std::string_view name, const std::array<const char*, count>& names) {
  return std::ranges::any_of(names, [&](const char* one) { return name.starts_with(one); });
}

// Fortran compilers write mpi_recv_, mpi_recv__ or MPI_RECV. The bindings of Fortran 2008 have
// names such as mpi_recv_f08_ and mpi_recv_f08ts_.
template <std::size_t count>
bool is_in_fortran(std::string_view name, const std::array<const char*, count>& names) {
  std::string plain;
  for (const char letter : name) plain += static_cast<char>(std::tolower(letter));
  while (plain.ends_with('_')) plain.pop_back();
  for (const std::string_view suffix : {"_f08ts", "_f08"}) {
    if (plain.ends_with(suffix)) plain.resize(plain.size() - suffix.size());
  }
  return std::ranges::any_of(names, [&](std::string_view one) {
    return std::ranges::equal(plain, one, [](char left, char right) {
      return left == static_cast<char>(std::tolower(right));
    });
  });
}

// The symbol is one of these functions of MPI, by either of its names.
template <std::size_t count>
bool is_function(std::string_view name, const std::array<const char*, count>& names) {
  for (const std::string_view prefix : {"MPI_", "PMPI_", "mpi_", "pmpi_"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    return is_one_of(rest, names) || is_in_fortran(rest, names);
  }
  return false;
}

// An extension of one MPI, by which the program may receive past the drop-in.
bool is_foreign(std::string_view name) {
  for (const std::string_view prefix : {"MPIX_", "PMPIX_"}) {
    if (name.starts_with(prefix)) return !is_one_of(name.substr(prefix.size()), harmless);
  }
  return false;
}
bool is_session(std::string_view name) { return is_function(name, sessions); }

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// An Object holds what is needed of the dynamic section of one loaded object.
struct Object {
  std::string name;  // name of the file; empty for the program
  const char* strings = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  std::size_t count = 0;  // number of symbols, which covers all that a relocation refers to
  std::vector<std::string> needed;
};

class Reader {
 public:
  explicit Reader(const dl_phdr_info& info) : base_(info.dlpi_addr) {
    object_.name = info.dlpi_name == nullptr ? "" : info.dlpi_name;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) read(info.dlpi_phdr[i].p_vaddr + base_);
    }
  }
  Object take() { return std::move(object_); }

 private:
  // The C library has added the object's address to most of these, but not to the vDSO's.
  template <class T>
  const T* at(ElfW(Addr) address) const {
    return reinterpret_cast<const T*>(address < base_ ? address + base_ : address);
  }
  // No entry of the section counts the symbols. Whatever is imported has a relocation, so the
  // largest number in a relocation tells how many must be looked at.
  void count(ElfW(Addr) relocations, std::size_t bytes) {
    const auto* const first = at<ElfW(Rela)>(relocations);
    for (std::size_t i = 0; i < bytes / sizeof *first; ++i) {
      const std::size_t symbol = ELF64_R_SYM(first[i].r_info);
      object_.count = std::max(object_.count, symbol + 1);
    }
  }
  void read(ElfW(Addr) section) {
    const auto* const first = reinterpret_cast<const ElfW(Dyn)*>(section);
    std::array<ElfW(Addr), 2> tables{};
    std::array<std::size_t, 2> bytes{};
    for (const auto* entry = first; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) value = entry->d_un.d_val;
      if (entry->d_tag == DT_STRTAB) object_.strings = at<char>(value);
      if (entry->d_tag == DT_SYMTAB) object_.symbols = at<ElfW(Sym)>(value);
      if (entry->d_tag == DT_JMPREL) tables[0] = value;
      if (entry->d_tag == DT_PLTRELSZ) bytes[0] = value;
      if (entry->d_tag == DT_RELA) tables[1] = value;
      if (entry->d_tag == DT_RELASZ) bytes[1] = value;
    }
    for (std::size_t i = 0; i < tables.size(); ++i) {
      if (tables[i] != 0) count(tables[i], bytes[i]);
    }
    for (const auto* entry = first; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag != DT_NEEDED || object_.strings == nullptr) continue;
      object_.needed.emplace_back(object_.strings + entry->d_un.d_val);
    }
  }

  ElfW(Addr) base_;
  Object object_;
};

// Calls look(object) for each, while none of them can be unloaded.
template <class Look>
void for_each_object(Look look) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* with) {
        (*static_cast<Look*>(with))(Reader(*info).take());
        return 0;
      },
      &look);
}

using Names = std::set<std::string, std::less<>>;

// Returns the file names of MPI's library and of all that it needs.
Names objects_of_mpi() {
  std::map<std::string, std::vector<std::string>, std::less<>> needed;
  for_each_object([&](Object object) {
    needed[std::string(base_name(object.name))] = std::move(object.needed);
  });
  Names found{std::string(base_name(mpi::library().path))};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, names] : needed) {
      if (!found.contains(name)) continue;
      for (const std::string& one : names) more = found.insert(one).second || more;
    }
  }
  return found;
}

bool is_known(std::string_view file) {
  return file.starts_with("libropewalk") || file.starts_with("mca_") || file.starts_with("ld-") ||
         file.starts_with("linux-vdso") || begins_with(file, bindings);
}

// Returns the first import of such a name, with the object that has it, or an empty text.
std::string import_in(const Object& object, bool (*is_wanted)(std::string_view)) {
  const std::string_view file = base_name(object.name);
  for (std::size_t i = 0; i < object.count; ++i) {
    const ElfW(Sym)& symbol = object.symbols[i];
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
    const std::string_view name = object.strings + symbol.st_name;
    if (is_wanted(name)) {
      return std::string(file.empty() ? "the program" : file) + " calls " + std::string(name);
    }
  }
  return "";
}

// Looks at all objects but MPI's and ours.
std::string first_import(bool (*is_wanted)(std::string_view)) {
  const Names of_mpi = objects_of_mpi();
  std::string found;
  for_each_object([&](const Object& object) {
    const std::string_view file = base_name(object.name);
    const bool skipped = !file.empty() && (is_known(file) || of_mpi.contains(file));
    if (!found.empty() || skipped) return;
    if (object.strings == nullptr || object.symbols == nullptr) return;
    found = import_in(object, is_wanted);
  });
  return found;
}

}  // namespace

std::string obstacle_to_promise() { return first_import(&is_foreign); }

std::string obstacle_without_lock() { return first_import(&is_session); }

bool completes_by_us() noexcept {
  try {
    static const bool found =
        obstacle_to_promise().empty() &&
        (ranks.threads ? obstacle_to_lock() : obstacle_without_lock()).empty();
    return found;
  } catch (...) {  // no memory to look
    return false;
  }
}

std::string obstacle_to_lock() {
  std::string found;
  for_each_object([&](const Object& object) {
    const std::string_view file = base_name(object.name);
    const bool switches = file.starts_with("libabt.") || file.starts_with("libqthread.");
    if (switches) found = std::string(file) + " switches between threads of its own";
  });
  const char* split = std::getenv("I_MPI_THREAD_SPLIT");
  const bool is_split = split != nullptr && *split != '\0' && std::string_view(split) != "0";
  return is_split ? "I_MPI_THREAD_SPLIT is set" : found;
}

}  // namespace ropewalk::preload::messages
