// Transfers of buffers on different pages; see transfer.hpp.
#include "pages/transfer.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/pages.hpp"
#include "common/pattern.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

EndpointOptions one_lane() {
  EndpointOptions options;
  options.lanes = 1;
  options.threads = false;
  return options;
}

// Where one rank alone has no memory, its partner waits already: an error that ends both.
template <class Make>
void make_or_abandon(const Make& make) {
  try {
    make();
  } catch (const Error& error) {
    throw Error(ErrorCode::system, error.what());
  }
}

}  // namespace

PageBuffer::PageBuffer(const std::string& pages, std::size_t bytes) : bytes_(bytes) {
  if (pages == "scattered") {
    small_ = SmallPages(bytes);
  } else {
    block_ = page_block(pages, bytes);
  }
}

std::byte* PageBuffer::data() const noexcept {
  return small_.data() != nullptr ? small_.data() : block_.data();
}

int PageBuffer::descriptor() const noexcept {
  return small_.data() != nullptr ? small_.descriptor() : block_.descriptor();
}

std::size_t PageBuffer::mappable_bytes() const noexcept {
  return small_.data() != nullptr ? bytes_ : block_.mapped_bytes();
}

MappedPath::MappedPath(std::size_t largest) : destination_(page_block("huge", largest)) {}

void MappedPath::check(std::size_t bytes, std::uint64_t key) {
  verified_ = verified_ && check_pattern(destination_.data(), bytes, key) == bytes;
}

// The work of both threads added up; waking the peer is not part of it.
double MappedPath::fresh(const std::string& pages, std::size_t bytes) {
  const std::uint64_t key = pattern_key(0, 0, 0, ++serial_);
  double time = -now_us();
  std::optional<PageBuffer> source;
  source.emplace(pages, bytes);
  fill_pattern(source->data(), bytes, key);
  time += now_us();
  team_.run([&](int thread) {
    if (thread == 0) return;
    time -= now_us();
    {
      const BlockMapping view(source->descriptor(), source->mappable_bytes());
      std::memcpy(destination_.data(), view.data(), bytes);
    }
    time += now_us();
  });
  check(bytes, key);
  time -= now_us();
  source.reset();
  return time + now_us();
}

double MappedPath::steady(const std::string& pages, std::size_t bytes, int count) {
  const std::uint64_t key = pattern_key(0, 0, 1, ++serial_);
  const PageBuffer source(pages, bytes);
  fill_pattern(source.data(), bytes, key);
  const BlockMapping view(source.descriptor(), source.mappable_bytes());
  double time = 0;
  team_.run([&](int thread) {
    if (thread == 0) return;
    std::memcpy(destination_.data(), view.data(), bytes);  // the peer's page table and caches
    const double begin = now_us();
    for (int i = 0; i < count; ++i) std::memcpy(destination_.data(), view.data(), bytes);
    time = (now_us() - begin) / count;
  });
  check(bytes, key);
  return time;
}

KernelPath::KernelPath(std::size_t largest) : destination_(page_block("huge", largest)) {}

void KernelPath::copy(const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    iovec to = {destination_.data() + done, bytes - done};
    iovec source = {const_cast<std::byte*>(from) + done, bytes - done};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &source, 1, 0);
    if (got <= 0) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("process_vm_readv: {}; leave this path out with --paths mapped",
                              std::strerror(errno)));
    }
    done += static_cast<std::size_t>(got);
  }
}

double KernelPath::fresh(const std::string& pages, std::size_t bytes) {
  const std::uint64_t key = pattern_key(0, 0, 2, ++serial_);
  const double begin = now_us();
  double checked = 0;
  {
    const PageBuffer source(pages, bytes);
    fill_pattern(source.data(), bytes, key);
    copy(source.data(), bytes);
    const double before = now_us();
    verified_ = verified_ && check_pattern(destination_.data(), bytes, key) == bytes;
    checked = now_us() - before;
  }
  return now_us() - begin - checked;
}

double KernelPath::steady(const std::string& pages, std::size_t bytes, int count) {
  const std::uint64_t key = pattern_key(0, 0, 3, ++serial_);
  const PageBuffer source(pages, bytes);
  fill_pattern(source.data(), bytes, key);
  copy(source.data(), bytes);
  const double begin = now_us();
  for (int i = 0; i < count; ++i) copy(source.data(), bytes);
  const double time = (now_us() - begin) / count;
  verified_ = verified_ && check_pattern(destination_.data(), bytes, key) == bytes;
  return time;
}

// These are the buffers of one rank, and the messages between them.
struct MpiPath::Pair {
  PageBuffer send;
  PageBuffer receive;
  MessagePlan plan;

  Pair(EndpointSet& endpoints, int peer, const std::string& pages, std::size_t bytes)
      : send(pages, bytes),
        receive(pages, bytes),
        plan(endpoints.plan({{Message::Kind::receive, receive.data(), bytes, peer, 0, 0, 0},
                             {Message::Kind::send, send.data(), bytes, peer, 0, 0, 0}})) {}

  void exchange() {
    plan.start(Strategy::concurrent);
    plan.wait();
  }
};

MpiPath::MpiPath(const Ranks& ranks)
    : ranks_(ranks), endpoints_(ranks.communicator(), one_lane()), peer_(ranks.rank() ^ 1) {
  if (peer_ >= ranks.size()) peer_ = -1;
}

double MpiPath::slowest(double time) const { return ranks_.max(time); }

double MpiPath::fresh(const std::string& pages, std::size_t bytes) {
  ++serial_;
  ranks_.barrier();
  if (peer_ < 0) return slowest(0);
  const auto me = static_cast<std::uint64_t>(ranks_.rank());
  const double begin = now_us();
  double checked = 0;
  {
    std::optional<Pair> pair;
    make_or_abandon([&] { pair.emplace(endpoints_, peer_, pages, bytes); });
    fill_pattern(pair->send.data(), bytes, pattern_key(me, 0, 4, serial_));
    pair->exchange();
    const double before = now_us();
    const auto key = pattern_key(me ^ 1, 0, 4, serial_);
    verified_ = verified_ && check_pattern(pair->receive.data(), bytes, key) == bytes;
    checked = now_us() - before;
  }
  return slowest(now_us() - begin - checked);
}

double MpiPath::steady(const std::string& pages, std::size_t bytes, int count) {
  ++serial_;
  std::optional<Pair> pair;
  ranks_.collectively([&] {
    if (peer_ >= 0) pair.emplace(endpoints_, peer_, pages, bytes);
  });
  if (!pair) {
    ranks_.barrier();
    return slowest(0);
  }
  const auto me = static_cast<std::uint64_t>(ranks_.rank());
  fill_pattern(pair->send.data(), bytes, pattern_key(me, 0, 5, serial_));
  pair->exchange();
  ranks_.barrier();
  const double begin = now_us();
  for (int i = 0; i < count; ++i) pair->exchange();
  const double time = (now_us() - begin) / count;
  const auto key = pattern_key(me ^ 1, 0, 5, serial_);
  verified_ = verified_ && check_pattern(pair->receive.data(), bytes, key) == bytes;
  return slowest(time);
}

}  // namespace ropewalk::bench
