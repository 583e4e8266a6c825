#include "without_mpi/mailbox.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "os/clock.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::without_mpi {
namespace {

// Messages up to this length are taken in before there is a receive for them.
constexpr std::size_t short_bytes = std::size_t{64} << 10;
// After so many tests in vain a thread looks at the other communicators, too: what another rank
// waits for may lie there.
constexpr unsigned tests_per_look_around = 32;
// A caller that tests one of many may sleep between two tests.
constexpr unsigned most_tests_per_poll = 16;
constexpr std::int64_t closing_ns = os::second_ns / 5;
// A probe waits so long for a message behind one that nobody receives, before it takes that in.
// Ranks probe all the time for messages that seldom come.
constexpr std::int64_t probed_ns = os::second_ns / 20;
constexpr const char* freed = "its communicator was freed before it was complete";

// All mailboxes of this process. The list is never destroyed, as mailboxes may outlive static
// objects.
struct Mailboxes {
  std::mutex mutex;
  std::vector<std::weak_ptr<Mailbox>> all;
};
Mailboxes& mailboxes() {
  static auto* const made = new Mailboxes;
  return *made;
}

constexpr const char* no_rank = "rank: none of the communicator";
bool is_rank(int rank, std::size_t size) {
  return rank >= 0 && static_cast<std::size_t>(rank) < size;
}

// The poller tells connections to a rank from those that come from it by the lowest bit.
void* outgoing(void* peer) { return static_cast<char*>(peer) + 1; }

// Calls use(mailbox) for those that are chosen, without the lock of the list.
template <class Choose, class Use>
void for_each_mailbox(const Choose& choose, const Use& use) {
  std::vector<std::shared_ptr<Mailbox>> chosen;
  {
    Mailboxes& known = mailboxes();
    const std::lock_guard lock(known.mutex);
    for (const std::weak_ptr<Mailbox>& one : known.all) {
      std::shared_ptr<Mailbox> mailbox = one.lock();
      if (mailbox != nullptr && choose(*mailbox)) chosen.push_back(std::move(mailbox));
    }
  }
  for (const std::shared_ptr<Mailbox>& one : chosen) use(*one);
}

}  // namespace

std::shared_ptr<Mailbox> Mailbox::create(std::shared_ptr<Endpoint> endpoint, std::string name,
                                         std::vector<int> members, int rank) {
  auto made =
      std::make_shared<Mailbox>(std::move(endpoint), std::move(name), std::move(members), rank);
  Mailboxes& known = mailboxes();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& one) { return one.expired(); });
  known.all.push_back(made);
  return made;
}

Mailbox::Mailbox(std::shared_ptr<Endpoint> endpoint, std::string name, std::vector<int> members,
                 int rank)
    : endpoint_(std::move(endpoint)),
      name_(std::move(name)),
      members_(std::move(members)),
      rank_(rank),
      peers_(members_.size()) {
  for (std::size_t at = 0; at < peers_.size(); ++at) peers_[at].rank = static_cast<int>(at);
  poller_.add(endpoint_->listener(), nullptr, os::Poller::read);
}

Mailbox::~Mailbox() { close(); }

std::string Mailbox::named(int rank) const {
  return endpoint_->described(members_[static_cast<std::size_t>(rank)]);
}

void Mailbox::count_work() noexcept {
  const bool queued = std::ranges::any_of(
      peers_, [](const Peer& peer) { return peer.out != nullptr && !peer.out->idle(); });
  const bool coming =
      std::ranges::any_of(peers_, [](const Peer& peer) { return peer.receive != nullptr; });
  has_work_.store(queued || coming || matching_.has_posted(), std::memory_order_relaxed);
}

// ---- sending

