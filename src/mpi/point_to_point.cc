// This file passes messages between two ranks, in bytes.
#include <algorithm>
#include <array>
#include <atomic>

#include "mpi/large_count.hpp"
#include "mpi/library.hpp"
#include "mpi/waiter.hpp"
#include "os/clock.hpp"

namespace ropewalk::mpi {
namespace {

// Requests are handled 32 at a time, so that there is room for their statuses on the stack.
constexpr std::size_t batch = 32;

Word byte_word() { return library().abi.datatype(DatatypeName::byte_); }
Word ignored() { return library().abi.status_ignore; }

// Holds up to `batch` requests as the array that this MPI wants: copies as ints for MPICH, the
// requests themselves otherwise.
class RequestArray {
 public:
  explicit RequestArray(std::span<Request> requests)
      : requests_(requests), are_ints_(library().abi.int_handles) {
    if (!are_ints_) return;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ints_[i] = static_cast<std::uint32_t>(requests[i].value);
    }
  }
  ~RequestArray() {
    if (!are_ints_) return;
    for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].value = ints_[i];
  }
  RequestArray(const RequestArray&) = delete;
  RequestArray& operator=(const RequestArray&) = delete;

  Word* data() {
    if (are_ints_) return reinterpret_cast<Word*>(ints_.data());
    return &requests_.data()->value;
  }
  int count() const { return static_cast<int>(requests_.size()); }

 private:
  std::span<Request> requests_;
  bool are_ints_;
  alignas(8) std::array<std::uint32_t, batch> ints_{};
};

template <class Use>
void in_batches(std::span<Request> requests, const Use& use) {
  for (std::size_t first = 0; first < requests.size(); first += batch) {
    RequestArray array(requests.subspan(first, std::min(batch, requests.size() - first)));
    use(array);
  }
}

}  // namespace

void send(const void* data, std::size_t bytes, int destination, int tag, Comm comm) {
  const Functions& call = library().call;
  const Word byte = byte_word();
  if (fits_int(bytes)) {
    check(call.send(data, static_cast<int>(bytes), byte, destination, tag, comm.value), "MPI_Send");
  } else if (call.send_c != nullptr) {
    check(call.send_c(data, static_cast<Count>(bytes), byte, destination, tag, comm.value),
          "MPI_Send_c");
  } else {
    const LargeType type(bytes, byte_type());
    check(call.send(data, 1, type.word(), destination, tag, comm.value), "MPI_Send");
  }
}

Status receive(void* data, std::size_t bytes, int source, int tag, Comm comm) {
  const Functions& call = library().call;
  const Word byte = byte_word();
  RawStatus raw;
  const Word status = address(&raw);
  if (fits_int(bytes)) {
    check(call.recv(data, static_cast<int>(bytes), byte, source, tag, comm.value, status),
          "MPI_Recv");
  } else if (call.recv_c != nullptr) {
    check(call.recv_c(data, static_cast<Count>(bytes), byte, source, tag, comm.value, status),
          "MPI_Recv_c");
  } else {
    const LargeType type(bytes, byte_type());
    check(call.recv(data, 1, type.word(), source, tag, comm.value, status), "MPI_Recv");
  }
  Status result = read_status(library().abi, raw);
  check(call.get_elements_x(status, byte, &result.bytes), "MPI_Get_elements_x");
  return result;
}

Request isend(const void* data, std::size_t bytes, int destination, int tag, Comm comm) {
  const Functions& call = library().call;
  const Word byte = byte_word();
  Request made;
  if (fits_int(bytes)) {
    check(
        call.isend(data, static_cast<int>(bytes), byte, destination, tag, comm.value, &made.value),
        "MPI_Isend");
  } else if (call.isend_c != nullptr) {
    check(call.isend_c(data, static_cast<Count>(bytes), byte, destination, tag, comm.value,
                       &made.value),
          "MPI_Isend_c");
  } else {
    const LargeType type(bytes, byte_type());
    check(call.isend(data, 1, type.word(), destination, tag, comm.value, &made.value), "MPI_Isend");
  }
  return made;
}

Request ireceive(void* data, std::size_t bytes, int source, int tag, Comm comm) {
  const Functions& call = library().call;
  const Word byte = byte_word();
  Request made;
  if (fits_int(bytes)) {
    check(call.irecv(data, static_cast<int>(bytes), byte, source, tag, comm.value, &made.value),
          "MPI_Irecv");
  } else if (call.irecv_c != nullptr) {
    check(call.irecv_c(data, static_cast<Count>(bytes), byte, source, tag, comm.value, &made.value),
          "MPI_Irecv_c");
  } else {
    const LargeType type(bytes, byte_type());
    check(call.irecv(data, 1, type.word(), source, tag, comm.value, &made.value), "MPI_Irecv");
  }
  return made;
}

bool test(Request& request) {
  int flag = 0;
  check(library().call.test(&request.value, &flag, ignored()), "MPI_Test");
  return flag != 0;
}

bool test_each(std::span<Request> requests) {
  bool all = true;
  for (Request& request : requests) {
    if (request != request_null() && !test(request)) all = false;
  }
  return all;
}

void wait(Request& request) { check(library().call.wait(&request.value, ignored()), "MPI_Wait"); }

// A batch that is complete becomes null requests, which stay complete in the next call.
bool test_all(std::span<Request> requests) {
  bool all = true;
  in_batches(requests, [&](RequestArray& array) {
    int flag = 0;
    check(library().call.testall(array.count(), array.data(), &flag, library().abi.statuses_ignore),
          "MPI_Testall");
    all = all && flag != 0;
  });
  return all;
}

void wait_all(std::span<Request> requests) {
  in_batches(requests, [](RequestArray& array) {
    check(library().call.waitall(array.count(), array.data(), library().abi.statuses_ignore),
          "MPI_Waitall");
  });
}

void cancel(Request& request) noexcept {
  try {
    if (request == request_null()) return;
    const Functions& call = library().call;
    if (call.cancel(&request.value) == 0) call.wait(&request.value, ignored());
    request = request_null();
  } catch (...) {  // no library: then there is no request either
  }
}

namespace {
std::atomic<bool> left{false};
}

bool withdraw(Request& request, std::int64_t patience_ns) noexcept {
  const std::int64_t until = os::steady_ns() + patience_ns;
  try {
    if (request == request_null()) return true;
    library().call.cancel(&request.value);
    while (!test(request)) {
      if (os::steady_ns() < until) continue;
      request = request_null();
      left = true;
      return false;
    }
  } catch (...) {  // what MPI reports about it is its end
    request = Request{};
  }
  return true;
}

void leave(Request& request) noexcept {
  try {
    if (request == request_null()) return;
    request = request_null();
    left = true;
  } catch (...) {  // no library: then there is no request either
  }
}

bool receives_left() noexcept { return left; }

bool iprobe(int source, int tag, Comm comm) {
  int flag = 0;
  check(library().call.iprobe(source, tag, comm.value, &flag, ignored()), "MPI_Iprobe");
  return flag != 0;
}

bool iprobe(int source, int tag, Comm comm, Status& found) {
  const Functions& call = library().call;
  RawStatus raw;
  const Word status = address(&raw);
  int flag = 0;
  check(call.iprobe(source, tag, comm.value, &flag, status), "MPI_Iprobe");
  if (flag == 0) return false;
  found = read_status(library().abi, raw);
  check(call.get_elements_x(status, byte_word(), &found.bytes), "MPI_Get_elements_x");
  return true;
}

}  // namespace ropewalk::mpi
