// This file has the communicators of thread_mpi: their handles, how they are made and freed, their
// attributes.
#include <algorithm>
#include <utility>

#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

// Keyvals outlive a run, as they outlive communicators: rooms make theirs once a process.
struct Keyval {
  mpi::DeleteAttribute* on_delete;
  void* extra;
};
std::map<int, Keyval>& keyvals() {  // guarded by the lock of the world
  static std::map<int, Keyval> all;
  return all;
}
constexpr int first_keyval = 1;

Word add(World& world, const std::vector<int>& members) {
  const Word handle = world.next_handle++;
  world.communicators[handle] = std::make_shared<Communicator>(members);
  return handle;
}

int fake_comm_rank(Word comm, int* rank) {
  return on_communicator("MPI_Comm_rank", comm, [&](Here&, const CommunicatorPointer&, int me) {
    *rank = me;
    return 0;
  });
}

int fake_comm_size(Word comm, int* size) {
  return on_communicator("MPI_Comm_size", comm, [&](Here&, const CommunicatorPointer& c, int) {
    *size = static_cast<int>(c->members.size());
    return 0;
  });
}

int fake_comm_dup(Word comm, Word* out) {
  Part part;
  part.receive = out;
  return collective("MPI_Comm_dup", comm, part,
                    [](World& world, Communicator& c, std::vector<Part*>& parts) {
                      const Word made = add(world, c.members);
                      for (Part* p : parts) *static_cast<Word*>(p->receive) = made;
                      return 0;
                    });
}

int split_all(World& world, Communicator& comm, std::vector<Part*>& parts) {
  std::map<int, std::vector<std::pair<int, std::size_t>>> colors;  // (key, old rank)
  for (std::size_t i = 0; i < parts.size(); ++i) {
    *static_cast<Word*>(parts[i]->receive) = abi().comm_null;
    if (parts[i]->color != abi().undefined) colors[parts[i]->color].emplace_back(parts[i]->key, i);
  }
  for (auto& [color, members] : colors) {
    std::sort(members.begin(), members.end());
    std::vector<int> ranks;
    for (const auto& [key, i] : members) ranks.push_back(comm.members[i]);
    const Word made = add(world, ranks);
    for (const auto& [key, i] : members) *static_cast<Word*>(parts[i]->receive) = made;
  }
  return 0;
}

int fake_comm_split(Word comm, int color, int key, Word* out) {
  Part part;
  part.receive = out;
  part.color = color;
  part.key = key;
  return collective("MPI_Comm_split", comm, part, &split_all);
}

int shared_all(World& world, Communicator& comm, std::vector<Part*>& parts) {
  const int width = world.options.ranks_per_node;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i]->color = width > 0 ? comm.members[i] / width : 0;
  }
  return split_all(world, comm, parts);
}

int fake_comm_split_type(Word comm, int type, int key, Word, Word* out) {
  Part part;
  part.receive = out;
  part.key = key;
  if (type != abi().comm_type_shared) {
    return in_call("MPI_Comm_split_type", [](Here& here) {
      return here.world.error("MPI_Comm_split_type: only MPI_COMM_TYPE_SHARED is known");
    });
  }
  return collective("MPI_Comm_split_type", comm, part, &shared_all);
}

// Every member has come here: no call of another thread can be in progress on it.
int drop(World& world, Communicator& c, Word handle) {
  for (const Mailbox& mailbox : c.mailboxes) {
    if (mailbox.posted.empty() && mailbox.unexpected.empty()) continue;
    return world.error("MPI_Comm_free: messages or receives are left on the communicator");
  }
  world.communicators.erase(handle);
  return 0;
}

int free_locally(Word handle) {
  return on_communicator("MPI_Comm_free", handle,
                         [&](Here& here, const CommunicatorPointer& c, int) {
                           if (++c->freed < c->members.size()) return 0;
                           return drop(here.world, *c, handle);
                         });
}

int free_together(Word handle) {
  Part part;
  return collective("MPI_Comm_free", handle, part,
                    [handle](World& world, Communicator& c, std::vector<Part*>&) {
                      return drop(world, c, handle);
                    });
}

int fake_comm_free(Word* comm) {
  bool waits = true;
  const auto prepare = [&](Here& here, const CommunicatorPointer& c, int me) {
    delete_attributes(here.world, here.lock, *comm, c, me);
    waits = here.world.options.frees_wait;
    return 0;
  };
  const int code = on_communicator("MPI_Comm_free", *comm, prepare);
  if (code != 0) return code;
  const int freed = waits ? free_together(*comm) : free_locally(*comm);
  if (freed == 0) *comm = abi().comm_null;
  return freed;
}

int fake_create_keyval(mpi::CopyAttribute*, mpi::DeleteAttribute* on_delete, int* keyval,
                       void* extra) {
  return in_call("MPI_Comm_create_keyval", [&](Here&) {
    *keyval = first_keyval + static_cast<int>(keyvals().size());
    keyvals()[*keyval] = {on_delete, extra};
    return 0;
  });
}

