#include "messages/random_windows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "ropewalk/window.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;
using Bytes = std::vector<std::byte>;

constexpr std::size_t words = 64;  // at the beginning of each part, for atomic operations
constexpr std::size_t word_bytes = words * sizeof(std::uint64_t);
constexpr auto word = ElementType::uint64;

std::size_t below(Random& random, std::size_t end) { return random() % end; }

// Every rank draws what all of them do, each from a stream of its own.
Random stream(std::uint64_t seed, int round, int rank) {
  std::seed_seq mixed{seed, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(rank)};
  return Random(mixed);
}

class Program {
 public:
  Program(Communicator communicator, std::uint64_t seed, std::size_t bytes)
      : seed_(seed),
        bytes_(bytes),
        window_(communicator, word_bytes + bytes),
        expected_(static_cast<std::size_t>(window_.size()), Bytes(word_bytes + bytes)) {}

  std::string run(int rounds) {
    constexpr void (Program::*kinds[])(int) = {&Program::puts, &Program::accumulates,
                                               &Program::counter, &Program::exchanges,
                                               &Program::signals};
    // All rounds, whatever was wrong: the others would wait in vain.
    for (int round = 0; round < rounds; ++round) {
      Random common = stream(seed_, round, ranks() + 1);
      const std::size_t kind = below(common, std::size(kinds));
      (this->*kinds[kind])(round);
      window_.fence();
      compare("kind " + std::to_string(kind) + ", round " + std::to_string(round));
      window_.fence();
    }
    return problem_;
  }

