// Transfers taken apart; see steps.hpp.
#include "attach/steps.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "attach/mapped_files.hpp"
#include "common/pages.hpp"
#include "common/pattern.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/registration.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t page_bytes = 4096;  // that the kernel maps at a first touch

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

// Measures one step after the other, each from the end of the one before.
class StepClock {
 public:
  void restart() { last_us_ = now_us(); }
  void end(AttachStep step) {
    const double now = now_us();
    times_[static_cast<std::size_t>(step)] += now - last_us_;
    last_us_ = now;
  }
  AttachTimes times(int count = 1) const {
    AttachTimes each = times_;
    for (double& one : each) one /= count;
    return each;
  }

 private:
  AttachTimes times_{};
  double last_us_ = 0;
};

// Reads a byte of each page, as the copy would do it first.
void touch(const std::byte* memory, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += page_bytes) {
    static_cast<void>(*static_cast<const volatile std::byte*>(memory + at));
  }
}

// What a rank tells the one before it: its process, and a descriptor or an address there.
struct Told {
  int process = 0;
  std::uint64_t place = 0;
};

// Where the bytes come to lie, and whose they must be.
class Target {
 public:
  Target(const Ranks& ranks, std::size_t largest)
      : ranks_(ranks), block_(page_block("memalign", largest)) {}

  std::byte* data() const noexcept { return block_.data(); }
  void fill(std::byte* own, std::size_t bytes) {
    ++serial_;
    fill_pattern(own, bytes, key(ranks_.rank()));
    std::memset(block_.data(), 0, bytes);
  }
  bool check(std::size_t bytes) const {
    return check_pattern(block_.data(), bytes, key(next())) == bytes;
  }
  // Collective: what the next rank has told. Doubles hold numbers below 2^53 exactly.
  Told exchange(std::uint64_t place) const {
    const std::vector<double> own = {static_cast<double>(getpid()), static_cast<double>(place)};
    const auto all = ranks_.gather(own);
    const std::vector<double>& told = all[static_cast<std::size_t>(next())];
    return {static_cast<int>(told[0]), static_cast<std::uint64_t>(told[1])};
  }
  // Collective: throws on every rank where any says false.
  void require(bool good, const char* what) const {
    if (ranks_.all(good)) return;
    throw CollectiveError(ErrorCode::system,
                          fmt::format("{}: the kernel refuses memory of the next rank; run all "
                                      "ranks as one user, in one container",
                                      what));
  }
  void barrier() const { ranks_.barrier(); }

 private:
  int next() const { return (ranks_.rank() + 1) % ranks_.size(); }
  std::uint64_t key(int rank) const {
    return pattern_key(static_cast<std::uint64_t>(rank), 0, 6, serial_);
  }

  const Ranks& ranks_;
  PageBlock block_;
  std::uint64_t serial_ = 0;
};

// What a hit in a registration cache takes, and the release of what was found.
double look_up_us() {
  constexpr int hits = 2000;
  const std::vector<RegistrationRequest> requests(hits + 1, {1, page_bytes, 1});
  const double begin = now_us();
  replay_registrations(requests, 1, Eviction::fifo);
  return (now_us() - begin) / hits;
}

// By files of memory, which ropewalk's arenas are, too.
class MappedWay final : public AttachWay {
 public:
  explicit MappedWay(Target& target) : target_(target) {}
  std::string name() const override { return "mapped"; }

  AttachTimes fresh(std::size_t bytes) override {
    StepClock clock;
    clock.restart();
    const OfferedFile own(whole_pages(bytes));
    clock.end(AttachStep::make);
    const FileName peer = exchange(own, bytes);
    const bool arrived = transfer(peer, bytes, clock);
    target_.require(arrived, "mapped");
    verified_ = verified_ && target_.check(bytes);
    return clock.times();
  }

