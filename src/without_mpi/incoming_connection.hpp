// The connection on which the messages of another rank come, read piece by piece.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "os/network.hpp"
#include "without_mpi/socket.hpp"
#include "without_mpi/wire.hpp"

namespace ropewalk::without_mpi {

class IncomingConnection {
 public:
  explicit IncomingConnection(Socket socket) : socket_(std::move(socket)) {}

  enum class Event {
    nothing,   // nothing more can be read now
    envelope,  // of the next message: into() says where its bytes go; until then nothing is read
    message,   // all its bytes have come
    end        // the other side has closed the connection, or it has failed: see failure()
  };
  // Reads until there is an event. `budget` is what may be read; it falls by what was.
  Event read(std::size_t& budget);

  const os::Descriptor& socket() const noexcept { return socket_.get(); }
  const Envelope& envelope() const noexcept { return envelope_; }
  std::size_t received() const noexcept { return received_; }  // of the message
  // Whether an envelope has come of whose message nobody has said where it goes.
  bool undecided() const noexcept { return state_ == State::undecided; }
  const std::string& failure() const noexcept { return failure_; }

  // The rest of the message goes to `data` + received(). What is beyond `room` is dropped.
  void into(std::byte* data, std::size_t room) noexcept;

 private:
  enum class State { between, undecided, inside, ended };
  // What was read ahead. Small messages take one system call for several.
  static constexpr std::size_t staged_bytes = std::size_t{16} << 10;

  std::size_t staged() const noexcept { return end_ - begin_; }
  bool fill(std::size_t& budget);
  bool receive_rest(std::size_t& budget);
  void take_staged() noexcept;
  bool note(const os::Moved&, std::size_t asked, std::size_t& budget);
  Event nothing_or_end() const noexcept;

  Socket socket_;
  State state_ = State::between;
  bool drained_ = false;  // the last read has got less than it asked for
  Envelope envelope_;
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t received_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string failure_;
  alignas(64) std::array<std::byte, staged_bytes> stage_;
};

}  // namespace ropewalk::without_mpi