 private:
  int ranks() const { return window_.size(); }
  int me() const { return window_.rank(); }
  int beside(int rank, int steps) const { return (rank + steps) % ranks(); }
  std::byte* at(int rank, std::size_t offset) {
    return expected_[static_cast<std::size_t>(rank)].data() + offset;
  }
  std::uint64_t word_at(int rank, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, at(rank, index * sizeof value), sizeof value);
    return value;
  }
  void set_word(int rank, std::size_t index, std::uint64_t value) {
    std::memcpy(at(rank, index * sizeof value), &value, sizeof value);
  }
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = "rank " + std::to_string(me()) + ": " + what;
  }

  void compare(const std::string& when) {
    if (std::memcmp(window_.data(), at(me(), 0), word_bytes + bytes_) != 0) {
      fail("its memory is wrong after " + when);
    }
    Random random = stream(seed_ + 1, static_cast<int>(below(own_, 1 << 20)), me());
    const int from = static_cast<int>(below(random, static_cast<std::size_t>(ranks())));
    const std::size_t offset = below(random, bytes_);
    Bytes got(below(random, word_bytes + bytes_ - offset));
    window_.get(got.data(), got.size(), from, offset);
    if (!std::equal(got.begin(), got.end(), at(from, offset))) {
      fail("what it gets of rank " + std::to_string(from) + " is wrong after " + when);
    }
  }

  // Each rank has a strip of every part for itself, and puts there again and again.
  void puts(int round) {
    const std::size_t strip = bytes_ / static_cast<std::size_t>(ranks());
    for (int rank = 0; rank < ranks(); ++rank) {
      Random random = stream(seed_, round, rank);
      const std::size_t begin = word_bytes + static_cast<std::size_t>(rank) * strip;
      for (std::size_t turn = below(random, 100); turn > 0; --turn) {
        const int to = static_cast<int>(below(random, static_cast<std::size_t>(ranks())));
        const std::size_t offset = below(random, strip);
        const bool small = below(random, 4) != 0;
        const std::size_t most = strip - offset;
        const Bytes data(below(random, small ? std::min<std::size_t>(most, 100) + 1 : most),
                         static_cast<std::byte>(random()));
        std::copy(data.begin(), data.end(), at(to, begin + offset));
        if (rank == me()) window_.put(data.data(), data.size(), to, begin + offset);
      }
    }
  }

  // All ranks add to the same words.
  void accumulates(int round) {
    for (int rank = 0; rank < ranks(); ++rank) {
      Random random = stream(seed_, round, rank);
      for (std::size_t turn = below(random, 40); turn > 0; --turn) {
        const int to = static_cast<int>(below(random, static_cast<std::size_t>(ranks())));
        const std::size_t first = below(random, words);
        std::vector<std::uint64_t> operands(below(random, words - first + 1));
        for (std::size_t i = 0; i < operands.size(); ++i) {
          operands[i] = random();
          set_word(to, first + i, word_at(to, first + i) + operands[i]);
        }
        if (rank != me()) continue;
        window_.accumulate(operands.data(), operands.size(), word, ReductionOp::sum, to,
                           first * sizeof(std::uint64_t));
      }
    }
  }

  // No number of a counter is drawn twice: each adds to another word.
  void counter(int round) {
    Random common = stream(seed_, round, ranks());
    const int of = static_cast<int>(below(common, static_cast<std::size_t>(ranks())));
    const int to = static_cast<int>(below(common, static_cast<std::size_t>(ranks())));
    const std::uint64_t one = 1;
    const std::uint64_t start = word_at(of, 0);
    const auto turns = static_cast<std::size_t>(words - 1) / static_cast<std::size_t>(ranks());
    for (std::size_t turn = 0; turn < turns; ++turn) {
      std::uint64_t drawn = 0;
      window_.fetch_and_op(&one, &drawn, word, ReductionOp::sum, of, 0);
      const std::uint64_t index = 1 + (drawn - start);
      if (index >= words) return fail("the counter gave " + std::to_string(drawn));
      window_.accumulate(&one, 1, word, ReductionOp::sum, to, index * sizeof index);
    }
    const std::size_t all = turns * static_cast<std::size_t>(ranks());
    set_word(of, 0, start + all);
    for (std::size_t i = 1; i <= all; ++i) set_word(to, i, word_at(to, i) + 1);
  }

  // A counter by compare and swap alone.
  void exchanges(int round) {
    Random common = stream(seed_, round, ranks());
    const int of = static_cast<int>(below(common, static_cast<std::size_t>(ranks())));
    const std::size_t offset = below(common, words) * sizeof(std::uint64_t);
    constexpr std::uint64_t turns = 10;
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      std::uint64_t seen = 0;
      window_.fetch_and_op(nullptr, &seen, word, ReductionOp::no_op, of, offset);
      for (;;) {
        const std::uint64_t next = seen + 1;
        std::uint64_t was = 0;
        window_.compare_and_swap(&seen, &next, &was, word, of, offset);
        if (was == seen) break;
        seen = was;
      }
    }
    const std::size_t index = offset / sizeof(std::uint64_t);
    set_word(of, index, word_at(of, index) + turns * static_cast<std::uint64_t>(ranks()));
  }

  // A rank puts into the memory of the next one and signals the one after that, which reads there.
  void signals(int round) {
    Random common = stream(seed_, round, ranks());
    const std::size_t bytes = 1 + below(common, bytes_);
    const auto data_of = [&](int rank) {
      return Bytes(bytes, static_cast<std::byte>(rank + round + 1));
    };
    const Bytes mine = data_of(me());
    // What is put first keeps a thread busy that answers for the next rank.
    const Bytes other(std::min<std::size_t>(bytes, 8000));
    for (int turn = 0; turn < 50; ++turn) {
      window_.put(other.data(), other.size(), beside(me(), 1), word_bytes);
    }
    window_.put(mine.data(), bytes, beside(me(), 1), word_bytes);
    window_.signal(beside(me(), 2));
    window_.wait_signal(++signals_);
    Bytes got(bytes);
    window_.get(got.data(), bytes, beside(me(), ranks() - 1), word_bytes);
    const int from = beside(me(), 2 * ranks() - 2);
    if (got != data_of(from)) fail("it was signalled too early");
    for (int rank = 0; rank < ranks(); ++rank) {
      const Bytes data = data_of(rank);
      std::copy(data.begin(), data.end(), at(beside(rank, 1), word_bytes));
    }
  }

  std::uint64_t seed_;
  std::size_t bytes_;
  Window window_;
  std::vector<Bytes> expected_;
  std::uint64_t signals_ = 0;
  Random own_{7};
  std::string problem_;
};

}  // namespace

std::string random_windows(Communicator communicator, std::uint64_t seed, int rounds) {
  Random random(seed);
  const std::size_t bytes = below(random, 2) == 0 ? 1000 : 200'000;
  Program program(communicator, seed, bytes);
  return program.run(rounds);
}

}  // namespace ropewalk::test
