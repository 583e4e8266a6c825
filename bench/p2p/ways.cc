// Messages of MPI and of channels; see ways.hpp.
#include "p2p/ways.hpp"

#include "mpi/library.hpp"

namespace ropewalk::bench {
namespace {

// Messages of a channel, with its requests in a list that is made once.
class ChannelMessages {
 public:
  ChannelMessages(Channel& channel, int window) : channel_(channel) {
    requests_.reserve(2 * static_cast<std::size_t>(window));
  }

  void send(const std::byte* data, std::size_t bytes, int to) { channel_.send(data, bytes, to); }
  void receive(std::byte* data, std::size_t bytes, int from) {
    channel_.receive(data, bytes, from);
  }
  void start_send(const std::byte* data, std::size_t bytes, int to) {
    requests_.push_back(channel_.start_send(data, bytes, to));
  }
  void start_receive(std::byte* data, std::size_t bytes, int from) {
    requests_.push_back(channel_.start_receive(data, bytes, from));
  }
  void wait_all() {
    for (MessageRequest& request : requests_) request.wait();
    requests_.clear();
  }

 private:
  Channel& channel_;
  std::vector<MessageRequest> requests_;
};

// One way, the sender holds the clock, since it gets the answer; in a ping-pong, who begins.
P2pSample counted(const P2pRun& run, P2pSample sample) {
  if (run.mode != Mode::bidirectional && !run.leads()) sample.us = 0;
  return sample;
}

}  // namespace

PlainMessages::PlainMessages() : comm_(mpi::dup(mpi::comm_world())) {}
PlainMessages::~PlainMessages() {
  try {
    mpi::free(comm_);
  } catch (const std::exception&) {
    // The results are out; what the MPI says at the end does not change them.
  }
}

void PlainMessages::send(const std::byte* data, std::size_t bytes, int to) {
  mpi::send(data, bytes, to, 0, comm_);
}

// Past mpi::receive, which asks for the length of what has come.
void PlainMessages::receive(std::byte* data, std::size_t bytes, int from) {
  const mpi::Library& library = mpi::library();
  library.call.recv(data, static_cast<int>(bytes), mpi::byte_type().value, from, 0, comm_.value,
                    library.abi.status_ignore);
}

void PlainMessages::start_send(const std::byte* data, std::size_t bytes, int to) {
  requests_.push_back(mpi::isend(data, bytes, to, 0, comm_));
}

void PlainMessages::start_receive(std::byte* data, std::size_t bytes, int from) {
  requests_.push_back(mpi::ireceive(data, bytes, from, 0, comm_));
}

void PlainMessages::wait_all() {
  mpi::wait_all(requests_);
  requests_.clear();
}

void PlainMessages::meet(const P2pRun& run) {
  std::byte none{};
  if (run.leads()) send(&none, 0, run.peer());
  receive(&none, 0, run.peer());
  if (!run.leads()) send(&none, 0, run.peer());
}

P2pSample time_plain(PlainMessages& plain, const P2pRun& run) {
  return counted(run, timed(
                          run, [&] { plain.meet(run); }, [&] { exchange(plain, run); }));
}

P2pSample time_channel(Channel& channel, PlainMessages& plain, const P2pRun& run) {
  ChannelMessages messages(channel, run.window);
  return counted(run, timed(
                          run, [&] { plain.meet(run); }, [&] { exchange(messages, run); }));
}

}  // namespace ropewalk::bench
