#include "without_mpi/questions.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/clock.hpp"
#include "without_mpi/socket.hpp"

namespace ropewalk::without_mpi {

bool wait_for(std::span<pollfd> sockets, std::int64_t until_ns) {
  const std::int64_t left_ns = std::max<std::int64_t>(0, until_ns - os::steady_ns());
  return poll(sockets.data(), sockets.size(), static_cast<int>(left_ns / 1'000'000) + 1) > 0;
}

std::vector<std::byte> bytes_of(const Greeting& greeting, const std::string& name) {
  std::vector<std::byte> bytes(sizeof greeting + name.size());
  std::memcpy(bytes.data(), &greeting, sizeof greeting);
  std::memcpy(bytes.data() + sizeof greeting, name.data(), name.size());
  return bytes;
}

bool send_all(const os::Descriptor& socket, const std::vector<std::byte>& bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return os::send_some(socket, std::span(&piece, 1)).bytes == bytes.size();
}

namespace {

// A wanted rank answers at once, unless it has not come so far or thousands ask; a firewall that
// drops never does.
constexpr std::int64_t answer_ns = 30 * os::second_ns;
// After the first answer the better addresses have this time.
constexpr std::int64_t better_ns = os::second_ns / 2;

// Asks whoever is at an address whether it is the wanted process.
class Question {
 public:
  Question(const os::Address& asked, const node::Contact& wanted, int own_rank)
      : address(asked),
        greeting_{.wanted = wanted.id, .kind = Greeting::question, .source = own_rank},
        socket_(os::start_connection(address, wanted.port)) {
    if (!socket_) failure = os::error_text(errno);
  }
  bool open() const { return failure.empty() && !answered; }
  pollfd wanted() const {
    return {socket_.get().get(), static_cast<short>(sent_ ? POLLIN : POLLOUT), 0};
  }

  // The socket is ready for what was wanted.
  void go_on() {
    if (!sent_) {
      const int error = os::connection_error(socket_.get());
      if (error != 0) failure = os::error_text(error);
      if (error == 0 && !send_all(socket_.get(), bytes_of(greeting_, ""))) failure = "closed";
      sent_ = true;
      return;
    }
    char answer = 0;
    const iovec place{&answer, 1};
    os::receive_some(socket_.get(), std::span(&place, 1));
    answered = answer == answer_yes;
    if (!answered) failure = "another process listens there";
  }

  os::Address address;
  bool answered = false;
  std::string failure;

 private:
  Greeting greeting_;
  Socket socket_;
  bool sent_ = false;
};

// Goes on with all questions until the first of those that are open has an answer, or one behind it
// has had one for some time. Returns the first that is answered, or null.
const Question* best_answer(std::vector<Question>& questions) {
  const std::int64_t end = os::steady_ns() + answer_ns;
  std::int64_t until = end;
  for (;;) {
    const auto first =
        std::ranges::find_if(questions, [](const Question& one) { return one.failure.empty(); });
    if (first == questions.end()) return nullptr;
    if (first->answered) return &*first;
    std::vector<pollfd> wanted;
    std::vector<Question*> open;
    for (Question& one : questions) {
      if (!one.open()) continue;
      wanted.push_back(one.wanted());
      open.push_back(&one);
    }
    const bool ready = wait_for(wanted, until);
    if (!ready && os::steady_ns() >= until) break;
    for (std::size_t i = 0; ready && i < open.size(); ++i) {
      if (wanted[i].revents != 0) open[i]->go_on();
    }
    const bool any = std::ranges::any_of(questions, &Question::answered);
    if (any && until == end) until = std::min(end, os::steady_ns() + better_ns);
  }
  const auto answered = std::ranges::find_if(questions, &Question::answered);
  return answered == questions.end() ? nullptr : &*answered;
}

}  // namespace

std::optional<os::Address> best_address(std::span<const os::Address> addresses,
                                        const node::Contact& wanted, int own_rank,
                                        std::string& failures) {
  std::vector<Question> questions;
  for (const os::Address& address : addresses) questions.emplace_back(address, wanted, own_rank);
  if (const Question* const answered = best_answer(questions)) return answered->address;
  for (const Question& one : questions) {
    failures += (failures.empty() ? "" : "; ") + os::text(one.address) + ": " +
                (one.failure.empty() ? "no answer" : one.failure);
  }
  return std::nullopt;
}

}  // namespace ropewalk::without_mpi
