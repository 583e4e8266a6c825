#include "os/imports.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "os/file.hpp"
#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

// These kinds of relocations are the address of a symbol and nothing else: for calls, for pointers
// that code reads, and for pointers in data.
#if defined(__x86_64__)
constexpr std::array<std::size_t, 3> address_kinds{R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT,
                                                   R_X86_64_64};
#elif defined(__aarch64__)
constexpr std::array<std::size_t, 3> address_kinds{R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT,
                                                   R_AARCH64_ABS64};
#else
constexpr std::array<std::size_t, 0> address_kinds{};  // nothing can be replaced
#endif

// A library has a place for calls and one for pointers, and data with more of these is rare.
constexpr std::size_t most_places = 32;

struct Place {
  std::uintptr_t address;
  bool is_read_only;
};

struct Search {
  std::string_view library;
  std::string_view function;
  std::array<Place, most_places> places;
  std::size_t count = 0;
};

using Relocations = std::span<const ElfW(Rela)>;

// The part of a library that tells the dynamic linker what it imports.
struct Tables {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  Relocations for_data;
  Relocations for_calls;
};

const ElfW(Phdr) * segment_of(const dl_phdr_info& library, ElfW(Word) type) noexcept {
  const std::span all(library.dlpi_phdr, library.dlpi_phnum);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const ElfW(Phdr) & one) { return one.p_type == type; });
  return found == all.end() ? nullptr : &*found;
}

// glibc has made these addresses absolute on most processors, other linkers have not.
template <class T>
const T* at(const dl_phdr_info& library, ElfW(Addr) address) noexcept {
  return reinterpret_cast<const T*>(address < library.dlpi_addr ? library.dlpi_addr + address
                                                                : address);
}

Tables tables_of(const dl_phdr_info& library, const ElfW(Phdr) & dynamic) noexcept {
  Tables result;
  const ElfW(Rela)* data = nullptr;
  const ElfW(Rela)* calls = nullptr;
  std::size_t data_bytes = 0;
  std::size_t call_bytes = 0;
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + dynamic.p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_STRTAB:
        result.names = at<char>(library, entry->d_un.d_ptr);
        break;
      case DT_SYMTAB:
        result.symbols = at<ElfW(Sym)>(library, entry->d_un.d_ptr);
        break;
      case DT_RELA:
        data = at<ElfW(Rela)>(library, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        data_bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        calls = at<ElfW(Rela)>(library, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        call_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (data != nullptr) result.for_data = {data, data_bytes / sizeof *data};
  if (calls != nullptr) result.for_calls = {calls, call_bytes / sizeof *calls};
  return result;
}

// The dynamic linker has taken the right to write from whole pages of this segment.
bool is_read_only(const dl_phdr_info& library, std::uintptr_t address) noexcept {
  const ElfW(Phdr)* segment = segment_of(library, PT_GNU_RELRO);
  if (segment == nullptr) return false;
  const std::uintptr_t begin = library.dlpi_addr + segment->p_vaddr;
  const std::uintptr_t end = begin + segment->p_memsz;
  return address >= round_down(begin, page_bytes()) && address < round_down(end, page_bytes());
}

void search(const dl_phdr_info& library, const Tables& tables, Relocations relocations,
            Search& wanted) noexcept {
  for (const ElfW(Rela) & one : relocations) {
    const std::size_t kind = ELF64_R_TYPE(one.r_info);
    const auto known = std::find(address_kinds.begin(), address_kinds.end(), kind);
    if (known == address_kinds.end()) continue;
    const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(one.r_info)];
    if (one.r_addend != 0 || wanted.function != tables.names + symbol.st_name) continue;
    if (wanted.count == most_places) return;
    const std::uintptr_t address = library.dlpi_addr + one.r_offset;
    wanted.places[wanted.count++] = {address, is_read_only(library, address)};
  }
}

// No exception leaves this function: the linker calls it, with its lock held.
int visit(dl_phdr_info* library, std::size_t, void* given) noexcept {
  Search& wanted = *static_cast<Search*>(given);
  const std::string_view path = library->dlpi_name;
  if (path.substr(path.rfind('/') + 1) != wanted.library) return 0;
  const ElfW(Phdr)* dynamic = segment_of(*library, PT_DYNAMIC);
  if (dynamic == nullptr) return 0;
  const Tables tables = tables_of(*library, *dynamic);
  if (tables.names == nullptr || tables.symbols == nullptr) return 0;
  search(*library, tables, tables.for_data, wanted);
  search(*library, tables, tables.for_calls, wanted);
  return 0;
}

void protect(const Place& place, int rights) {
  void* page = reinterpret_cast<void*>(round_down(place.address, page_bytes()));
  if (mprotect(page, page_bytes(), rights) != 0) throw system_error("mprotect", errno);
}

void write(const Place& place, void* replacement) {
  if (place.is_read_only) protect(place, PROT_READ | PROT_WRITE);
  // Release: what the function reads was written before. Callers reach it through this address.
  std::atomic_ref(*reinterpret_cast<void**>(place.address))
      .store(replacement, std::memory_order_release);
  if (place.is_read_only) protect(place, PROT_READ);
}

}  // namespace

std::size_t replace_import(std::string_view library, std::string_view function, void* replacement) {
  Search wanted{library, function, {}};
  dl_iterate_phdr(visit, &wanted);
  for (const Place& one : std::span(wanted.places).first(wanted.count)) write(one, replacement);
  return wanted.count;
}

}  // namespace ropewalk::os