OutgoingConnection& Mailbox::connection_to(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.out != nullptr) return *peer.out;
  const int member = members_[static_cast<std::size_t>(rank)];
  auto made = std::make_unique<OutgoingConnection>(endpoint_->connect(member, name_));
  poller_.add(made->socket(), outgoing(&peer), os::Poller::nothing);
  peer.out = std::move(made);
  return *peer.out;
}

void Mailbox::send(SocketTransfer& transfer) {
  const Lock lock(mutex_);
  ++unseen_;
  if (closed_) return end(transfer, freed);
  if (!is_rank(transfer.peer, peers_.size())) return end(transfer, no_rank);
  try {
    if (transfer.peer == rank_) return deliver_to_self(transfer);
    connection_to(transfer.peer).push(transfer);
    flush(peers_[static_cast<std::size_t>(transfer.peer)]);
  } catch (const std::exception& error) {
    return end(transfer, error.what());
  }
  if (!transfer.over) has_work_.store(true, std::memory_order_relaxed);
}

void Mailbox::flush(Peer& peer) {
  peer.out->flush();
  if (!peer.out->failure().empty()) {  // its socket is closed, and so has left the poller
    peer.out_waits = false;
    return;
  }
  const bool waits = !peer.out->idle();
  if (std::exchange(peer.out_waits, waits) == waits) return;
  poller_.change(peer.out->socket(), outgoing(&peer),
                 waits ? os::Poller::write : os::Poller::nothing);
}

void Mailbox::deliver_to_self(SocketTransfer& send) {
  auto data = std::make_unique_for_overwrite<std::byte[]>(send.bytes);
  std::copy_n(send.data, send.bytes, data.get());
  Letter& letter = matching_.add({rank_, send.tag, send.bytes, std::move(data), true});
  send.over = true;
  SocketTransfer* const receive = matching_.take_posted(rank_, send.tag);
  if (receive != nullptr) give(letter, *receive);
}

// ---- receiving

void Mailbox::receive(SocketTransfer& transfer) {
  const Lock lock(mutex_);
  ++unseen_;
  if (closed_) return end(transfer, freed);
  const bool from_any = transfer.peer == any_source;
  if (!from_any && !is_rank(transfer.peer, peers_.size())) return end(transfer, no_rank);
  try {
    take_in(transfer);
  } catch (const std::exception& error) {
    matching_.withdraw(transfer);
    return end(transfer, error.what());
  }
  if (!transfer.over) has_work_.store(true, std::memory_order_relaxed);
}

void Mailbox::take_in(SocketTransfer& transfer) {
  claim_connections();
  const bool from_one = transfer.peer != any_source;
  if (Letter* const letter = matching_.find(transfer.peer, transfer.tag)) {
    give(*letter, transfer);
  } else if (from_one && !peers_[static_cast<std::size_t>(transfer.peer)].lost.empty()) {
    end(transfer, peers_[static_cast<std::size_t>(transfer.peer)].lost);
  } else {
    matching_.post(transfer);
    wait_for_more(transfer.peer, 0);
  }
}

// A receive or a probe waits for a message that may be behind those which wait in their connections
// for so long.
void Mailbox::wait_for_more(int source, std::int64_t held_for_ns) {
  for (Peer& peer : peers_) {
    const bool may_send = source == any_source || source == peer.rank;
    if (!may_send || peer.in == nullptr || !peer.in->undecided()) continue;
    if (held_for_ns == 0 || os::steady_ns() - peer.held_since_ns > held_for_ns) keep(peer);
  }
}

// Takes a message that nobody has a receive for into memory of its own.
void Mailbox::keep(Peer& peer) {
  Letter& letter = *peer.letter;
  letter.data = std::make_unique_for_overwrite<std::byte[]>(letter.bytes);
  peer.in->into(letter.data.get(), letter.bytes);
  poller_.change(peer.in->socket(), &peer, os::Poller::read);
  read(peer);
}

