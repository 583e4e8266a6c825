#include "p2p/devices.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "collectives/shape.hpp"
#include "common/parse.hpp"
#include "common/statistics.hpp"
#include "p2p/ways.hpp"

namespace ropewalk::bench {
namespace {

// The names are those of the driver's library, where cuda.h gives some of them shorter ones.
constexpr const char* library_name = "libcuda.so.1";
constexpr std::size_t largest = std::size_t{16} << 20;  // bytes of a message
constexpr double sample_us = 5000;

void* driver() {
  static void* const found = dlopen(library_name, RTLD_NOW | RTLD_GLOBAL);
  return found;
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  void* const found = driver() == nullptr ? nullptr : dlsym(driver(), name);
  constexpr int not_found = 500;  // CUDA_ERROR_NOT_FOUND
  if (found == nullptr) return not_found;
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

void require(const char* name, int result) {
  if (result == 0) return;
  throw Error(ErrorCode::system,
              fmt::format("{}: CUDA error {}; look what the driver says of it", name, result));
}

std::vector<std::byte> pattern(std::size_t bytes, int rank) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    all[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(rank) + bytes);
  }
  return all;
}

// One channel for all sizes, made when the driver is loaded: a channel looks for it then.
class DeviceMessages {
 public:
  DeviceMessages(const P2pOptions& options, const Ranks& ranks, std::size_t bytes)
      : ranks_(ranks), rounds_(options.common.rounds_or(20, 5)), channel_(ranks.communicator()) {
    ranks.collectively([&] {
      send_.emplace(bytes, ranks.node_rank());
      receive_.emplace(bytes, ranks.node_rank());
    });
  }

  Json row(std::size_t bytes) {
    P2pRun run;
    run.bytes = bytes;
    run.rank = ranks_.rank();
    run.send = send_->data();
    run.receive = receive_->data();
    send_->write(pattern(bytes, ranks_.rank()));
    time_channel(channel_, plain_, run);
    const std::string wrong = ranks_.first_text(what_is_wrong(run));
    const double us = ranks_.max(time_channel(channel_, plain_, run).us);
    run.iterations = iterations_for(us, sample_us);
    std::vector<double> times;
    for (int round = 0; round < rounds_; ++round) {
      ranks_.barrier();
      const double all = ranks_.max(time_channel(channel_, plain_, run).us);
      times.push_back(std::max(all, 0.001) / run.iterations / run.messages());
    }
    return made(run, times, wrong);
  }

 private:
  std::string what_is_wrong(const P2pRun& run) const {
    std::vector<std::byte> found(run.bytes);
    receive_->read(found);
    const std::vector<std::byte> expected = pattern(run.bytes, run.peer());
    const auto at = std::ranges::mismatch(found, expected);
    if (at.in1 == found.end()) return "";
    return fmt::format("rank {}: byte {} of {} in memory of a device", run.rank,
                       at.in1 - found.begin(), run.bytes);
  }

  Json made(const P2pRun& run, const std::vector<double>& times, const std::string& wrong) {
    const auto mine = static_cast<double>(channel_.last_mechanism());
    const double of_receiver = ranks_.gather(std::vector<double>{mine})[1][0];
    const double us = summarize(times).median;
    Json row = {{"bench", "p2p"},
                {"op", "latency"},
                {"bytes", run.bytes},
                {"ranks", ranks_.size()},
                {"pairs", ranks_.size() / 2},
                {"memory", "device"},
                {"buffers", "hot"},
                {"mechanism", "choice"},
                {"time_us", to_json(summarize(times))},
                {"mb_per_s",
                 static_cast<double>(run.bytes * static_cast<std::size_t>(ranks_.size() / 2)) / us},
                {"path", name(static_cast<Mechanism>(of_receiver))},
                {"verified", wrong.empty()}};
    if (!wrong.empty()) row["wrong"] = wrong;
    return row;
  }

  const Ranks& ranks_;
  int rounds_;
  Channel channel_;
  PlainMessages plain_;
  std::optional<DeviceBuffer> send_;
  std::optional<DeviceBuffer> receive_;
};

}  // namespace

std::string DeviceBuffer::missing() {
  int device = 0;
  if (driver() == nullptr || call("cuInit", 0U) != 0) return "no device";
  return call("cuDeviceGet", &device, 0) == 0 ? "" : "no device";
}

DeviceBuffer::DeviceBuffer(std::size_t bytes, int node_rank) {
  int device = 0;
  void* context = nullptr;
  if (call("cuDeviceGet", &device, node_rank) != 0) {  // fewer devices than ranks: they share one
    require("cuDeviceGet", call("cuDeviceGet", &device, 0));
  }
  require("cuDevicePrimaryCtxRetain", call("cuDevicePrimaryCtxRetain", &context, device));
  require("cuCtxPushCurrent", call("cuCtxPushCurrent_v2", context));
  require("cuMemAlloc", call("cuMemAlloc_v2", &address_, std::max<std::size_t>(bytes, 1)));
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) call("cuMemFree_v2", address_);
}

std::byte* DeviceBuffer::data() const noexcept { return reinterpret_cast<std::byte*>(address_); }

void DeviceBuffer::write(std::span<const std::byte> from) {
  if (from.empty()) return;
  const auto source = reinterpret_cast<unsigned long long>(from.data());
  require("cuMemcpy", call("cuMemcpy", address_, source, from.size()));
}

void DeviceBuffer::read(std::span<std::byte> into) const {
  if (into.empty()) return;
  const auto target = reinterpret_cast<unsigned long long>(into.data());
  require("cuMemcpy", call("cuMemcpy", target, address_, into.size()));
}

std::vector<Json> device_rows(const P2pOptions& options, const Ranks& ranks) {
  const std::string missing = ranks.first_text(DeviceBuffer::missing());
  if (!missing.empty()) {
    return {{{"bench", "p2p"},
             {"op", "latency"},
             {"memory", "device"},
             {"ranks", ranks.size()},
             {"skipped", missing}}};
  }
  std::vector<std::size_t> sizes = sizes_of(options, Mode::latency);
  std::erase_if(sizes, [](std::size_t bytes) { return bytes == 0 || bytes > largest; });
  if (sizes.empty()) return {};
  DeviceMessages messages(options, ranks, std::ranges::max(sizes));
  std::vector<Json> rows;
  rows.reserve(sizes.size());
  for (const std::size_t bytes : sizes) rows.push_back(messages.row(bytes));
  ranks.barrier();  // no rank still reads the memory of another
  return rows;
}

std::string device_table(const std::vector<Json>& rows) {
  std::string text = "\nlatency, device memory, hot buffers\n";
  for (const Json& row : rows) {
    if (row.contains("skipped")) {
      text += fmt::format("  skipped: {}\n", row["skipped"].get<std::string>());
      continue;
    }
    text += fmt::format("{:>8}  {:>10.4g} us  {:>8.0f} MB/s  {}\n",
                        size_text(row["bytes"].get<std::size_t>()),
                        row["time_us"]["median"].get<double>(), row["mb_per_s"].get<double>(),
                        row["path"].get<std::string>());
  }
  return text;
}

}  // namespace ropewalk::bench
