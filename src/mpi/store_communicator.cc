// This file is an MPI over a key-value store, as small as making a team on one node allows.
// It fills the table of MPI functions, so that no room above knows of it. A function that it lacks
// fails with a text that says so.
#include "ropewalk/store_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "mpi/library.hpp"
#include "mpi/load_functions.hpp"
#include "os/clock.hpp"
#include "os/node_identity.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {
namespace {

// This is the code of every error, whose text is in last_error.
constexpr int failed = 1;
thread_local std::string last_error;

const Abi& abi() {
  static const Abi facts = abi_of(Family::standard, nullptr);
  return facts;
}

// A Member is a communicator as one of its ranks sees it.
struct Member {
  std::shared_ptr<KeyValueStore> store;
  std::string prefix;  // prefix of its keys
  int rank = 0;
  int size = 1;
  // The next two are the same on all ranks.
  std::uint64_t exchanges = 0;
  std::uint64_t made = 0;  // number of communicators made from it
  std::map<int, void*> attributes = {};
};
using MemberPointer = std::shared_ptr<Member>;

struct Keyval {
  DeleteAttribute* on_delete;
  void* extra;
};

struct Table {
  std::mutex mutex;
  std::map<Word, MemberPointer> members;
  Word next = 0x1000;  // above every predefined handle
  std::vector<Keyval> keyvals;
};

// The table is never destroyed, since teams may be ended after static objects.
Table& table() {
  static auto* const made = new Table;
  return *made;
}

Word add(Member member) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.members[all.next] = std::make_shared<Member>(std::move(member));
  return all.next++;
}

MemberPointer find(Word comm) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.members.find(comm);
  if (found != all.members.end()) return found->second;
  throw Error(ErrorCode::mpi,
              "communicator: none of a process group; without an MPI there is no other, so pass "
              "one, or start the ranks under an MPI");
}

// Runs work(member), and turns what it throws into a code.
template <class Work>
int on(Word comm, Work work) noexcept {
  try {
    work(*find(comm));
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

// ---- All that the ranks do together goes through share().

std::string key(const Member& member, std::uint64_t exchange, int rank) {
  return member.prefix + std::to_string(exchange) + "/" + std::to_string(rank);
}

std::string value_of(Member& member, std::uint64_t exchange, int rank) {
  try {
    return member.store->get(key(member, exchange, rank));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::mpi,
                "rank " + std::to_string(rank) +
                    " has not come to the making of the process group: " + error.what());
  }
}

// Brings this rank's own text, waits for the others', and returns all of them by rank.
std::vector<std::string> share(Member& member, const std::string& own) {
  const std::uint64_t number = member.exchanges++;
  member.store->set(key(member, number, member.rank), own);
  std::vector<std::string> all;
  all.reserve(static_cast<std::size_t>(member.size));
  for (int rank = 0; rank < member.size; ++rank) {
    all.push_back(rank == member.rank ? own : value_of(member, number, rank));
  }
  // All ranks have come here, so all have read what was written at the exchange before.
  if (number > 0) member.store->remove(key(member, number - 1, member.rank));
  return all;
}

// ---- These functions make communicators and describe them.

int store_rank(Word comm, int* rank) {
  return on(comm, [&](const Member& member) { *rank = member.rank; });
}

int store_size(Word comm, int* size) {
  return on(comm, [&](const Member& member) { *size = member.size; });
}

int store_dup(Word comm, Word* out) {
  return on(comm, [&](Member& member) {
    const std::string prefix = member.prefix + "d" + std::to_string(member.made++) + "/";
    *out = add({member.store, prefix, member.rank, member.size});
  });
}

// A Choice is what a rank brings to a split.
struct Choice {
  int color;
  int key;
};

// Makes the communicator of the ranks of one color, ordered by key and then by rank.
Member split(Member& member, int color, const std::vector<std::string>& all) {
  std::vector<std::pair<int, int>> order;  // each pair is a key and a rank
  for (int rank = 0; rank < member.size; ++rank) {
    Choice other{};
    std::memcpy(&other, all[static_cast<std::size_t>(rank)].data(), sizeof other);
    if (other.color == color) order.emplace_back(other.key, rank);
  }
  std::ranges::sort(order);
  const auto own = std::ranges::find(order, member.rank, &std::pair<int, int>::second);
  return {member.store,
          member.prefix + "s" + std::to_string(member.made) + "." + std::to_string(color) + "/",
          static_cast<int>(own - order.begin()), static_cast<int>(order.size())};
}

int store_split(Word comm, int color, int key, Word* out) {
  return on(comm, [&](Member& member) {
    const Choice own{color, key};
    std::string bytes(sizeof own, '\0');
    std::memcpy(bytes.data(), &own, sizeof own);
    const std::vector<std::string> all = share(member, bytes);
    *out = color == abi().undefined ? abi().comm_null : add(split(member, color, all));
    ++member.made;
  });
}

// All ranks share this node, so that they are of one color.
int store_split_type(Word comm, int /*type*/, int key, Word /*info*/, Word* out) {
  return store_split(comm, 0, key, out);
}

Keyval keyval_of(int keyval) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  return all.keyvals.at(static_cast<std::size_t>(keyval));
}