// Gives a letter to the receive that it matches, and removes it.
void Mailbox::give(Letter& letter, SocketTransfer& transfer) {
  meet(transfer, letter);
  Peer& peer = peers_[static_cast<std::size_t>(letter.source)];
  const bool whole = letter.whole;
  const bool waits = letter.data == nullptr;
  const std::size_t come = whole ? letter.bytes : (waits ? 0 : peer.in->received());
  std::copy_n(letter.data.get(), std::min(come, transfer.bytes), transfer.data);
  if (!whole) {
    peer.letter = nullptr;
    peer.receive = &transfer;
    peer.in->into(transfer.data, transfer.bytes);
  }
  matching_.remove(letter);
  transfer.over = whole;
  if (!waits) return;
  poller_.change(peer.in->socket(), &peer, os::Poller::read);
  read(peer);
}

std::optional<Found> Mailbox::probe(int source, int tag) {
  const Lock lock(mutex_);
  progress();
  const Letter* found = matching_.find(source, tag);
  if (found == nullptr && !closed_) {
    wait_for_more(source, probed_ns);
    found = matching_.find(source, tag);
  }
  if (found == nullptr) return std::nullopt;
  return Found{found->source, found->tag, found->bytes};
}

// ---- what comes

void Mailbox::claim_connections() {
  const std::uint32_t arrivals = endpoint_->arrivals();
  if (std::exchange(seen_arrivals_, arrivals) == arrivals) return;
  for (Arrival& arrival : endpoint_->take(name_)) {
    const auto member = std::ranges::find(members_, arrival.source);
    if (member == members_.end()) continue;
    Peer& peer = peers_[static_cast<std::size_t>(member - members_.begin())];
    if (peer.in != nullptr || peer.in_ended) continue;
    peer.in = std::make_unique<IncomingConnection>(std::move(arrival.socket));
    try {
      poller_.add(peer.in->socket(), &peer, os::Poller::read);
      read(peer);
    } catch (const std::exception& error) {
      lose(peer, named(peer.rank) + ": " + error.what());
    }
  }
}

void Mailbox::read(Peer& peer) {
  std::size_t budget = bytes_per_turn;
  while (!peer.in_ended) {
    switch (peer.in->read(budget)) {
      case IncomingConnection::Event::nothing:
        return;
      case IncomingConnection::Event::envelope:
        try {
          begin_message(peer);
        } catch (const std::exception& error) {  // no memory
          return lose(peer, "message from " + named(peer.rank) + ": " + error.what());
        }
        break;
      case IncomingConnection::Event::message:
        if (peer.receive != nullptr) std::exchange(peer.receive, nullptr)->over = true;
        if (peer.letter != nullptr) std::exchange(peer.letter, nullptr)->whole = true;
        break;
      case IncomingConnection::Event::end:
        return lose(peer, named(peer.rank) + ": " + peer.in->failure());
    }
  }
}

void Mailbox::begin_message(Peer& peer) {
  const Envelope& envelope = peer.in->envelope();
  Letter letter{peer.rank, envelope.tag, static_cast<std::size_t>(envelope.bytes), nullptr};
  if (SocketTransfer* const receive = matching_.take_posted(letter.source, letter.tag)) {
    peer.receive = receive;
    meet(*receive, letter);
    peer.in->into(receive->data, receive->bytes);
    return;
  }
  const bool taken = letter.bytes <= short_bytes || matching_.awaits(letter.source);
  if (taken) letter.data = std::make_unique_for_overwrite<std::byte[]>(letter.bytes);
  peer.letter = &matching_.add(std::move(letter));
  if (taken) {
    peer.in->into(peer.letter->data.get(), peer.letter->bytes);
  } else {
    peer.held_since_ns = os::steady_ns();
    poller_.change(peer.in->socket(), &peer, os::Poller::nothing);
  }
}

