// This file keeps hints from MPI that do not hold once messages go through memory. A descriptor is
// shorter than the message that it stands for, and a probe takes messages of any tag out of MPI. So
// a communicator is not told that its receives are exact, or that no receive takes any tag. MPI may
// ignore any hint, so that this changes nothing a program may count on.
#include <array>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

constexpr std::array withheld = {"mpi_assert_exact_length", "mpi_assert_no_any_tag"};

// KeptHints are those of the program without the ones above.
class KeptHints {
 public:
  explicit KeptHints(Word given) noexcept : hints_(clean(given)) {
    if (hints_ == abi().info_null || !ranks.understands) return;
    for (const char* name : withheld) {
      if (code_ == 0) withhold(name);
    }
  }
  KeptHints(const KeptHints&) = delete;
  KeptHints& operator=(const KeptHints&) = delete;
  ~KeptHints() {
    if (copied_) real.info_free(&hints_);
  }
  Word get() const noexcept { return hints_; }
  // MPI's code where the hints could not be copied.
  int code() const noexcept { return code_; }

 private:
  void withhold(const char* name) noexcept {
    int length = 0;
    int has = 0;
    code_ = real.info_get_valuelen(hints_, name, &length, &has);
    if (code_ != 0 || has == 0) return;
    if (!copied_) {
      Word copy = 0;
      code_ = real.info_dup(hints_, &copy);
      if (code_ != 0) return;
      hints_ = copy;
      copied_ = true;
    }
    code_ = real.info_delete(hints_, name);
  }

  Word hints_;
  bool copied_ = false;
  int code_ = 0;
};

template <class Function, class Call>
int call_with(Word comm, Word info, Function* function, Call call) {
  if (function == nullptr) return raise_missing(comm);
  const KeptHints hints(info);
  return hints.code() != 0 ? hints.code() : call(hints.get());
}

}  // namespace

int Comm_set_info(Word comm, Word info) {
  return call_with(comm, info, next.Comm_set_info,
                   [&](Word kept) { return next.Comm_set_info(comm, kept); });
}
int Comm_dup_with_info(Word comm, Word info, void* made) {
  return call_with(comm, info, next.Comm_dup_with_info,
                   [&](Word kept) { return next.Comm_dup_with_info(comm, kept, made); });
}
int Comm_idup_with_info(Word comm, Word info, void* made, void* request) {
  return call_with(comm, info, next.Comm_idup_with_info,
                   [&](Word kept) { return next.Comm_idup_with_info(comm, kept, made, request); });
}

}  // namespace ropewalk::preload::serve
