// Communicators are made, described and freed through the store; no rank waits to free one.
#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "os/node_identity.hpp"
#include "without_mpi/members.hpp"

namespace ropewalk::without_mpi {
namespace {

struct Keyval {
  mpi::DeleteAttribute* on_delete;
  void* extra;
};

struct Keyvals {
  std::mutex mutex;
  std::vector<Keyval> all;
};

Keyvals& keyvals() {
  static auto* const made = new Keyvals;
  return *made;
}

int comm_rank(Word comm, int* rank) {
  return on(comm, [&](const Member& member) { *rank = member.rank(); });
}

int comm_size(Word comm, int* size) {
  return on(comm, [&](const Member& member) { *size = member.size(); });
}

int comm_dup(Word comm, Word* out) {
  return on(comm, [&](Member& member) {
    std::vector<int> all(static_cast<std::size_t>(member.size()));
    std::iota(all.begin(), all.end(), 0);
    *out = add(member.derive("d" + std::to_string(member.next_number()), all));
  });
}

// What a rank brings to a split.
struct Choice {
  int color;
  int key;
};

// Returns the ranks of one color, ordered by key and then by rank.
std::vector<int> ranks_of(int color, const std::vector<std::string>& choices) {
  std::vector<std::pair<int, int>> order;  // each pair is a key and a rank
  for (std::size_t rank = 0; rank < choices.size(); ++rank) {
    Choice one{};
    std::memcpy(&one, choices[rank].data(), sizeof one);
    if (one.color == color) order.emplace_back(one.key, static_cast<int>(rank));
  }
  std::ranges::sort(order);
  std::vector<int> ranks;
  ranks.reserve(order.size());
  for (const auto& [key, rank] : order) ranks.push_back(rank);
  return ranks;
}

int comm_split(Word comm, int color, int key, Word* out) {
  return on(comm, [&](Member& member) {
    const Choice own{color, key};
    std::string bytes(sizeof own, '\0');
    std::memcpy(bytes.data(), &own, sizeof own);
    const std::vector<std::string> all = member.share(bytes);
    const std::string name =
        "s" + std::to_string(member.next_number()) + "." + std::to_string(color);
    *out =
        color == abi().undefined ? abi().comm_null : add(member.derive(name, ranks_of(color, all)));
  });
}

// The ranks of one node are of one color.
int comm_split_type(Word comm, int /*type*/, int key, Word /*info*/, Word* out) {
  int color = 0;
  const int code = on(comm, [&](Member& member) {
    const std::string own = os::node_identity();
    const std::vector<std::string> names = member.share(own);
    color = static_cast<int>(std::ranges::find(names, own) - names.begin());
  });
  return code != 0 ? code : comm_split(comm, color, key, out);
}

Keyval keyval_of(int keyval) {
  Keyvals& known = keyvals();
  const std::lock_guard lock(known.mutex);
  return known.all.at(static_cast<std::size_t>(keyval));
}

void delete_attribute(Word comm, Member& member, int keyval) {
  const std::optional<void*> value = member.take_attribute(keyval);
  if (!value) return;
  const Keyval kind = keyval_of(keyval);
  kind.on_delete(comm, keyval, *value, kind.extra);
}

int comm_free(Word* comm) {
  return on(*comm, [&](Member& member) {
    while (const std::optional<int> key = member.any_attribute()) {
      delete_attribute(*comm, member, *key);
    }
    member.close();
    remove(*comm);
    *comm = abi().comm_null;
  });
}

int create_keyval(mpi::CopyAttribute*, mpi::DeleteAttribute* on_delete, int* keyval, void* extra) {
  Keyvals& known = keyvals();
  const std::lock_guard lock(known.mutex);
  *keyval = static_cast<int>(known.all.size());
  known.all.push_back({on_delete, extra});
  return 0;
}

int set_attr(Word comm, int keyval, void* value) {
  return on(comm, [&](Member& member) {
    delete_attribute(comm, member, keyval);
    member.set_attribute(keyval, value);
  });
}

int get_attr(Word comm, int keyval, void* out, int* flag) {
  static int largest_tag = INT_MAX;
  return on(comm, [&](Member& member) {
    if (keyval == abi().tag_upper_bound) {
      *static_cast<int**>(out) = &largest_tag;
      *flag = 1;
      return;
    }
    const std::optional<void*> value = member.attribute(keyval);
    *flag = value ? 1 : 0;
    if (value) *static_cast<void**>(out) = *value;
  });
}

int delete_attr(Word comm, int keyval) {
  return on(comm, [&](Member& member) { delete_attribute(comm, member, keyval); });
}

}  // namespace

void fill_communicators(mpi::Functions& call) {
  call.comm_rank = &comm_rank;
  call.comm_size = &comm_size;
  call.comm_dup = &comm_dup;
  call.comm_split = &comm_split;
  call.comm_split_type = &comm_split_type;
  call.comm_free = &comm_free;
  call.comm_test_inter = [](Word, int* flag) { return *flag = 0; };
  call.comm_set_errhandler = [](Word, Word) { return 0; };  // errors are returned in any case
  call.comm_create_keyval = &create_keyval;
  // The key's function stays, for attributes that are still set.
  call.comm_free_keyval = [](int*) { return 0; };
  call.comm_set_attr = &set_attr;
  call.comm_get_attr = &get_attr;
  call.comm_delete_attr = &delete_attr;
}

}  // namespace ropewalk::without_mpi
