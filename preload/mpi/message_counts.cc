// This file serves sends, and exchanges that wait, by a count of 64 bits. What fits an int is sent
// as by the form with an int, and a message that does not is always MPI's own. The receives by such
// counts stand beside those by ints.
#include "message_counts.hpp"

#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "pending.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

// Sends by our form with an int, where the count allows it.
template <class Short, class Long, class Call>
int send_by_count(Count count, Word comm, Short* ours, Short* with_int, Long* with_count,
                  Call call) {
  return by_count(count, comm, ranks.understands ? ours : with_int, with_count, call);
}

// An exchange of more than an int can count is a receive and a send, whose requests are waited for.
class LargeExchange {
 public:
  Word* receiving() noexcept { return &receiving_; }
  Word* sending() noexcept { return &sending_; }
  // The receive has begun, and the send has not.
  int give_up(int code) noexcept {
    Cancel(&receiving_);
    serve::Wait(&receiving_, reinterpret_cast<void*>(abi().status_ignore));
    return code;
  }
  int wait(void* status) {
    const int received = serve::Wait(&receiving_, status);
    const int sent = serve::Wait(&sending_, reinterpret_cast<void*>(abi().status_ignore));
    return received != 0 ? received : sent;
  }

 private:
  Word receiving_ = abi().request_null;
  Word sending_ = abi().request_null;
};

}  // namespace

#define ROPEWALK_SEND(name)                                                                \
  int name##_c(const void* data, Count count, Word type, int to, int tag, Word comm) {     \
    return send_by_count(                                                                  \
        count, comm, &name, next.name, next.name##_c,                                      \
        [&](auto* send, auto number) { return send(data, number, type, to, tag, comm); }); \
  }
ROPEWALK_SEND(Send)
ROPEWALK_SEND(Ssend)
ROPEWALK_SEND(Rsend)
#undef ROPEWALK_SEND
#define ROPEWALK_SEND(name)                                                          \
  int name##_c(const void* data, Count count, Word type, int to, int tag, Word comm, \
               void* request) {                                                      \
    return send_by_count(count, comm, &name, next.name, next.name##_c,               \
                         [&](auto* send, auto number) {                              \
                           return send(data, number, type, to, tag, comm, request);  \
                         });                                                         \
  }
ROPEWALK_SEND(Isend)
ROPEWALK_SEND(Issend)
ROPEWALK_SEND(Irsend)
ROPEWALK_SEND(Send_init)
ROPEWALK_SEND(Ssend_init)
ROPEWALK_SEND(Rsend_init)
#undef ROPEWALK_SEND

int Sendrecv_c(const void* data, Count count, Word type, int destination, int send_tag,
               void* buffer, Count room, Word room_type, int source, int tag, Word comm,
               void* status) {
  const bool fits = fits_int(count) && fits_int(room);
  if (fits || !ranks.understands) {
    auto* const with_int = ranks.understands ? &Sendrecv : next.Sendrecv;
    return by_counts(count, room, comm, with_int, next.Sendrecv_c,
                     [&](auto* function, auto sent, auto received) {
                       return function(data, sent, type, destination, send_tag, buffer, received,
                                       room_type, source, tag, comm, status);
                     });
  }
  LargeExchange exchange;
  int code = Irecv_c(buffer, room, room_type, source, tag, comm, exchange.receiving());
  if (code != 0) return code;
  code = Isend_c(data, count, type, destination, send_tag, comm, exchange.sending());
  return code != 0 ? exchange.give_up(code) : exchange.wait(status);
}

int Sendrecv_replace_c(void* buffer, Count count, Word type, int destination, int send_tag,
                       int source, int tag, Word comm, void* status) {
  if (fits_int(count) || !ranks.understands) {
    auto* const with_int = ranks.understands ? &Sendrecv_replace : next.Sendrecv_replace;
    return by_count(
        count, comm, with_int, next.Sendrecv_replace_c, [&](auto* function, auto number) {
          return function(buffer, number, type, destination, send_tag, source, tag, comm, status);
        });
  }
  Word request = abi().request_null;
  const int code =
      Isendrecv_replace_c(buffer, count, type, destination, send_tag, source, tag, comm, &request);
  return code != 0 ? code : Wait(&request, status);
}

}  // namespace ropewalk::preload::serve
