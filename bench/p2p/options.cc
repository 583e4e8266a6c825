// Options of the benchmark of messages between two ranks; see options.hpp.
#include "p2p/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t largest = std::size_t{1} << 30;
constexpr std::size_t largest_latency = std::size_t{4} << 20;  // by default, as OSU's
constexpr std::size_t largest_rate = 4096;                     // by default
constexpr std::size_t most_hot_bytes = std::size_t{256} << 20;
constexpr std::size_t most_apart_bytes = std::size_t{4} << 20;
constexpr std::size_t cache_line = 64;
constexpr int osu_window = 64;
constexpr int rate_window = 8;
constexpr int longest_window = 4096;
constexpr Mechanism forcible[] = {Mechanism::slots, Mechanism::receiver, Mechanism::sender,
                                  Mechanism::both,  Mechanism::threaded, Mechanism::pipeline};

const char* const about =
    "Ranks 2k and 2k + 1 are a pair, and all pairs send at once; two ranks are one pair.\n"
    "Messages go through the plain MPI and through a ropewalk::Channel, in turn, by the same\n"
    "processes and the same buffers. The modes are those of OSU's benchmarks:\n"
    "  latency        half of a ping-pong                           osu_latency\n"
    "  bandwidth      a window of nonblocking sends, then an answer osu_bw, osu_mbw_mr\n"
    "  bidirectional  such a window each way at once                osu_bibw\n"
    "  rate           bandwidth with windows of 8 messages: messages a second\n"
    "Columns:\n"
    "  us        of one message, median of the rounds; bidirectional: of one each way\n"
    "  ratio     the plain MPI's time over ropewalk's; quartiles of it within each round\n"
    "  limit     both ranks copy half of the same bytes, buffer to buffer, without any flag; for\n"
    "            latency after the way of one cache line, which is all up to 64 bytes\n"
    "  path      the mechanism that ropewalk has chosen\n"
    "  / best    with --mechanism: the choice's time over that of the fastest mechanism\n"
    "Into rewritten buffers the sender writes each message anew before it sends it, and the\n"
    "receiver reads and checks it; neither is part of the time. Hot messages are checked between\n"
    "the rounds, those above 1 MiB after the first and the last one.\n"
    "Examples:\n"
    "  ropewalk bench p2p --quick\n"
    "  ropewalk bench p2p --mode latency --sizes 0,8,64,1K --buffers hot\n"
    "  ropewalk bench p2p --mechanism all --memory arena,private --json p2p.json\n"
    "  ropewalk bench p2p -n 8 --mode bandwidth,rate\n"
    "  ropewalk bench p2p --against mpich,openmpi,intel --mode latency";

void check_sizes(P2pOptions& options) {
  if (options.common.quick && !options.sizes_given) options.sizes = "8,1K,16K,256K,4M";
  for (const std::string& word : split(options.sizes, ',')) {
    options.size_list.push_back(word == "0" ? 0 : bytes("--sizes", word));
  }
  for (const std::size_t size : options.size_list) {
    if (size <= largest) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--sizes: {} bytes, expected up to 1G; write for example --sizes "
                            "0,8,1K,64K,4M",
                            size));
  }
}

void check_mechanisms(P2pOptions& options) {
  if (options.mechanisms.empty()) return;
  std::vector<std::string> known = {"all"};
  for (const Mechanism each : forcible) known.emplace_back(name(each));
  const auto asked = words("--mechanism", options.mechanisms, known);
  const auto is_asked = [&](const std::string& word) {
    return std::ranges::count(asked, word) > 0;
  };
  if (is_asked(name(Mechanism::threaded)) && options.threads == 1) {
    throw Error(ErrorCode::argument,
                "--mechanism: threaded, with one thread a rank; write --threads 2 as well");
  }
  for (const Mechanism each : forcible) {
    if (each == Mechanism::threaded && options.threads == 1) continue;
    if (is_asked("all") || is_asked(name(each))) options.mechanism_list.push_back(each);
  }
}

int window(const P2pOptions& options, Mode mode, std::size_t most) {
  if (mode == Mode::latency) return 1;
  const int usual = mode == Mode::rate ? rate_window : osu_window;
  const int wanted = options.window > 0 ? options.window : usual;
  return static_cast<int>(std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(wanted)));
}

}  // namespace

