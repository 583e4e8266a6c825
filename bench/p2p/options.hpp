// The command line of ropewalk-bench-p2p, and the cases that it asks for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "ropewalk/channel.hpp"

namespace ropewalk::bench {

// What the two ranks of a pair do, as in OSU's benchmarks.
enum class Mode {
  latency,        // a message there and one back, in turn (osu_latency)
  bandwidth,      // a window of messages one way, then a short answer (osu_bw)
  bidirectional,  // a window of messages each way at once (osu_bibw)
  rate            // as bandwidth, with short windows: how many messages a second
};
const std::vector<std::string>& mode_names();  // in the order of Mode
const std::string& name(Mode);

struct P2pOptions {
  CommonOptions common;
  // The options as they were written.
  std::string modes = "latency,bandwidth,bidirectional,rate";
  std::string sizes = "0,1,8,64,512,4K,16K,64K,256K,1M,4M,16M,64M";
  std::string buffers = "hot,rewritten";
  std::string memory = "arena";
  std::string mechanisms;
  bool modes_given = false;
  bool sizes_given = false;
  bool buffers_given = false;
  int threads = 1;     // of each rank that copy large messages
  int window = 0;      // 0: 64, for rate 8
  int iterations = 0;  // 0: so many that a sample lasts some milliseconds

  // What check() has made of them.
  std::vector<Mode> mode_list;
  std::vector<std::size_t> size_list;
  std::vector<std::string> buffer_list;
  std::vector<std::string> memory_list;
  bool devices = false;                   // memory of devices, which has cases of its own
  std::vector<Mechanism> mechanism_list;  // forced, beside the library's choice
};

void describe(CLI::App& app, P2pOptions& options);
// Throws Error(argument). Comm threads are never needed: false.
bool check(P2pOptions& options);
// The sizes to measure a mode at. The default ones are not all good for each mode.
std::vector<std::size_t> sizes_of(const P2pOptions& options, Mode mode);

// What one row is about.
struct P2pCase {
  std::string memory;
  std::string buffers;
  Mode mode = Mode::latency;
  std::size_t bytes = 0;

  bool same_table(const P2pCase& other) const {
    return memory == other.memory && buffers == other.buffers && mode == other.mode;
  }
};
// Returns all rows, those of one table in a row.
std::vector<P2pCase> cases(const P2pOptions& options);

// Returns the messages of a window that need not be apart in memory: at most 256 MiB of them, so
// that one window ends within a fraction of a second.
int hot_window(const P2pOptions& options, Mode mode, std::size_t bytes);
// Returns the messages of a window whose buffers lie one behind the other: at most 4 MiB of them,
// which usual caches of the last level hold.
int apart_window(const P2pOptions& options, Mode mode, std::size_t bytes);
// Returns the distance from one of these buffers to the next: whole cache lines.
std::size_t apart_stride(std::size_t bytes);
// What the longest such window needs: of each rank, for sending and again for receiving.
std::size_t buffer_bytes(const P2pOptions& options);

}  // namespace ropewalk::bench