int fake_free_keyval(int* keyval) {  // its functions stay: attributes may still be set
  *keyval = abi().keyval_invalid;
  return 0;
}

// The function of the owner runs without the lock, since it may call MPI.
void delete_one(std::unique_lock<std::mutex>& lock, Word handle, int keyval, void* value) {
  const Keyval key = keyvals().at(keyval);
  lock.unlock();
  key.on_delete(handle, keyval, value, key.extra);
  lock.lock();
}

int drop_attribute(Here& here, Word comm, const CommunicatorPointer& c, int me, int keyval) {
  auto& attributes = c->attributes[static_cast<std::size_t>(me)];
  const auto found = attributes.find(keyval);
  if (found == attributes.end()) return 0;
  void* value = found->second;
  attributes.erase(found);
  delete_one(here.lock, comm, keyval, value);
  return 0;
}

int fake_delete_attr(Word comm, int keyval) {
  return on_communicator("MPI_Comm_delete_attr", comm,
                         [&](Here& here, const CommunicatorPointer& c, int me) {
                           return drop_attribute(here, comm, c, me, keyval);
                         });
}

int fake_set_attr(Word comm, int keyval, void* value) {
  return on_communicator("MPI_Comm_set_attr", comm,
                         [&](Here& here, const CommunicatorPointer& c, int me) {
                           if (keyvals().count(keyval) == 0)
                             return here.world.error("MPI_Comm_set_attr: no keyval");
                           drop_attribute(here, comm, c, me, keyval);
                           c->attributes[static_cast<std::size_t>(me)][keyval] = value;
                           return 0;
                         });
}

int fake_get_attr(Word comm, int keyval, void* out, int* flag) {
  return on_communicator("MPI_Comm_get_attr", comm,
                         [&](Here& here, const CommunicatorPointer& c, int me) {
                           const auto& attributes = c->attributes[static_cast<std::size_t>(me)];
                           const auto found = attributes.find(keyval);
                           *flag = 1;
                           if (keyval == abi().tag_upper_bound) {
                             *static_cast<const void**>(out) = &here.world.options.tag_bound;
                           } else if (found != attributes.end()) {
                             *static_cast<void**>(out) = found->second;
                           } else {
                             *flag = 0;
                           }
                           return 0;
                         });
}

}  // namespace

Communicator::Communicator(std::vector<int> ranks)
    : members(std::move(ranks)),
      mailboxes(members.size()),
      attributes(members.size()),
      parts(members.size()),
      started(members.size()) {}

int Communicator::member(int world_rank) const {
  const auto found = std::find(members.begin(), members.end(), world_rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

CommunicatorPointer World::communicator(Word handle, int rank) const {
  if (handle == abi().comm_world) return all;
  if (handle == abi().comm_self) return self[static_cast<std::size_t>(rank)];
  const auto found = communicators.find(handle);
  return found == communicators.end() ? nullptr : found->second;
}

int on_communicator(const char* function, Word comm,
                    const std::function<int(Here&, const CommunicatorPointer&, int)>& work) {
  return in_call(function, [&](Here& here) {
    const CommunicatorPointer found = here.world.communicator(comm, here.rank);
    const int member = found == nullptr ? -1 : found->member(here.rank);
    if (member < 0) return here.world.error("not a communicator of this rank, or freed before");
    return work(here, found, member);
  });
}

void delete_attributes(World&, std::unique_lock<std::mutex>& lock, Word handle,
                       const CommunicatorPointer& comm, int member) {
  auto& attributes = comm->attributes[static_cast<std::size_t>(member)];
  while (!attributes.empty()) {
    const auto [keyval, value] = *attributes.begin();
    attributes.erase(attributes.begin());
    delete_one(lock, handle, keyval, value);
  }
}

void fill_communicators(mpi::Functions& call) {
  call.comm_rank = &fake_comm_rank;
  call.comm_size = &fake_comm_size;
  call.comm_dup = &fake_comm_dup;
  call.comm_split = &fake_comm_split;
  call.comm_split_type = &fake_comm_split_type;
  call.comm_free = &fake_comm_free;
  call.comm_test_inter = [](Word, int* flag) { return *flag = 0; };
  // Every error is returned here, whatever handler is set.
  call.comm_set_errhandler = [](Word, Word) {
    return in_call("MPI_Comm_set_errhandler", [](Here&) { return 0; });
  };
  call.comm_create_keyval = &fake_create_keyval;
  call.comm_free_keyval = &fake_free_keyval;
  call.comm_set_attr = &fake_set_attr;
  call.comm_get_attr = &fake_get_attr;
  call.comm_delete_attr = &fake_delete_attr;
}

}  // namespace ropewalk::test
