// This file converts Fortran's arguments to C's, with a converter for each function that is served.
#include "fortran.hpp"

#include <dlfcn.h>

#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/datatypes.hpp"
#include "datatypes.hpp"
#include "fortran_sentinels.hpp"
#include "local_mpi.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::preload::fortran {
namespace {

using mpi::Family;

struct Facts {
  Word (*comm)(int) = nullptr;
  Word (*type)(int) = nullptr;
  Word (*op)(int) = nullptr;
  Word (*info)(int) = nullptr;
  int (*request)(Word) = nullptr;  // to Fortran's
  Word in_place = 0;               // C's
  Sentinels sentinels;
  bool wide_integers = false;
};
Facts facts;  // complete before the first converter is called

// There is a type for each kind of argument: it says what Fortran passes, and what C gets for it.
struct Comm {
  using Fortran = const int*;
  static Word c(Fortran handle) { return facts.comm(*handle); }
};
struct Type {
  using Fortran = const int*;
  static Word c(Fortran handle) { return facts.type(*handle); }
};
struct Op {
  using Fortran = const int*;
  static Word c(Fortran handle) { return facts.op(*handle); }
};
struct Info {
  using Fortran = const int*;
  static Word c(Fortran handle) { return facts.info(*handle); }
};
struct Number {
  using Fortran = const int*;
  static int c(Fortran number) { return *number; }
};
struct Numbers {
  using Fortran = const int*;
  static const int* c(Fortran numbers) { return numbers; }
};
struct Places {  // integers(kind=MPI_ADDRESS_KIND)
  using Fortran = const Count*;
  static const Count* c(Fortran places) { return places; }
};
struct Handle {  // stays Fortran's
  using Fortran = const int*;
  static int c(Fortran handle) { return *handle; }
};
struct Bytes {  // an integer(kind=MPI_ADDRESS_KIND)
  using Fortran = const Count*;
  static Count c(Fortran bytes) { return *bytes; }
};
struct Address {  // such an integer, or a type(c_ptr), that is given an address
  using Fortran = void*;
  static void* c(Fortran result) { return result; }
};
struct Choice {  // a buffer, or a sentinel
  using Fortran = void*;
  static void* c(Fortran buffer) {
    if (facts.sentinels.is_in_place(buffer)) return reinterpret_cast<void*>(facts.in_place);
    return facts.sentinels.is_bottom(buffer) ? nullptr : buffer;
  }
};

struct Request {  // C's handle is Fortran's, once the call has made it
  using Fortran = int*;
  static void* c(Fortran) { return &made; }
  static thread_local Word made;
};
thread_local Word Request::made = 0;

// What is left to do after the call.
template <class Kind>
void finish(typename Kind::Fortran argument) {
  if constexpr (std::is_same_v<Kind, Request>) *argument = facts.request(Request::made);
}

// C's handles for an array of Fortran's, in the words that C reads. Fortran's own are C's where
// these are ints. In place, Fortran passes no array to read.
class Types {
 public:
  Types(const int* types, std::size_t count) : given_(types) {
    if (mpi::library().abi.int_handles || types == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) words_.push_back(facts.type(types[i]));
  }
  const void* c() const noexcept {
    return words_.empty() ? static_cast<const void*>(given_) : words_.data();
  }
  // The same for a call that MPI may go on with, and read the array: it is kept for ever. A program
  // has the same few arrays again and again.
  const void* kept() && {
    if (words_.empty()) return given_;
    static std::mutex mutex;
    static std::set<std::vector<Word>> all;
    const std::lock_guard lock(mutex);
    return all.insert(std::move(words_)).first->data();
  }

