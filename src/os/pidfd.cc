#include "os/pidfd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string_view>

namespace ropewalk::os {
namespace {

// Looks that believe a silent descriptor before one asks whether it is still the same file: a
// waiting rank looks about once a millisecond.
constexpr unsigned looks_per_check = 64;

// Reads a small file of /proc without an allocation; it is empty where the file cannot be read.
class SmallFile {
 public:
  explicit SmallFile(const char* path) noexcept {
    const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t length = file ? read(file.get(), text_, sizeof text_) : 0;
    length_ = length > 0 ? static_cast<std::size_t>(length) : 0;
  }
  std::string_view text() const noexcept { return {text_, length_}; }

 private:
  char text_[1024];
  std::size_t length_ = 0;
};

template <class Number>
std::optional<Number> first_number(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

bool readable(int pidfd) noexcept {
  pollfd entry{pidfd, POLLIN, 0};  // a pidfd becomes readable when its process ends
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

// Returns the process that a pidfd means: -1 for one that has ended, 0 for any other file, and
// nothing where /proc does not say.
std::optional<int> process_of(int descriptor) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
  const SmallFile file(path);
  constexpr std::string_view key = "\nPid:";
  if (file.text().empty()) return std::nullopt;
  const std::size_t at = file.text().find(key);
  if (at == std::string_view::npos) return 0;
  return first_number<int>(file.text().substr(at + key.size()));
}

// Calls use(text) with the status of a process in /proc, from its third field on. The second is the
// program's name in brackets, which may hold anything.
template <class Use>
auto use_status(pid_t process, Use use) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
  const SmallFile file(path);
  const std::size_t name_end = file.text().rfind(") ");
  return use(name_end == std::string_view::npos ? "" : file.text().substr(name_end + 2));
}

}  // namespace

Descriptor open_pidfd(pid_t process) noexcept {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

Descriptor take_descriptor(const Descriptor& pidfd, int descriptor) noexcept {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), descriptor, 0)));
}

std::uint64_t start_of_process(pid_t process) noexcept {
  return use_status(process, [](std::string_view text) noexcept -> std::uint64_t {
    for (int field = 3; field < 22; ++field) {
      const std::size_t end = text.find(' ');
      if (end == std::string_view::npos) return 0;
      text.remove_prefix(end + 1);
    }
    return first_number<std::uint64_t>(text).value_or(0);
  });
}

struct ProcessWatch::State {
  State(pid_t which, Descriptor pidfd) noexcept
      : process(which), start(start_of_process(which)), number(pidfd.release()) {
    remember_file();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (is_ours()) close(number);
  }

  void remember_file() noexcept {
    struct stat status {};
    if (fstat(number, &status) != 0) return;
    device.store(status.st_dev, std::memory_order_relaxed);
    inode.store(status.st_ino, std::memory_order_relaxed);
  }
  // Before Linux 6.9 all pidfds, event and timer descriptors are one file to it.
  bool same_file() const noexcept {
    struct stat status {};
    return fstat(number.load(std::memory_order_relaxed), &status) == 0 &&
           status.st_dev == device.load(std::memory_order_relaxed) &&
           status.st_ino == inode.load(std::memory_order_relaxed);
  }
  bool is_ours() const noexcept {
    if (!same_file()) return false;
    const int found = process_of(number).value_or(process);
    return found == process || found == -1;
  }
  bool ended_after_all() noexcept;

  const pid_t process;
  const std::uint64_t start;  // as this process sees it; 0: not known
  // Relaxed is enough: a thread that meets the old number looks once more, under the lock.
  std::atomic<int> number;
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> inode{0};
  std::atomic<unsigned> looks{0};
  std::mutex mutex;  // of what replaces the number
};

// The number says that the process has ended, or is somebody else's.
bool ProcessWatch::State::ended_after_all() noexcept {
  const std::lock_guard lock(mutex);
  if (is_ours()) return readable(number);
  Descriptor again = open_pidfd(process);
  if (!again) return errno == ESRCH;  // else nobody can tell
  const std::uint64_t now = start_of_process(process);
  if (start != 0 && now != 0 && now != start) return true;  // another has its number
  number = again.release();
  remember_file();
  return readable(number);
}

ProcessWatch::ProcessWatch() noexcept = default;
ProcessWatch::ProcessWatch(pid_t process) : ProcessWatch(process, open_pidfd(process)) {}
ProcessWatch::ProcessWatch(pid_t process, Descriptor pidfd)
    : state_(pidfd ? std::make_unique<State>(process, std::move(pidfd)) : nullptr) {}
ProcessWatch::ProcessWatch(ProcessWatch&&) noexcept = default;
ProcessWatch& ProcessWatch::operator=(ProcessWatch&&) noexcept = default;
ProcessWatch::~ProcessWatch() = default;

bool ProcessWatch::ended() const noexcept {
  if (state_ == nullptr) return false;
  pollfd entry{state_->number.load(std::memory_order_relaxed), POLLIN, 0};
  const bool silent = poll(&entry, 1, 0) == 0;
  if (silent && state_->looks.fetch_add(1, std::memory_order_relaxed) % looks_per_check != 0) {
    return false;
  }
  return !(silent && state_->is_ours()) && state_->ended_after_all();
}

bool ProcessWatch::stopped() const noexcept {
  if (state_ == nullptr || start_of_process(state_->process) != state_->start) return false;
  return use_status(state_->process, [](std::string_view text) noexcept {
    return text.starts_with('T') || text.starts_with('t');  // by a signal, or by a debugger
  });
}

}  // namespace ropewalk::os