void delete_attribute(Word comm, Member& member, int keyval) {
  const auto found = member.attributes.find(keyval);
  if (found == member.attributes.end()) return;
  void* value = found->second;
  member.attributes.erase(found);
  const Keyval kind = keyval_of(keyval);
  kind.on_delete(comm, keyval, value, kind.extra);
}

int store_free(Word* comm) {
  return on(*comm, [&](Member& member) {
    while (!member.attributes.empty()) {
      delete_attribute(*comm, member, member.attributes.begin()->first);
    }
    Table& all = table();
    const std::lock_guard lock(all.mutex);
    all.members.erase(*comm);
    *comm = abi().comm_null;
  });
}

int store_create_keyval(CopyAttribute*, DeleteAttribute* on_delete, int* keyval, void* extra) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  *keyval = static_cast<int>(all.keyvals.size());
  all.keyvals.push_back({on_delete, extra});
  return 0;
}

int store_set_attr(Word comm, int keyval, void* value) {
  return on(comm, [&](Member& member) {
    delete_attribute(comm, member, keyval);
    member.attributes[keyval] = value;
  });
}

int store_get_attr(Word comm, int keyval, void* out, int* flag) {
  return on(comm, [&](Member& member) {
    const auto found = member.attributes.find(keyval);
    *flag = found != member.attributes.end() ? 1 : 0;
    if (*flag != 0) *static_cast<void**>(out) = found->second;
  });
}

int store_delete_attr(Word comm, int keyval) {
  return on(comm, [&](Member& member) { delete_attribute(comm, member, keyval); });
}

void fill_communicators(Functions& call) {
  call.comm_rank = &store_rank;
  call.comm_size = &store_size;
  call.comm_dup = &store_dup;
  call.comm_split = &store_split;
  call.comm_split_type = &store_split_type;
  call.comm_free = &store_free;
  call.comm_test_inter = [](Word, int* flag) { return *flag = 0; };
  call.comm_set_errhandler = [](Word, Word) { return 0; };  // errors are returned in any case
  call.comm_create_keyval = &store_create_keyval;
  // The key's function stays, for attributes that are still set.
  call.comm_free_keyval = [](int*) { return 0; };
  call.comm_set_attr = &store_set_attr;
  call.comm_get_attr = &store_get_attr;
  call.comm_delete_attr = &store_delete_attr;
}

// ---- The collectives carry a few bytes or numbers.

void require_bytes(Word type) {
  if (type == abi().datatype(DatatypeName::byte_)) return;
  throw Error(ErrorCode::mpi, "datatype: not MPI_BYTE, which is all that goes through a store");
}

int store_barrier(Word comm) {
  return on(comm, [](Member& member) { share(member, "here"); });
}

int store_bcast(void* data, int count, Word type, int root, Word comm) {
  return on(comm, [&](Member& member) {
    require_bytes(type);
    const auto bytes = static_cast<std::size_t>(count);
    const std::vector<std::string> all = share(
        member, member.rank == root ? std::string(static_cast<const char*>(data), bytes) : "here");
    const std::string& found = all.at(static_cast<std::size_t>(root));
    std::memcpy(data, found.data(), std::min(bytes, found.size()));
  });
}

int store_allgather(const void* send, int count, Word type, void* receive, int, Word, Word comm) {
  return on(comm, [&](Member& member) {
    require_bytes(type);
    const auto bytes = static_cast<std::size_t>(count);
    auto* to = static_cast<std::byte*>(receive);
    for (const std::string& one :
         share(member, std::string(static_cast<const char*>(send), bytes))) {
      std::memcpy(to, one.data(), std::min(bytes, one.size()));
      to += bytes;
    }
  });
}

template <class T>
T combine(Word op, T one, T other) {
  if (op == abi().op(OpName::min)) return std::min(one, other);
  if (op == abi().op(OpName::max)) return std::max(one, other);
  if (op == abi().op(OpName::sum)) return one + other;
  throw Error(ErrorCode::mpi, "operation: none of min, max and sum");
}

// Combines in place and in the order of ranks, so that all get the same bits.
template <class T>
void combine_all(Member& member, T* values, std::size_t count, Word op) {
  const std::vector<std::string> all =
      share(member, std::string(reinterpret_cast<const char*>(values), count * sizeof(T)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, all[rank].data() + i * sizeof(T), sizeof(T));
      values[i] = rank == 0 ? value : combine(op, values[i], value);
    }
  }
}

