// Private memory of the ranks of a team, attached at first use: the part of a team that uses the
// registration cache of the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "channel/registration_cache.hpp"
#include "node/team.hpp"

namespace ropewalk::channel {

// Returns the cache of this process: XPMEM behind it, ROPEWALK_REGISTRATIONS entries. Never
// destroyed: communicators may be freed after static destructors have run.
RegistrationCache& process_cache();
// Puts another cache in its place for communicators that the calling thread makes, null for the
// real one; returns what was there. For tests, where a thread is a rank.
RegistrationCache* replace_process_cache(RegistrationCache*) noexcept;

// Used by one thread at a time, as its team. Pins what a call uses until the end of the call.
class Attachments {
 public:
  // Collective over the team. Returns null on every rank unless every rank can attach the memory of
  // all others, tried on a word of each; `reason` then says why not. Throws Error(argument) on
  // every rank when the environment of one is malformed.
  static std::unique_ptr<Attachments> create(node::Team& team, std::string& reason);
  ~Attachments();  // after the team's, whose barrier says that nobody looks at failures any more
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // `bytes` > 0 at `address` of another rank's process, as seen here until the end of the call;
  // null where the kernel refuses.
  std::byte* attach(int peer, std::uint64_t address, std::size_t bytes);
  void end_call() noexcept;

 private:
  struct Facts;
  Attachments();
  bool open(const std::vector<Facts>& facts);
  bool probe(int peer, const Facts& facts);

  RegistrationCache& cache_;
  std::vector<Segment> segments_;  // by rank, all opened
  std::vector<RegistrationCache::Entry*> pinned_;
};

}  // namespace ropewalk::channel
