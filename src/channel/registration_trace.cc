#include "channel/registration_trace.hpp"

#include <unistd.h>

#include <cerrno>
#include <cinttypes>

#include "os/file.hpp"
#include "ropewalk/error.hpp"
#include "settings/value.hpp"

namespace ropewalk::channel {
namespace {

// Never ended: ranks communicate after static destructors have run. Null where none is asked for.
RegistrationTrace* make_trace() {
  const settings::Value value = settings::get(settings::Id::registration_trace);
  if (!value.given) return nullptr;
  return new RegistrationTrace(std::string(value.text) + "." + std::to_string(getpid()));
}

}  // namespace

std::atomic<RegistrationTrace*> RegistrationTrace::of_process_{nullptr};

// A process that is killed leaves the lines that it has written.
RegistrationTrace::RegistrationTrace(const std::string& file)
    : file_(std::fopen(file.c_str(), "we")) {
  if (file_ == nullptr) {
    throw Error(ErrorCode::argument, "ROPEWALK_REGISTRATION_TRACE: cannot write " + file + ": " +
                                         os::error_text(errno) +
                                         "; name a file in a folder that can be written to");
  }
  std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
  std::fputs("# process address bytes\n", file_);
}

RegistrationTrace::~RegistrationTrace() { std::fclose(file_); }

void RegistrationTrace::add(pid_t process, std::uint64_t address, std::size_t bytes) noexcept {
  std::fprintf(file_, "%d %" PRIx64 " %zu\n", static_cast<int>(process), address, bytes);
}

void RegistrationTrace::begin_of_process() {
  static RegistrationTrace* const trace = make_trace();
  of_process_.store(trace, std::memory_order_release);
}

}  // namespace ropewalk::channel
