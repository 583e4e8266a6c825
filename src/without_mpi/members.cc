#include "without_mpi/members.hpp"

#include <algorithm>
#include <utility>

#include "ropewalk/error.hpp"
#include "without_mpi/text_exchange.hpp"

namespace ropewalk::without_mpi {
namespace {

// The code of every error.
constexpr int error_code = 1;
thread_local std::string error_text;

// The table is never destroyed, since teams may be ended after static objects.
struct Table {
  std::mutex mutex;
  std::map<Word, MemberPointer> members;
  Word next = 0x1000;  // above every predefined handle
  std::vector<Word> groups;
  MemberPointer self = std::make_shared<Member>(nullptr, "", std::vector<int>{0}, 0);
};

Table& table() {
  static auto* const made = new Table;
  return *made;
}

// In tests ranks are threads, and each has a world of its own.
thread_local std::vector<Word> groups_of_thread;

// The caller holds the mutex of the table.
Word world() {
  for (const Word group : groups_of_thread) {
    if (table().members.contains(group)) return group;  // another thread may have ended it
  }
  const std::vector<Word>& all = table().groups;
  return all.empty() ? abi().comm_null : all.front();
}

}  // namespace

const mpi::Abi& abi() {
  static const mpi::Abi facts = mpi::abi_of(mpi::Family::standard, nullptr);
  return facts;
}

const std::string& last_error() noexcept { return error_text; }

int failed(const char* text) noexcept {
  error_text = text;
  return error_code;
}

Word add(MemberPointer member) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.members[all.next] = std::move(member);
  return all.next++;
}

MemberPointer find(Word comm) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (comm == abi().comm_self) return all.self;
  const auto found = all.members.find(comm == abi().comm_world ? world() : comm);
  if (found != all.members.end()) return found->second;
  throw Error(ErrorCode::mpi,
              "communicator: none of a process group; without an MPI there is no other, so pass "
              "one, or start the ranks under an MPI");
}

void remove(Word comm) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.members.erase(comm);
}

void add_group(Word comm) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.groups.push_back(comm);
  groups_of_thread.push_back(comm);
}

void remove_group(Word comm) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::erase(all.groups, comm);
  std::erase(groups_of_thread, comm);
}

void require_bytes(Word type) {
  if (type == abi().datatype(mpi::DatatypeName::byte_)) return;
  throw Error(ErrorCode::mpi, "datatype: expected MPI_BYTE, which is all that goes without an MPI");
}

// ---- one communicator

std::string Member::key(std::uint64_t exchange, int rank) const {
  return prefix_ + std::to_string(exchange) + "/" + std::to_string(rank);
}

std::string Member::value_of(std::uint64_t exchange, int rank) {
  try {
    return store_->get(key(exchange, rank));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::mpi,
                "rank " + std::to_string(rank) +
                    " has not come to the making of the process group, or of a communicator: " +
                    error.what());
  }
}

std::vector<std::string> Member::share(const std::string& own) {
  if (size() == 1) return {own};
  if (endpoint_ == nullptr) return share_by_store(own);
  if (meetings_ == nullptr) meetings_ = Mailbox::create(endpoint_, prefix_ + "!", ranks_, rank_);
  return TextExchange(meetings_, rank_, size(), timeout_s_).share(own);
}

std::vector<std::string> Member::share_by_store(const std::string& own) {
  const std::uint64_t number = exchanges_++;
  store_->set(key(number, rank_), own);
  std::vector<std::string> all;
  all.reserve(ranks_.size());
  for (int rank = 0; rank < size(); ++rank) {
    all.push_back(rank == rank_ ? own : value_of(number, rank));
  }
  // All ranks have come here, so all have read what was written at the exchange before.
  if (number > 0) store_->remove(key(number - 1, rank_));
  return all;
}

MemberPointer Member::derive(const std::string& name, const std::vector<int>& ranks) const {
  std::vector<int> of_group;
  of_group.reserve(ranks.size());
  for (const int rank : ranks) of_group.push_back(ranks_[static_cast<std::size_t>(rank)]);
  const auto own = std::ranges::find(ranks, rank_) - ranks.begin();
  auto made = std::make_shared<Member>(store_, prefix_ + name + "/", std::move(of_group),
                                       static_cast<int>(own));
  if (endpoint_ != nullptr) made->open(endpoint_, timeout_s_);
  return made;
}

const std::shared_ptr<Mailbox>& Member::mailbox() {
  const std::lock_guard lock(mutex_);
  if (mailbox_ != nullptr) return mailbox_;
  if (endpoint_ == nullptr) {
    throw Error(ErrorCode::unsupported,
                "messages: the ranks of this process group share a node and have no connections; "
                "pass messages through a Channel, or start the ranks under an MPI");
  }
  mailbox_ = Mailbox::create(endpoint_, prefix_, ranks_, rank_);
  return mailbox_;
}

void Member::set_attribute(int key, void* value) {
  const std::lock_guard lock(mutex_);
  attributes_[key] = value;
}

std::optional<void*> Member::attribute(int key) {
  const std::lock_guard lock(mutex_);
  const auto found = attributes_.find(key);
  return found == attributes_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<void*> Member::take_attribute(int key) {
  const std::lock_guard lock(mutex_);
  const auto found = attributes_.find(key);
  if (found == attributes_.end()) return std::nullopt;
  void* const value = found->second;
  attributes_.erase(found);
  return value;
}

std::optional<int> Member::any_attribute() {
  const std::lock_guard lock(mutex_);
  return attributes_.empty() ? std::nullopt : std::optional(attributes_.begin()->first);
}

void Member::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (mailbox_ != nullptr) mailbox_->close();
  if (meetings_ != nullptr) meetings_->close();
}

void Member::close_group() noexcept {
  if (endpoint_ != nullptr) Mailbox::close_all(*endpoint_);
}

}  // namespace ropewalk::without_mpi
