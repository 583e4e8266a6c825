// This file makes communicators without MPI. Their ranks find each other through a key-value store
// that the program has, as the processes of torchrun have PyTorch's. The ranks' data goes through
// shared memory inside a node, and over TCP between nodes.
#pragma once

#include <memory>
#include <string>

#include "ropewalk/communicator.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// All ranks of a communicator write to this store and read from it. Calls come from any thread.
// What they throw becomes an Error(mpi). Where get() threw it, the error names the rank that was
// waited for.
class RW_EXPORT KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until some rank has set the key, and throws where that takes too long.
  virtual std::string get(const std::string& key) = 0;
  virtual void remove(const std::string& key) = 0;
};

// The constructor is collective over the `size` ranks that share the store. What is made from
// communicator() is made through the store. A second communicator needs a store with other keys.
//
// Ranks of several nodes find the addresses at which they reach each other by trying them: those
// of the fastest interfaces first, or of those that ROPEWALK_INTERFACE names. Their connections are
// not encrypted; only who knows the random numbers that the ranks tell each other through the store
// can take part.
//
// The first communicator takes the place of an MPI in this process, for good. The constructor
// throws Error(unsupported) where the process uses an MPI already, and, on every rank,
// Error(system) where one cannot be reached, and Error(argument) where ROPEWALK_INTERFACE names no
// interface.
class RW_EXPORT StoreCommunicator {
 public:
  // Over several nodes, a rank that waits for the others while a communicator is made gives up
  // after so many seconds; 0: never. On one node, get() decides.
  StoreCommunicator(std::shared_ptr<KeyValueStore> store, int rank, int size, int timeout_s = 0);
  ~StoreCommunicator();
  StoreCommunicator(const StoreCommunicator&) = delete;
  StoreCommunicator& operator=(const StoreCommunicator&) = delete;

  Communicator communicator() const noexcept { return made_; }

 private:
  Communicator made_;
};

}  // namespace ropewalk