 private:
  const int* given_;
  std::vector<Word> words_;
};

void give_back(int code, void* error) {
  if (error == nullptr) return;
  if (facts.wide_integers) {
    *static_cast<std::int64_t*>(error) = code;
  } else {
    *static_cast<int*>(error) = code;
  }
}

template <auto Serve, class Kinds>
struct Converter;
template <auto Serve, class... Kinds>
struct Converter<Serve, void(Kinds...)> {
  static void call(typename Kinds::Fortran... arguments, void* error) {
    const int code = Serve(Kinds::c(arguments)...);
    if (code == 0) (finish<Kinds>(arguments), ...);
    give_back(code, error);
  }
  static constexpr bool integers = (std::is_same_v<typename Kinds::Fortran, const int*> || ...);
  static constexpr bool buffers = (std::is_same_v<Kinds, Choice> || ...);
};

template <class Function>
void find(void* file, Function*& function, const std::string& name) {
  function = reinterpret_cast<Function*>(dlsym(file, name.c_str()));
  if (function == nullptr) throw Error(ErrorCode::mpi, "mpi: no " + name);
}

void find_conversions(const mpi::Library& library) {
  if (library.abi.int_handles) {  // C's handles are Fortran's
    constexpr auto same = [](int handle) -> Word { return static_cast<unsigned>(handle); };
    facts.comm = facts.type = facts.op = facts.info = same;
    facts.request = [](Word handle) { return static_cast<int>(handle); };
    return;
  }
  void* file = dlopen(library.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (file == nullptr) file = RTLD_DEFAULT;
  const std::string suffix = library.abi.family == Family::openmpi ? "_f2c" : "_fromint";
  find(file, facts.comm, "PMPI_Comm" + suffix);
  find(file, facts.type, "PMPI_Type" + suffix);
  find(file, facts.op, "PMPI_Op" + suffix);
  find(file, facts.info, "PMPI_Info" + suffix);
  const bool open = library.abi.family == Family::openmpi;
  find(file, facts.request, open ? "PMPI_Request_c2f" : "PMPI_Request_toint");
}

Binding find_facts() {
  const mpi::Library& library = mpi::library();
  const Word integer = library.abi.datatype(mpi::DatatypeName::integer);
  Count bytes = 0;
  if (integer == 0 || library.call.type_size_x(integer, &bytes) != 0) return Binding::none;
  if (bytes != sizeof(int) && bytes != sizeof(std::int64_t)) return Binding::none;
  facts.wide_integers = bytes != sizeof(int);
  find_conversions(library);
  facts.in_place = library.abi.in_place;
  // In other families no function with a buffer is converted here.
  if (library.abi.family == Family::openmpi && !facts.sentinels.find()) return Binding::none;
  return facts.wide_integers ? Binding::wide_integers : Binding::ready;
}

}  // namespace

Binding binding() noexcept {
  static const Binding found = [] {
    try {
      return find_facts();
    } catch (...) {  // an MPI without Fortran
      return Binding::none;
    }
  }();
  return found;
}

#define ROPEWALK_FORTRAN_ENTRY(symbol, function, f08, kinds)                              \
  {#symbol, reinterpret_cast<void*>(&Converter<&serve::function, void kinds>::call), f08, \
   Converter<&serve::function, void kinds>::integers,                                     \
   Converter<&serve::function, void kinds>::buffers},
#define ROPEWALK_FORTRAN_WINDOW_ENTRY(symbol) {#symbol, nullptr, false, false, false},
const Entry entries[] = {ROPEWALK_FORTRAN_ENTRIES(ROPEWALK_FORTRAN_ENTRY)
                             ROPEWALK_FORTRAN_WINDOWS(ROPEWALK_FORTRAN_WINDOW_ENTRY)};
#undef ROPEWALK_FORTRAN_WINDOW_ENTRY
#undef ROPEWALK_FORTRAN_ENTRY

}  // namespace ropewalk::preload::fortran

namespace ropewalk::preload::serve {

using fortran::Types;

int Alltoallw_fortran(const void* send, const int* send_counts, const int* send_displacements,
                      const int* send_types, void* receive, const int* counts,
                      const int* displacements, const int* types, int comm) {
  const Word word = fortran::facts.comm(comm);
  const std::size_t blocks = group_sizes({clean(word)}).other;
  const Types sent(send_types, collectives::is_in_place(send) ? 0 : blocks);
  const Types received(types, blocks);
  return Alltoallw(send, send_counts, send_displacements, sent.c(), receive, counts, displacements,
                   received.c(), word);
}

int Neighbor_alltoallw_fortran(const void* send, const int* send_counts,
                               const Count* send_displacements, const int* send_types,
                               void* receive, const int* counts, const Count* displacements,
                               const int* types, int comm) {
  const Word word = fortran::facts.comm(comm);
  const auto [in, out] = degrees({clean(word)});
  const Types sent(send_types, out);
  const Types received(types, in);
  return Neighbor_alltoallw(send, send_counts, send_displacements, sent.c(), receive, counts,
                            displacements, received.c(), word);
}

int Ialltoallw_fortran(const void* send, const int* send_counts, const int* send_displacements,
                       const int* send_types, void* receive, const int* counts,
                       const int* displacements, const int* types, int comm, void* request) {
  const Word word = fortran::facts.comm(comm);
  const std::size_t blocks = group_sizes({clean(word)}).other;
  Types sent(send_types, collectives::is_in_place(send) ? 0 : blocks);
  Types received(types, blocks);
  return Ialltoallw(send, send_counts, send_displacements, std::move(sent).kept(), receive, counts,
                    displacements, std::move(received).kept(), word, request);
}

int Ineighbor_alltoallw_fortran(const void* send, const int* send_counts,
                                const Count* send_displacements, const int* send_types,
                                void* receive, const int* counts, const Count* displacements,
                                const int* types, int comm, void* request) {
  const Word word = fortran::facts.comm(comm);
  const auto [in, out] = degrees({clean(word)});
  Types sent(send_types, out);
  Types received(types, in);
  return Ineighbor_alltoallw(send, send_counts, send_displacements, std::move(sent).kept(), receive,
                             counts, displacements, std::move(received).kept(), word, request);
}

}  // namespace ropewalk::preload::serve
