// Contents of messages; see exchange.hpp.
#include "p2p/exchange.hpp"

#include <fmt/format.h>

#include "common/parse.hpp"
#include "common/pattern.hpp"

namespace ropewalk::bench {
namespace {

std::uint64_t key(const P2pRun& run, int sender, int message, int iteration) {
  const auto serial = run.serial + static_cast<std::uint64_t>(iteration);
  return pattern_key(static_cast<std::uint64_t>(sender), 0, static_cast<std::uint64_t>(message),
                     serial);
}

}  // namespace

void write_messages(const P2pRun& run, int iteration) {
  if (!run.sends()) return;
  for (int i = 0; i < run.window; ++i) {
    fill_pattern(run.send + run.offset(i), run.bytes, key(run, run.rank, i, iteration));
  }
}

std::string check_messages(const P2pRun& run, int iteration) {
  if (!run.receives()) return "";
  for (int i = 0; i < run.window; ++i) {
    const std::byte* const data = run.receive + run.offset(i);
    const std::size_t at = check_pattern(data, run.bytes, key(run, run.peer(), i, iteration));
    if (at == run.bytes) continue;
    return fmt::format("byte {} of message {} of a window of {}, {} of {} from rank {} to rank {}",
                       at, i, run.window, name(run.mode), size_text(run.bytes), run.peer(),
                       run.rank);
  }
  return "";
}

}  // namespace ropewalk::bench
