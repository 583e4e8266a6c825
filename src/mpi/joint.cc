#include "mpi/joint.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <string>

namespace ropewalk::mpi {

namespace {

struct SharedError {
  std::int64_t code;
  std::array<char, 1016> text;  // bytes; longer texts are cut
};

SharedError shared(const Error& error) {
  SharedError out{static_cast<std::int64_t>(error.code()), {}};
  std::strncpy(out.text.data(), error.what(), out.text.size() - 1);
  return out;
}

}  // namespace

void share_error(Comm comm, const std::optional<Error>& own) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, 1> first{own ? rank(comm) : none};
  all_reduce(first, Combine::min, comm);
  if (first[0] == none) return;
  const int root = static_cast<int>(first[0]);
  SharedError error{};
  if (own && rank(comm) == root) error = shared(*own);
  broadcast(&error, sizeof error, root, comm);
  throw Error(static_cast<ErrorCode>(error.code),
              std::string(error.text.data()) + " (found on rank " + std::to_string(root) + ")");
}

}  // namespace ropewalk::mpi