const std::vector<std::string>& mode_names() {
  static const std::vector<std::string> names = {"latency", "bandwidth", "bidirectional", "rate"};
  return names;
}
const std::string& name(Mode mode) { return mode_names()[static_cast<std::size_t>(mode)]; }

void describe(CLI::App& app, P2pOptions& options) {
  app.add_option("--mode", options.modes, "What to measure: see below")
      ->type_name("NAME,...")
      ->each([&](const std::string&) { options.modes_given = true; })
      ->capture_default_str();
  app.add_option("--sizes", options.sizes,
                 "Bytes of a message, 0 to 1G. The default stops at 4M for latency and at 4K for "
                 "rate")
      ->type_name("BYTES,...")
      ->each([&](const std::string&) { options.sizes_given = true; })
      ->capture_default_str();
  app.add_option("--buffers", options.buffers,
                 "hot: the same data every time, as OSU; rewritten: the sender writes each message "
                 "anew, and the receiver reads it")
      ->type_name("NAME,...")
      ->each([&](const std::string&) { options.buffers_given = true; })
      ->capture_default_str();
  app.add_option("--memory", options.memory,
                 "arena: buffers that the other rank maps; private: memory of libc; device: memory "
                 "of a CUDA device")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--mechanism", options.mechanisms,
                 "Mechanisms to force, beside the one that ropewalk chooses: slots, receiver, "
                 "sender, both, threaded, pipeline, or all; each where it carries such messages")
      ->type_name("NAME,...");
  app.add_option("--threads", options.threads,
                 "Threads of each rank that copy large messages, the caller among them; for ranks "
                 "that leave cores idle")
      ->type_name("N")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  app.add_option("--window", options.window,
                 "Messages under way at once; default: 64, for rate 8. Fewer where they would be "
                 "more than 256 MiB, or of rewritten ones more than 4 MiB")
      ->type_name("N")
      ->check(whole_number(1, longest_window));
  app.add_option("--iterations", options.iterations,
                 "Ping-pongs or windows a sample; default: as many as last a few milliseconds")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(P2pOptions& options) {
  const bool quick = options.common.quick;
  if (quick && !options.modes_given) options.modes = "latency,bandwidth";
  if (quick && !options.buffers_given) options.buffers = "hot";
  check_sizes(options);
  for (const std::string& word : words("--mode", options.modes, mode_names())) {
    const auto at = std::ranges::find(mode_names(), word) - mode_names().begin();
    options.mode_list.push_back(static_cast<Mode>(at));
  }
  options.buffer_list = words("--buffers", options.buffers, {"hot", "rewritten"});
  options.memory_list = words("--memory", options.memory, {"arena", "private", "device"});
  options.devices = std::erase(options.memory_list, "device") > 0;
  check_mechanisms(options);
  return false;
}

std::vector<std::size_t> sizes_of(const P2pOptions& options, Mode mode) {
  std::vector<std::size_t> sizes = options.size_list;
  if (options.sizes_given) return sizes;
  std::erase_if(sizes, [&](std::size_t bytes) {
    switch (mode) {
      case Mode::latency:
        return bytes > largest_latency;
      case Mode::rate:
        return bytes > largest_rate;
      default:
        return bytes == 0;  // no bytes, no bandwidth
    }
  });
  return sizes;
}

std::vector<P2pCase> cases(const P2pOptions& options) {
  std::vector<P2pCase> all;
  for (const std::string& memory : options.memory_list) {
    for (const std::string& buffers : options.buffer_list) {
      for (const Mode mode : options.mode_list) {
        for (const std::size_t bytes : sizes_of(options, mode)) {
          all.push_back({memory, buffers, mode, bytes});
        }
      }
    }
  }
  return all;
}

int hot_window(const P2pOptions& options, Mode mode, std::size_t bytes) {
  return window(options, mode, most_hot_bytes / std::max<std::size_t>(bytes, 1));
}

int apart_window(const P2pOptions& options, Mode mode, std::size_t bytes) {
  return window(options, mode, most_apart_bytes / std::max(apart_stride(bytes), cache_line));
}

std::size_t apart_stride(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

std::size_t buffer_bytes(const P2pOptions& options) {
  std::size_t most = cache_line;
  for (const P2pCase& one : cases(options)) {
    const auto window = static_cast<std::size_t>(apart_window(options, one.mode, one.bytes));
    most = std::max(most, window * apart_stride(one.bytes));
  }
  return most;
}

}  // namespace ropewalk::bench
