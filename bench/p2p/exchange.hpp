// What the two ranks of a pair do in each mode, and how it is timed. `Messages` is anything that
// sends, receives, starts and waits: a channel, or the plain MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/timed_threads.hpp"
#include "p2p/options.hpp"

namespace ropewalk::bench {

// One rank's part of a sample.
struct P2pRun {
  Mode mode = Mode::latency;
  std::size_t bytes = 0;
  int window = 1;
  int iterations = 1;  // ping-pongs, or windows
  int rank = 0;
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
  // Every message of a window in memory of its own, written by its sender before the clock is
  // started and checked after it was stopped; else all in the same memory, which nobody touches.
  bool apart = false;
  std::uint64_t serial = 0;  // tells what is written into apart buffers from what was there before

  bool leads() const { return rank % 2 == 0; }
  int peer() const { return rank ^ 1; }
  bool is_one_way() const { return mode == Mode::bandwidth || mode == Mode::rate; }
  bool sends() const { return !is_one_way() || leads(); }
  bool receives() const { return !is_one_way() || !leads(); }
  // Returns the messages one after the other in an iteration.
  int messages() const { return mode == Mode::latency ? 2 : window; }
  std::size_t offset(int message) const {
    return apart ? static_cast<std::size_t>(message) * apart_stride(bytes) : 0;
  }
};

// Microseconds of all iterations on this rank; 0 where it is the other one that holds the clock.
// `wrong`: the first byte that came wrong here; empty where all came right, or was not looked at.
struct P2pSample {
  double us = 0;
  std::string wrong;
};

template <class Messages>
void start_sends(Messages& messages, const P2pRun& run) {
  for (int i = 0; i < run.window; ++i) {
    messages.start_send(run.send + run.offset(i), run.bytes, run.peer());
  }
}

template <class Messages>
void start_receives(Messages& messages, const P2pRun& run) {
  for (int i = 0; i < run.window; ++i) {
    messages.start_receive(run.receive + run.offset(i), run.bytes, run.peer());
  }
}

template <class Messages>
void ping_pong(Messages& messages, const P2pRun& run) {
  if (run.leads()) messages.send(run.send, run.bytes, run.peer());
  messages.receive(run.receive, run.bytes, run.peer());
  if (!run.leads()) messages.send(run.send, run.bytes, run.peer());
}

// The answer says that all has come, as OSU's of 4 bytes.
template <class Messages>
void window_one_way(Messages& messages, const P2pRun& run) {
  std::byte answer[4] = {};
  if (run.leads()) {
    start_sends(messages, run);
    messages.wait_all();
    messages.receive(answer, sizeof answer, run.peer());
  } else {
    start_receives(messages, run);
    messages.wait_all();
    messages.send(answer, sizeof answer, run.peer());
  }
}

template <class Messages>
void window_both_ways(Messages& messages, const P2pRun& run) {
  start_receives(messages, run);
  start_sends(messages, run);
  messages.wait_all();
}

template <class Messages>
void exchange(Messages& messages, const P2pRun& run) {
  switch (run.mode) {
    case Mode::latency:
      return ping_pong(messages, run);
    case Mode::bidirectional:
      return window_both_ways(messages, run);
    case Mode::bandwidth:
    case Mode::rate:
      return window_one_way(messages, run);
  }
}

// Writes all that this rank sends in iteration `iteration`.
void write_messages(const P2pRun& run, int iteration);
// Reads all that it has received there: what is wrong with it, empty where nothing is.
std::string check_messages(const P2pRun& run, int iteration);

// Runs `iteration` run.iterations times. Where buffers are apart, `meet` brings the two ranks of
// the pair together before and after each iteration, and the time is that of the iterations alone.
template <class Meet, class Iteration>
P2pSample timed(const P2pRun& run, Meet meet, Iteration iteration) {
  P2pSample sample;
  if (!run.apart) {
    const double begin = now_us();
    for (int i = 0; i < run.iterations; ++i) iteration();
    sample.us = now_us() - begin;
    return sample;
  }
  for (int i = 0; i < run.iterations; ++i) {
    write_messages(run, i);
    meet();
    const double begin = now_us();
    iteration();
    sample.us += now_us() - begin;
    meet();
    if (sample.wrong.empty()) sample.wrong = check_messages(run, i);
  }
  sample.us = std::max(0.0, sample.us - run.iterations * clock_reading_us());
  return sample;
}

}  // namespace ropewalk::bench
