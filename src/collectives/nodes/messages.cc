#include "collectives/nodes/messages.hpp"

#include <string>

namespace ropewalk::collectives::nodes {
namespace {

// A receive that is withdrawn where an exception comes before its message.
struct Receiving {
  mpi::Request request;
  ~Receiving() { mpi::withdraw(request); }
};

}  // namespace

Header header_of(Kind kind, std::uint64_t count, std::uint32_t form, std::uint32_t root) {
  // The header is packed as Arrivals::claim does.
  return {std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
              std::uint64_t{form & 0xffffffU} << 32 | root,
          count};
}

void check_header(const Header& own, const Header& other, int other_rank) {
  if (own.call == other.call && own.count == other.count && own.bytes == other.bytes) return;
  const auto kind = [](const Header& header) {
    return std::string(name(static_cast<Kind>(header.call >> 56)));
  };
  throw Error(ErrorCode::argument,
              "collective: " + kind(own) + " of " + std::to_string(own.count + own.bytes) +
                  " here, but rank " + std::to_string(other_rank) + " on another node calls " +
                  kind(other) + " of " + std::to_string(other.count + other.bytes) +
                  ", or with other arguments; all ranks must make the same call");
}

void Messages::send(const void* data, std::size_t bytes, int destination, int with_tag) {
  mpi::Request request = mpi::isend(data, bytes, destination, with_tag, comm());
  waits_.wait(request);
}

void Messages::receive(void* data, std::size_t bytes, int source, int with_tag) {
  Receiving receiving{mpi::ireceive(data, bytes, source, with_tag, comm())};
  waits_.wait(receiving.request);
}

void Messages::exchange(const void* sent, std::size_t sent_bytes, int destination, void* received,
                        std::size_t received_bytes, int source, int with_tag) {
  Receiving receiving{mpi::ireceive(received, received_bytes, source, with_tag, comm())};
  mpi::Request sending = mpi::isend(sent, sent_bytes, destination, with_tag, comm());
  waits_.until([&] { return mpi::test(receiving.request) && mpi::test(sending); });
}

// The ranks meet by dissemination, which is watched as every wait is. What follows may block in
// MPI, where nothing is noticed; but then every rank has come, so no rank waits there for one that
// has refused the call or died before it. The meeting takes no memory: some ranks would wait for a
// rank that failed between two rounds.
void Messages::meet_all(const Header& header) {
  const int ranks = layout_.size();
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int from = (layout_.rank - distance + ranks) % ranks;
    Header theirs{};
    exchange(&header, sizeof header, (layout_.rank + distance) % ranks, &theirs, sizeof theirs,
             from, small_tag());
    check_header(header, theirs, from);
  }
}

}  // namespace ropewalk::collectives::nodes