  // What was attached is kept, and found by the look-up.
  AttachTimes cached(std::size_t bytes, int count) override {
    const OfferedFile own(whole_pages(bytes));
    AttachedFile kept(exchange(own, bytes));
    const std::byte* local = kept.attach(whole_pages(bytes));
    target_.require(local != nullptr, "mapped");
    std::memcpy(target_.data(), local, bytes);
    StepClock clock;
    clock.restart();
    for (int i = 0; i < count; ++i) std::memcpy(target_.data(), local, bytes);
    clock.end(AttachStep::copy);
    verified_ = verified_ && target_.check(bytes);
    target_.barrier();  // nobody reads what ends here
    AttachTimes times = clock.times(count);
    times[static_cast<std::size_t>(AttachStep::attach)] = look_up_us();
    return times;
  }

 private:
  FileName exchange(const OfferedFile& own, std::size_t bytes) {
    target_.fill(own.data(), bytes);
    const Told peer = target_.exchange(static_cast<std::uint64_t>(own.name().descriptor));
    return {peer.process, static_cast<int>(peer.place)};
  }

  bool transfer(const FileName& peer, std::size_t bytes, StepClock& clock) {
    clock.restart();
    AttachedFile file(peer);
    const std::byte* local = file.attach(whole_pages(bytes));
    clock.end(AttachStep::attach);
    if (local == nullptr) return false;
    touch(local, bytes);
    clock.end(AttachStep::touch);
    std::memcpy(target_.data(), local, bytes);
    clock.end(AttachStep::copy);
    file.detach();
    clock.end(AttachStep::detach);
    return true;
  }

  Target& target_;
};

// By the kernel, which has nothing to attach: a first copy and further ones.
class KernelWay final : public AttachWay {
 public:
  explicit KernelWay(Target& target) : target_(target) {}
  std::string name() const override { return "cma"; }

  AttachTimes fresh(std::size_t bytes) override { return copies(bytes, 1, false); }
  AttachTimes cached(std::size_t bytes, int count) override { return copies(bytes, count, true); }

 private:
  AttachTimes copies(std::size_t bytes, int count, bool again) {
    const PageBlock own = page_block("memalign", whole_pages(bytes));
    target_.fill(own.data(), bytes);
    const Told peer = target_.exchange(reinterpret_cast<std::uintptr_t>(own.data()));
    bool good = !again || copy(peer, bytes);
    StepClock clock;
    clock.restart();
    for (int i = 0; i < count; ++i) good = copy(peer, bytes) && good;
    clock.end(AttachStep::copy);
    target_.require(good, "process_vm_readv");
    verified_ = verified_ && target_.check(bytes);
    return clock.times(count);
  }

  bool copy(const Told& peer, std::size_t bytes) {
    const iovec local = {target_.data(), bytes};
    const iovec remote = {reinterpret_cast<void*>(peer.place), bytes};
    return process_vm_readv(peer.process, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
  }

  Target& target_;
};

// Why there are no steps of XPMEM.
std::string why_no_xpmem(const Ranks& ranks) {
  if (ranks.size() == 1) return "one rank attaches nothing";
  const Collectives all(ranks.communicator());
  if (!all.attaches()) return all.attach_reason();
  return "it is, and its steps are not taken apart; ropewalk bench collectives --memory private "
         "takes that way";
}

}  // namespace

const std::vector<std::string>& attach_step_names() {
  static const std::vector<std::string> names = {"make", "attach", "touch", "copy", "detach"};
  return names;
}

double total(const AttachTimes& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

struct AttachWays::Parts {
  Target target;
};

AttachWays::AttachWays(const Ranks& ranks, std::size_t largest)
    : parts_(new Parts{Target(ranks, largest)}), xpmem_reason_(why_no_xpmem(ranks)) {
  ways_.push_back(std::make_unique<MappedWay>(parts_->target));
  ways_.push_back(std::make_unique<KernelWay>(parts_->target));
}

AttachWays::~AttachWays() = default;

}  // namespace ropewalk::bench
