#include "channel/xpmem.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "os/file.hpp"

namespace ropewalk::channel {
namespace {

// The module's interface: numbers and layouts are its ABI, the same in all its versions since 2.6.
namespace abi {

constexpr unsigned long version = _IO('x', 0);
constexpr unsigned long make = _IO('x', 1);
constexpr unsigned long get = _IO('x', 3);
constexpr unsigned long release = _IO('x', 4);
constexpr unsigned long attach = _IO('x', 5);
constexpr unsigned long detach = _IO('x', 6);

constexpr std::int32_t permit_mode = 1;  // permission is a mode, as of a file
constexpr std::int32_t read_write = 2;
constexpr std::uint64_t owner_only = 0600;
constexpr std::uint64_t whole_address_space = ~std::uint64_t{0};

struct Make {
  std::uint64_t address;
  std::uint64_t bytes;
  std::int32_t permit_type;
  std::int32_t padding;
  std::uint64_t permit_value;
  std::int64_t segment;  // out
};
struct Get {
  std::int64_t segment;
  std::int32_t flags;
  std::int32_t permit_type;
  std::uint64_t permit_value;
  std::int64_t permit;  // out
};
struct Release {
  std::int64_t permit;
};
struct Attach {
  std::int64_t permit;
  std::int64_t offset;
  std::uint64_t bytes;
  std::uint64_t address;  // in: where, 0 for anywhere; out
  std::int32_t unused[2];
};
struct Detach {
  std::uint64_t address;
};
static_assert(sizeof(Make) == 40 && sizeof(Get) == 32 && sizeof(Attach) == 40);

}  // namespace abi

int control_device(int file, unsigned long command, void* argument) {
  return ioctl(file, command, argument);
}

class Xpmem final : public Provider {
 public:
  Xpmem(std::string device, Control control) : device_(std::move(device)), control_(control) {}

  Segment own_segment(std::string& reason) override {
    const std::lock_guard lock(mutex_);
    if (process_ == 0) offer();
    // A child of fork() has the parent's segment and none of its attachments.
    if (process_ != getpid()) {
      reason = device_ + ": opened before this process was forked";
      return 0;
    }
    reason = reason_;
    return segment_;
  }

  bool open(Segment segment) override {
    abi::Get get{};
    get.segment = segment;
    get.flags = abi::read_write;
    get.permit_type = abi::permit_mode;
    const std::lock_guard lock(mutex_);
    if (control_(file_, abi::get, &get) != 0) return false;
    permits_[segment] = get.permit;
    return true;
  }

  void close(Segment segment) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = permits_.find(segment);
    if (found == permits_.end()) return;
    abi::Release release{found->second};
    control_(file_, abi::release, &release);
    permits_.erase(found);
  }

  std::byte* attach(Segment segment, std::uint64_t address, std::size_t bytes) override {
    abi::Attach attach{};
    attach.offset = static_cast<std::int64_t>(address);  // segments begin at address 0
    attach.bytes = bytes;
    const std::lock_guard lock(mutex_);
    const auto found = permits_.find(segment);
    if (found == permits_.end()) return nullptr;
    attach.permit = found->second;
    if (control_(file_, abi::attach, &attach) != 0) return nullptr;
    return reinterpret_cast<std::byte*>(attach.address);
  }

  void detach(std::byte* local, std::size_t) noexcept override {
    abi::Detach detach{reinterpret_cast<std::uintptr_t>(local)};
    control_(file_, abi::detach, &detach);
  }

 private:
  // Opens the device and offers this process' address space, once.
  void offer() {
    process_ = getpid();
    file_ = ::open(device_.c_str(), O_RDWR | O_CLOEXEC);
    abi::Make make{};
    make.bytes = abi::whole_address_space;
    make.permit_type = abi::permit_mode;
    make.permit_value = abi::owner_only;
    if (file_ < 0 || control_(file_, abi::version, nullptr) < 0 ||
        control_(file_, abi::make, &make) != 0) {
      reason_ = device_ + ": " + os::error_text(errno);
      return;
    }
    segment_ = make.segment;
  }

  const std::string device_;
  const Control control_;
  std::mutex mutex_;
  std::map<Segment, std::int64_t> permits_;
  pid_t process_ = 0;  // that opened the device; 0: nobody yet
  int file_ = -1;      // never closed (xpmem.hpp)
  Segment segment_ = 0;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Provider> make_xpmem(std::string device, Control control) {
  return std::make_unique<Xpmem>(std::move(device), control != nullptr ? control : control_device);
}

}  // namespace ropewalk::channel
