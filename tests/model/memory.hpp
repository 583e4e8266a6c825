// Shared memory as the C++ memory model has it: which values a load may return, who knows what, and
// which plain accesses race.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace ropewalk::model {

// For each rank, the clock counts how many of its releases are known of, plus one; 0 means nothing
// but the set-up.
using Clocks = std::array<std::uint32_t, max_ranks>;

class Memory {
 public:
  Memory();
  void reset(Describe describe = nullptr);  // for the next schedule

  // ---- arenas
  std::byte* arena(int rank) const noexcept;
  std::byte* allocate(int rank, std::size_t bytes, std::size_t alignment);
  // This is like a write of the whole block. Returns null, or what is wrong: the text lasts until
  // the next call.
  const char* deallocate(int rank, const void* address);

  // ---- plain accesses, of a rank or (-1) the set-up; the same result
  const char* read(int rank, const void* address, std::size_t bytes);
  const char* write(int rank, const void* address, std::size_t bytes);

  // ---- flags
  // By a rank or (-1) the set-up; the same result as of a write.
  const char* create(int rank, const void* flag);
  bool has_one_writer(const void* flag) { return location(flag).one_writer; }
  // Returns null, or says that the rank may not know yet that the flag was made.
  const char* check_made(int rank, const void* flag);
  void name(const void* flag, const char* name);
  const char* name_of(const void* flag);
  int owner_of(const void* flag) const noexcept;
  std::size_t newest(const void* flag);
  // Returns the oldest of the values that a load of the rank may return.
  std::size_t oldest_readable(int rank, const void* flag);
  std::uint64_t peek(const void* flag, std::size_t index);
  std::uint64_t load(int rank, const void* flag, std::size_t index, bool acquire);
  void store(int rank, const void* flag, std::uint64_t value, bool release);
  // A store right behind the newest value, whose release it passes on.
  void exchange(int rank, const void* flag, std::uint64_t value, bool release);

  // ---- news, for ranks that look again and again
  // Whether the value is another than the last one that was noted for the rank, which it now is.
  bool note_seen(int rank, const void* flag, std::size_t index);
  bool has_news(int rank, const void* flag);
  // From now on the rank sees a newer value than the one noted.
  void see_news(int rank, const void* flag);
  // Hashes what was noted for the rank, and how often its own flags were stored to.
  std::uint64_t hash_of_seen(int rank) const;

  // What ranks may still read, and what they know, as numbers: with the places the ranks have got
  // to, this decides what can happen next.
  void describe_state(int ranks, std::vector<std::uint64_t>& state) const;

 private:
  struct Message {
    std::uint64_t value = 0;
    Clocks view{};            // what who acquires it learns
    std::uint32_t clock = 0;  // of the writer
    int writer = -1;          // the set-up
  };
  struct Location {
    const char* name = "flag";
    int owner = 0;
    bool one_writer = true;
    std::size_t word = 0;  // where it is
    std::vector<Message> messages;
    std::array<std::size_t, max_ranks> seen{};  // the newest that each rank has read
    std::array<std::size_t, max_ranks> noted{};
  };
  struct Word {             // eight bytes of an arena
    std::uint32_t era = 0;  // the schedule it was last touched in
    int location = -1;
    int writer = -1;
    std::uint32_t written = 0;
    Clocks read{};
    bool filled = false;
    bool freed = false;
  };
  struct Block {
    const std::byte* begin;
    std::size_t bytes;
  };

  bool locate(const void* address, std::size_t bytes, std::size_t& first, std::size_t& end) const;
  Word& word(std::size_t index);
  Location& location(const void* flag);
  std::size_t oldest_readable(int rank, const Location& location) const;
  const char* problem(const char* verb, std::size_t word, const std::string& why);
  const char* check_write(int rank, std::size_t index, const char* verb);

  FlagFacts facts_of(const void* flag) const;
  std::uint64_t hash_of_accesses(const Clocks& known_to_all) const;

  Describe describe_ = nullptr;
  std::uint32_t era_ = 0;
  std::vector<std::byte> memory_;
  std::byte* base_;
  std::vector<Word> words_;
  std::vector<std::size_t> touched_;  // words of this schedule
  std::vector<Location> locations_;
  std::size_t used_locations_ = 0;
  std::array<std::size_t, max_ranks> allocated_{};
  std::vector<Block> blocks_;
  std::array<Clocks, max_ranks> known_{};
  std::string problem_;
};

}  // namespace ropewalk::model
