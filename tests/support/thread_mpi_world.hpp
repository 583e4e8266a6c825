// Inside of thread_mpi: the state that its ranks share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/abi.hpp"
#include "mpi/functions.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {

using mpi::Count;
using mpi::Word;

struct RequestState {
  bool complete = false;
  int source = 0;
  int tag = 0;
  Count bytes = 0;
  int error = 0;
};
using RequestPointer = std::shared_ptr<RequestState>;

struct Message {
  int source;
  int tag;
  const void* data;  // of the sender while it waits, of `copy` when it was eager
  std::size_t bytes;
  std::vector<std::byte> copy;
  RequestPointer sender;
};

struct PostedReceive {
  int source;
  int tag;
  void* data;
  std::size_t capacity;
  RequestPointer request;
};

struct Mailbox {
  std::deque<Message> unexpected;  // in order of arrival
  std::deque<PostedReceive> posted;
};

// What one rank brings to a collective. The members used depend on the function.
struct Part {
  const void* send = nullptr;
  void* receive = nullptr;
  Count send_count = 0;
  Count receive_count = 0;
  std::vector<Count> send_counts, send_offsets;        // in elements, a rank each
  std::vector<Count> receive_counts, receive_offsets;  // in elements, a rank each
  Word send_type = 0;
  Word receive_type = 0;
  Word op = 0;
  int root = 0;
  int color = 0;
  int key = 0;
};

// The nth nonblocking collective of every member: all leave their part and go on.
struct Started {
  std::string function;
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<RequestPointer> requests;
  std::size_t arrived = 0;
};

struct Communicator {
  std::vector<int> members;  // ranks of the world
  std::vector<Mailbox> mailboxes;
  std::vector<std::map<int, void*>> attributes;

  std::string collective;  // in progress
  std::vector<Part*> parts;
  std::size_t arrived = 0;
  std::uint64_t generation = 0;
  int result = 0;
  std::vector<std::uint64_t> started;        // by each member
  std::map<std::uint64_t, Started> pending;  // by their number
  std::size_t freed = 0;                     // by so many members, where none waits for the others

  explicit Communicator(std::vector<int> ranks);
  int member(int world_rank) const;  // -1 if it is none
};
using CommunicatorPointer = std::shared_ptr<Communicator>;

struct World {
  RunOptions options;
  int ranks = 0;
  CommunicatorPointer all;
  std::vector<CommunicatorPointer> self;
  std::map<Word, CommunicatorPointer> communicators;
  std::map<Word, RequestPointer> requests;
  std::map<Word, std::size_t> derived_types;  // bytes
  Word next_handle = 0x1000;                  // above every predefined handle

  // Blocking: `live` threads have a rank, `blocked` of them wait for an epoch to come.
  std::condition_variable changes;
  std::uint64_t epoch = 0;
  std::size_t live = 0;
  std::size_t blocked = 0;
  std::vector<std::size_t> pending;  // identities asked for and not yet adopted, a rank each

  bool stopped = false;
  std::string reason;
  int stopped_code = 0;
  bool judged_by_test = false;  // stopped by an assertion: GoogleTest has the verdict
  std::exception_ptr first_error;
  std::vector<std::string> errors;  // texts of the codes from first_text_code on

  int error(const std::string& text);  // a code for MPI_Error_string
  void changed();                      // something a blocked thread may wait for
  void stop(const std::string& why);   // all blocked calls fail from now on
  void stop_if_all_blocked();          // a deadlock
  CommunicatorPointer communicator(Word, int rank) const;  // null if it is none
};
inline constexpr int first_text_code = 1000;

// A call in progress: the lock on the world, and whose call it is.
struct Here {
  World& world;
  std::unique_lock<std::mutex>& lock;
  int rank;

  // Waits until done() or the run is stopped; done is evaluated under the lock.
  template <class Done>
  int block(const Done& done) {
    while (!done()) {
      if (world.stopped) return world.stopped_code;
      ++world.blocked;
      world.stop_if_all_blocked();
      if (world.stopped) continue;
      const std::uint64_t seen = world.epoch;
      world.changes.wait(lock, [&] { return world.epoch != seen; });
    }
    return 0;
  }
};

// Runs work(here) under the lock with the checks every call needs first.
int in_call(const char* function, const std::function<int(Here&)>& work);
// The same for calls on a communicator: work(here, communicator, member).
int on_communicator(const char* function, Word comm,
                    const std::function<int(Here&, const CommunicatorPointer&, int)>& work);
Word keep(World&, const RequestPointer&);  // a handle for it
// All members arrive with their part, the last one executes. The others wait for it, but in the
// nonblocking form of a function.
using Execute = std::function<int(World&, Communicator&, std::vector<Part*>&)>;
int collective(const char* function, Word comm, Part& part, const Execute& execute);
// In a nonblocking call this is where its request goes; in a blocking one it is null.
Word* request_wanted();
int start_collective(const char* function, Word comm, const Part& part, const Execute& execute,
                     Word* request);

std::size_t type_bytes(const World&, Word type);  // 0 for an unknown type
const mpi::Abi& abi();
// into = from op into, elementwise; false if the pair is not known here.
int unknown_operation(World&);  // the code for it
bool combine(Word op, Word type, const void* from, void* into, std::size_t count);

void fill_communicators(mpi::Functions&);
void fill_messages(mpi::Functions&);
void fill_collectives(mpi::Functions&);
void fill_types(mpi::Functions&);
void fill_large_messages(mpi::Functions&);  // the MPI_*_c functions
void fill_large_collectives(mpi::Functions&);
void fill_nonblocking_collectives(mpi::Functions&);
void fill_large_nonblocking_collectives(mpi::Functions&);
void fill_large_types(mpi::Functions&);
void delete_attributes(World&, std::unique_lock<std::mutex>&, Word handle,
                       const CommunicatorPointer&, int member);

}  // namespace ropewalk::test