// Nothing comes from this rank any more.
void Mailbox::lose(Peer& peer, const std::string& why) {
  peer.lost = why;
  peer.in_ended = true;
  if (peer.receive != nullptr) end(*std::exchange(peer.receive, nullptr), why);
  if (const Letter* const partial = std::exchange(peer.letter, nullptr)) matching_.remove(*partial);
  matching_.fail_from(peer.rank, why);
  peer.in.reset();
}

// ---- progress

void Mailbox::progress() {
  if (closed_ || !fork_.same_process()) return;
  tests_since_poll_ = 0;
  if (endpoint_->greets()) endpoint_->accept();
  std::array<void*, 64> ready;
  const std::size_t count = poller_.find(ready);
  for (std::size_t i = 0; i < count; ++i) {
    if (ready[i] == nullptr) {
      endpoint_->accept();
      continue;
    }
    const bool out = reinterpret_cast<std::uintptr_t>(ready[i]) % 2 != 0;
    void* const owner = static_cast<char*>(ready[i]) - (out ? 1 : 0);
    Peer& peer = *static_cast<Peer*>(owner);
    if (!out && peer.in != nullptr) read(peer);
    if (out && peer.out_waits) {
      flush(peer);
    } else if (out && peer.out->failure().empty()) {
      // The poller reports a connection that has nothing to send only when it has failed.
      peer.out->fail("it has left this communicator, or has ended");
    }
  }
  claim_connections();
}

bool Mailbox::test(SocketTransfer& transfer) {
  bool look_around = false;
  {
    const Lock lock(mutex_);
    if (!transfer.over && closed_) end(transfer, freed);
    if (!transfer.over && ++tests_since_poll_ >= std::min(unseen_, most_tests_per_poll)) {
      progress();
    }
    if (transfer.over) {
      --unseen_;
      return true;
    }
    look_around = ++idle_tests_ % tests_per_look_around == 0;
  }
  if (look_around) progress_all();
  return false;
}

void Mailbox::cancel(SocketTransfer& transfer) {
  const Lock lock(mutex_);
  if (transfer.over) return;
  bool withdrawn = matching_.withdraw(transfer);
  for (Peer& peer : peers_) {
    if (peer.receive != &transfer) continue;
    peer.receive = nullptr;
    peer.in->into(nullptr, 0);
    withdrawn = true;
  }
  if (transfer.is_send && transfer.peer != rank_) {
    const auto& out = peers_[static_cast<std::size_t>(transfer.peer)].out;
    withdrawn = out != nullptr && out->withdraw(transfer);
  }
  transfer.cancelled = transfer.over = withdrawn;
}

void Mailbox::progress_all() noexcept {
  try {
    for_each_mailbox(
        [](const Mailbox& one) { return one.has_work_.load(std::memory_order_relaxed); },
        [](Mailbox& one) {
          const Lock lock(one.mutex_, std::try_to_lock);
          if (!lock.owns_lock()) return;
          one.progress();
          one.count_work();
        });
  } catch (...) {  // no memory, or no descriptor: those whose messages these are will be told
  }
}

void Mailbox::close_all(const Endpoint& endpoint) noexcept {
  try {
    for_each_mailbox([&](const Mailbox& one) { return one.endpoint_.get() == &endpoint; },
                     [](Mailbox& one) { one.close(); });
  } catch (...) {  // no memory: the connections stay
  }
}

void Mailbox::close() noexcept {
  try {
    if (!fork_.same_process()) return;
    const std::int64_t until = os::steady_ns() + closing_ns;
    const Lock lock(mutex_);
    const auto queued = [](const Peer& peer) { return peer.out != nullptr && !peer.out->idle(); };
    while (!closed_ && std::ranges::any_of(peers_, queued) && os::steady_ns() < until) progress();
    closed_ = true;
    endpoint_->refuse(name_);
    matching_.clear();
    peers_.clear();
    has_work_.store(false, std::memory_order_relaxed);
  } catch (...) {  // no memory: the destructors of the peers close what is left
  }
}

}  // namespace ropewalk::without_mpi
