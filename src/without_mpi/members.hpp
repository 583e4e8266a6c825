// Communicators without an MPI. A member is a communicator as one of its ranks sees it; the table
// has those of this process under the handles that the rooms above use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/store_communicator.hpp"
#include "without_mpi/endpoint.hpp"
#include "without_mpi/mailbox.hpp"

namespace ropewalk::without_mpi {

using mpi::Word;

// The facts of the MPI-5 standard ABI, whose handles these communicators have.
const mpi::Abi& abi();

class Member {
 public:
  Member(std::shared_ptr<KeyValueStore> store, std::string prefix, std::vector<int> ranks, int rank)
      : store_(std::move(store)),
        prefix_(std::move(prefix)),
        ranks_(std::move(ranks)),
        rank_(rank) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }

  // Collective. Brings this rank's own text, waits for the others', and returns all of them by
  // rank. Everything that the ranks do together but for messages goes through here: by messages,
  // once the ranks have connections, and else through the store.
  std::vector<std::string> share(const std::string& own);

  // Makes a communicator of some of the ranks, in the given order; the name tells it apart from
  // others made by the same call.
  std::shared_ptr<Member> derive(const std::string& name, const std::vector<int>& ranks) const;
  std::uint64_t next_number() noexcept { return made_++; }  // the same on all ranks

  // From now on the ranks can send messages to each other. A rank that waits for others in share()
  // gives up after so many seconds; 0: never.
  void open(std::shared_ptr<Endpoint> endpoint, int timeout_s) {
    endpoint_ = std::move(endpoint);
    timeout_s_ = timeout_s;
  }
  // Ends the messages of all communicators of the group, also of those that nobody frees.
  void close_group() noexcept;
  // Throws Error(unsupported) where the ranks have no connections, since they share one node.
  const std::shared_ptr<Mailbox>& mailbox();
  void close() noexcept;

  // ---- attributes, by the number of their key. All threads of the process share MPI_COMM_SELF's.
  void set_attribute(int key, void* value);
  std::optional<void*> attribute(int key);
  std::optional<void*> take_attribute(int key);  // is not set any more
  std::optional<int> any_attribute();            // returns the key of one that is set

 private:
  std::vector<std::string> share_by_store(const std::string& own);
  std::string key(std::uint64_t exchange, int rank) const;
  std::string value_of(std::uint64_t exchange, int rank);

  std::shared_ptr<KeyValueStore> store_;  // null where there is one rank
  std::string prefix_;                    // of its keys, and the name of its messages
  std::vector<int> ranks_;                // of the group
  int rank_;
  std::uint64_t exchanges_ = 0;  // the same on all ranks, and so is the next
  std::uint64_t made_ = 0;       // communicators made from it
  std::shared_ptr<Endpoint> endpoint_;
  int timeout_s_ = 0;
  std::shared_ptr<Mailbox> meetings_;  // for share() alone, made at its first call
  std::mutex mutex_;                   // guards the next two
  std::shared_ptr<Mailbox> mailbox_;
  std::map<int, void*> attributes_;
};
using MemberPointer = std::shared_ptr<Member>;

Word add(MemberPointer);
// MPI_COMM_WORLD is the first group that this thread has made, or this process, and that is still
// there. Throws Error(mpi) where the handle is none.
MemberPointer find(Word comm);
void remove(Word comm);
// For MPI_COMM_WORLD.
void add_group(Word comm);
void remove_group(Word comm);

// Runs work(), and turns what it throws into an MPI error code, whose text last_error() has.
const std::string& last_error() noexcept;
int failed(const char* text) noexcept;
template <class Work>
int as_code(Work work) noexcept {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}
template <class Work>
int on(Word comm, Work work) noexcept {
  return as_code([&] { work(*find(comm)); });
}
void require_bytes(Word type);  // throws where the datatype is not MPI_BYTE

// Each fills its part of the table of MPI's functions.
void fill_communicators(mpi::Functions&);
void fill_collectives(mpi::Functions&);
void fill_messages(mpi::Functions&);

}  // namespace ropewalk::without_mpi