int store_allreduce(const void* send, void* values, int count, Word type, Word op, Word comm) {
  return on(comm, [&](Member& member) {
    const auto number = static_cast<std::size_t>(count);
    if (address(send) != abi().in_place) {
      throw Error(ErrorCode::mpi, "send buffer: expected MPI_IN_PLACE");
    }
    if (type == abi().datatype(DatatypeName::int64)) {
      combine_all(member, static_cast<std::int64_t*>(values), number, op);
    } else if (type == abi().datatype(DatatypeName::double_)) {
      combine_all(member, static_cast<double*>(values), number, op);
    } else {
      throw Error(ErrorCode::mpi, "datatype: neither MPI_INT64_T nor MPI_DOUBLE");
    }
  });
}

// ---- These functions make the library.

// This stands in place of every function that is not here, and is called through pointers of other
// types. That works in the C calling conventions of x86-64 and AArch64, in which the caller takes
// the arguments away.
int unsupported() {
  last_error =
      "these ranks have no MPI, and the store that they share carries no messages; several nodes "
      "need an MPI: start the ranks with its launcher and import mpi4py before the process group "
      "is made";
  return failed;
}

void fill_environment(Functions& call) {
  constexpr auto level = [](int* out) { return *out = abi().thread_levels[3], 0; };
  call.query_thread = level;
  call.init_thread = [](int*, char***, int, int* out) { return *out = abi().thread_levels[3], 0; };
  call.initialized = [](int* flag) { return *flag = 1, 0; };
  call.finalized = [](int* flag) { return *flag = 0, 0; };
  call.finalize = [] { return 0; };
  call.error_string = [](int, char* text, int* length) {
    constexpr std::size_t room = 511;  // MPI_MAX_ERROR_STRING is 512 in MPICH, and less nowhere
    const std::size_t bytes = std::min(last_error.size(), room);
    std::memcpy(text, last_error.data(), bytes);
    text[bytes] = '\0';
    *length = static_cast<int>(bytes);
    return 0;
  };
  call.get_library_version = [](char* text, int* length) {
    constexpr char name[] = "no MPI: a key-value store";
    std::memcpy(text, name, sizeof name);
    *length = static_cast<int>(sizeof name - 1);
    return 0;
  };
  call.wtime = [] { return static_cast<double>(os::steady_ns()) * 1e-9; };
  call.iprobe = [](int, int, Word, int* flag, Word) { return *flag = 0; };
}

const Library* make_library() {
  auto* made = new Library(abi(), "a key-value store");
  Functions& call = made->call;
  load_functions(call, [](const char* name) {
    const std::string text = name;  // the functions of MPI 4 may be absent
    return text.ends_with("_c") ? nullptr : reinterpret_cast<void*>(&unsupported);
  });
  // These are absent: their callers do without them.
  call.comm_get_errhandler = nullptr;
  call.errhandler_free = nullptr;
  call.grequest_start = nullptr;
  call.info_create = nullptr;
  call.file_get_errhandler = nullptr;
  fill_environment(call);
  fill_communicators(call);
  call.barrier = &store_barrier;
  call.bcast = &store_bcast;
  call.allgather = &store_allgather;
  call.allreduce = &store_allreduce;
  return made;
}

// Makes the store the MPI of this process, unless it has one.
void install() {
  static const Library* const ours = make_library();
  const Library* before = exchange_library(ours);
  if (before == nullptr || before == ours) return;
  exchange_library(before);
  throw Error(ErrorCode::unsupported, "store communicator: this process uses the MPI " +
                                          before->path +
                                          " already; make the communicator from one of MPI's");
}

void require_one_node(Word comm) {
  const std::vector<std::string> names = share(*find(comm), os::node_identity());
  const std::size_t nodes = std::set<std::string>(names.begin(), names.end()).size();
  if (nodes == 1) return;
  throw Error(ErrorCode::unsupported,
              "process group: its ranks are on " + std::to_string(nodes) +
                  " nodes, expected one where there is no MPI; start the ranks with the launcher "
                  "of an MPI and import mpi4py before the process group is made");
}

}  // namespace
}  // namespace ropewalk::mpi

namespace ropewalk {

StoreCommunicator::StoreCommunicator(std::shared_ptr<KeyValueStore> store, int rank, int size)
    : made_(std::uintptr_t{0}) {
  mpi::install();
  mpi::Word word = mpi::add({std::move(store), "", rank, size});
  made_ = Communicator(word);
  try {
    mpi::require_one_node(word);
  } catch (...) {
    mpi::store_free(&word);
    throw;
  }
}

StoreCommunicator::~StoreCommunicator() {
  mpi::Word word = made_.handle();
  mpi::store_free(&word);
}

}  // namespace ropewalk
