#include "transport/farewell.hpp"

#include "mpi/waiter.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

void tell_others(mpi::Comm comm, FarewellNotice notice) {
  static constexpr char byte = 0;  // stays, whatever MPI does
  for (int rank = 0; rank < mpi::size(comm); ++rank) {
    if (rank == mpi::rank(comm)) continue;
    mpi::Request request =
        mpi::isend(&byte, static_cast<std::size_t>(notice), rank, notice_tag, comm);
    if (!mpi::test(request)) mpi::leave(request);
  }
}

Farewell::Farewell(std::span<const mpi::Comm> lanes)
    : lanes_(lanes), rank_(mpi::rank(lanes[0])), size_(mpi::size(lanes[0])) {
  for (int distance = 1; distance < size_; distance *= 2) {
    const int from = (rank_ - distance + size_) % size_;
    receives_.push_back(mpi::ireceive(nullptr, 0, from, control_tag, lanes_[0]));
  }
  sends_.assign(receives_.size(), mpi::request_null());
}

// What has not come in has no buffer.
void Farewell::give_up() noexcept {
  for (mpi::Request& receive : receives_) mpi::withdraw(receive, 0);
}

void Farewell::send_round() {
  const int to = (rank_ + (1 << round_)) % size_;
  sends_[round_] = mpi::isend(nullptr, 0, to, control_tag, lanes_[0]);
}

bool Farewell::advance() {
  while (round_ < receives_.size()) {
    if (!mpi::test(receives_[round_])) return false;
    if (++round_ < receives_.size()) send_round();
  }
  return mpi::test_all(sends_);
}

void Farewell::drain() {
  for (const mpi::Comm lane : lanes_) {
    mpi::Status found;
    while (mpi::iprobe(mpi::any_source(), mpi::any_tag(), lane, found)) {
      const bool notice = lane.value == lanes_[0].value && found.tag == notice_tag;
      told_ = told_ || notice;
      deserted_ = deserted_ || (notice && found.bytes > 0);
      dropped_.resize(static_cast<std::size_t>(found.bytes));
      mpi::receive(dropped_.data(), dropped_.size(), found.source, found.tag, lane);
    }
  }
}

}  // namespace ropewalk::transport
