#include "os/poller.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ropewalk::os {
namespace {

constexpr std::size_t most_found = 64;  // at a time; others are found at the next call

epoll_event event_of(void* owner, unsigned wishes) noexcept {
  epoll_event event{};
  event.data.ptr = owner;
  if ((wishes & Poller::read) != 0) event.events |= EPOLLIN;
  if ((wishes & Poller::write) != 0) event.events |= EPOLLOUT;
  return event;
}

}  // namespace

Poller::Poller() : descriptor_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!descriptor_) throw system_error("epoll_create1", errno);
}

void Poller::add(const Descriptor& socket, void* owner, unsigned wishes) {
  epoll_event event = event_of(owner, wishes);
  if (epoll_ctl(descriptor_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    throw system_error("epoll_ctl", errno);
  }
}

void Poller::change(const Descriptor& socket, void* owner, unsigned wishes) noexcept {
  epoll_event event = event_of(owner, wishes);
  epoll_ctl(descriptor_.get(), EPOLL_CTL_MOD, socket.get(), &event);
}

std::size_t Poller::find(std::span<void*> owners) const noexcept {
  std::array<epoll_event, most_found> events;
  const int most = static_cast<int>(std::min(owners.size(), events.size()));
  const int found = epoll_wait(descriptor_.get(), events.data(), most, 0);
  for (int i = 0; i < found; ++i) {
    owners[static_cast<std::size_t>(i)] = events[static_cast<std::size_t>(i)].data.ptr;
  }
  return found > 0 ? static_cast<std::size_t>(found) : 0;
}

}  // namespace ropewalk::os
