// The protocol of flags and the copies between; direct.hpp has its invariants.
#include "halo/direct.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "node/peers.hpp"
#include "ropewalk/error.hpp"
#include "topology/machine.hpp"

namespace ropewalk::halo {

namespace {

// Polls of a waiting rank before it helps a neighbour with a face: about 1 us, in which a neighbour
// that is there begins itself, into its own cache. On a shared core it is not there.
constexpr unsigned polls_before_help = 16;

struct LastLevel {
  std::size_t bytes = std::size_t{16} << 20;  // where nobody says
  double share = 1;                           // of the machine's CPUs that use it
};

const LastLevel& last_level() {
  static const LastLevel level = [] {
    LastLevel out;
    const std::vector<int> cpus = topology::usable_cpus().cpus;
    if (cpus.empty()) return out;
    const topology::Machine machine = topology::read_machine();
    const std::size_t found = machine.last_level_cache_bytes(cpus.front());
    if (found == 0) return out;
    out.bytes = found;
    for (const topology::Cache& cache : machine.caches) {
      const bool own =
          std::find(cache.cpus.begin(), cache.cpus.end(), cpus.front()) != cache.cpus.end();
      if (own && cache.bytes == found) {
        out.share =
            static_cast<double>(cache.cpus.size()) / static_cast<double>(machine.cpus.size());
      }
    }
    return out;
  }();
  return level;
}

// Runs longer than this are stored around the caches. What the ranks of a last-level cache send and
// receive in an exchange does not fit there: then all are, since the reader of one face would find
// its beginning evicted anyway, and a plain store reads the line first.
std::size_t streaming_threshold(std::size_t bytes_a_rank, const node::Team* team,
                                std::size_t least) {
  const double ranks = team == nullptr ? 1 : std::max(1.0, team->size() * last_level().share);
  const double all = 2 * static_cast<double>(bytes_a_rank) * ranks;
  return all > static_cast<double>(last_level().bytes) ? least : last_level().bytes;
}

}  // namespace

std::size_t FaceCopies::bytes() const noexcept {
  std::size_t sum = 0;
  for (const kernels::StridedCopy& field : plain[0]) sum += field.bytes();
  for (const KernelCopy& field : by_kernel) sum += field.bytes();
  return sum;
}

DirectCarrier::DirectCarrier(std::shared_ptr<transport::LaneSet> lanes, node::Team* team,
                             Transfers transfers)
    : lanes_(std::move(lanes)),
      team_(team),
      flags_(std::move(transfers.flags)),
      incoming_(std::move(transfers.incoming)),
      outgoing_(std::move(transfers.outgoing)),
      left_(std::move(transfers.left)),
      packs_(std::move(transfers.packs)),
      memory_(std::move(transfers.memory)),
      workers_(std::move(transfers.workers)) {
  for (std::vector<FaceTransfer>* faces : {&incoming_, &outgoing_}) {
    for (FaceTransfer& face : *faces) face.bytes = face.copies.bytes();
  }
  for (const FaceTransfer& face : incoming_) bytes_ += face.bytes;
  streaming_bytes_ = streaming_threshold(bytes_, team_, limits_.streaming_bytes);
}

DirectCarrier::~DirectCarrier() {
  if (!lanes_->is_here()) {
    // In a child of fork neither the team nor the neighbours' memory is there.
    flags_.abandon();
    // What is attached is kept: its module must not be called here.
    static_cast<void>(new (std::nothrow) std::shared_ptr<channel::PeerMemory>(std::move(memory_)));
  } else if (team_ != nullptr && !failed_) {
    end();
  }
}

void DirectCarrier::end() noexcept {
  if (unwinding_) return give_up();
  try {
    wait();
    flags_.retire(exchange_);
  } catch (...) {  // a neighbour has died or given up; wait() has given up in turn
  }
}

template <class Body>
void DirectCarrier::guarded(Body&& body) {
  try {
    body();
  } catch (...) {
    give_up();
    throw;
  }
}

void DirectCarrier::start() {
  lanes_->require_usable();
  ++exchange_;
  started_ = true;
  if (team_ == nullptr) return;
  workers_->run(packs_[exchange_ % 2]);
  // Pairs with the acquire in claim() of the neighbours: they see what this rank has written, and
  // what it has read it has read.
  flags_.started().number.store(exchange_, std::memory_order_release);
  team_->waits().wake_sleepers();
}

// Nobody knows when the next call comes: it helps at once.
bool DirectCarrier::test() { return look(0); }

bool DirectCarrier::poll() { return look(patience()); }

unsigned DirectCarrier::patience() const noexcept {
  return team_ == nullptr || team_->waits().crowded() ? 0 : polls_before_help;
}

bool DirectCarrier::look(unsigned patience) {
  if (failed_ || !lanes_->is_here()) lanes_->require_usable();
  if (!started_) return true;
  if (team_ == nullptr) return finish(), true;
  guarded([&] {
    if (!advance(patience) && ++tests_ % tests_per_look == 0) team_->waits().look_around();
  });
  return !started_;
}

void DirectCarrier::wait() {
  if (!started_) return;
  if (!lanes_->is_here()) lanes_->require_usable();
  if (team_ == nullptr) return finish();
  const unsigned patience = this->patience();
  guarded([&] { team_->waits().until([&] { return advance(patience); }); });
}

// Copies what comes in, then helps with what goes out. Returns true when all is there.
bool DirectCarrier::advance(unsigned patience) {
  const std::uint64_t before = copies_made_;
  std::size_t open = go_through(incoming_, 0);
  open += go_through(outgoing_, patience);
  if (copies_made_ != before) team_->waits().wake_sleepers();
  if (refused_ >= 0) kernel_refused();
  if (gone_ >= 0) neighbour_gave_up(gone_);
  if (open == 0) finish();
  return open == 0;
}

// Claims and copies faces that it has found unclaimed for more than `patience` polls. Returns the
// number of faces that are still not copied.
std::size_t DirectCarrier::go_through(std::vector<FaceTransfer>& faces,
                                      unsigned patience) noexcept {
  // A face that goes out lies in the neighbour's caches, as far as the neighbour has read it. Plain
  // stores would take its lines back one by one.
  const bool goes_out = &faces == &outgoing_;
  const std::size_t streaming = goes_out ? limits_.streaming_bytes : streaming_bytes_;
  std::size_t open = 0;
  for (std::size_t i = 0; i < faces.size();) {
    const std::size_t first = i;
    std::size_t bytes = 0;
    // Small faces are claimed together before the first is copied: a compare-exchange waits for the
    // stores of a copy before it. Larger ones are claimed one by one, so that the neighbour can
    // help.
    do {
      if (seen_copied(faces[i])) continue;
      ++open;
      if (claim(faces[i], patience)) bytes += faces[i].bytes;
    } while (++i < faces.size() && bytes < limits_.claimed_bytes);
    if (bytes == 0) continue;
    for (std::size_t k = first; k < i; ++k) {
      if (faces[k].mine) copy(faces[k], streaming), --open;
    }
  }
  return open;
}

bool DirectCarrier::seen_copied(FaceTransfer& face) const noexcept {
  if (face.finished == exchange_) return true;
  // Pairs with the release in copy() of the neighbour.
  if (face.copied->number.load(std::memory_order_acquire) != exchange_) return false;
  face.finished = exchange_;
  face.polls = 0;
  return true;
}

// Returns true when this rank has to copy the face. Both sides may come here at the same time, and
// one of them goes on. That one must copy, since the other waits for it, so nothing is thrown
// between here and the copy.
bool DirectCarrier::claim(FaceTransfer& face, unsigned patience) noexcept {
  // Pairs with the release in start() of the neighbour.
  const std::uint64_t started = face.started->number.load(std::memory_order_acquire);
  if (started < exchange_) return false;
  if (started == withdrawn) {
    if (!seen_copied(face)) gone_ = face.peer;  // it may have gone after the copy
    return false;
  }
  if (face.taken == exchange_ || face.copies.empty() || face.polls++ < patience) return false;
  face.polls = 0;
  std::uint64_t claimed = exchange_ - 1;
  face.mine = face.claim->number.compare_exchange_strong(
      claimed, exchange_, std::memory_order_acquire, std::memory_order_relaxed);
  if (claimed == withdrawn) gone_ = face.peer;
  face.taken = exchange_;
  return face.mine;
}

void DirectCarrier::copy(FaceTransfer& face, std::size_t streaming_bytes) noexcept {
  const bool complete = copied(face, streaming_bytes);
  if (!complete) refused_ = face.peer, refusal_ = errno;
  face.mine = false;
  face.finished = exchange_;
  ++copies_made_;
  // Releases what was read and written: the neighbour that acquires it in seen_copied() may do the
  // same.
  face.copied->number.store(complete ? exchange_ : withdrawn, std::memory_order_release);
}

// False, and errno says why, where the kernel has refused.
bool DirectCarrier::copied(FaceTransfer& face, std::size_t streaming_bytes) noexcept {
  workers_->run(face.copies.plain_of(exchange_), streaming_bytes);
  std::vector<KernelCopy>& by_kernel = face.copies.by_kernel;
  std::atomic<int> refusal{0};  // errno is that of the worker whose copy was refused
  workers_->share(by_kernel.size(), [&](std::size_t i) {
    if (!by_kernel[i].run(*memory_, face.place)) refusal.store(errno, std::memory_order_relaxed);
  });
  const int number = refusal.load(std::memory_order_relaxed);
  if (number != 0) errno = number;
  return number == 0;
}

// This rank looks at nothing of this exchange any more. The releases pair with the acquire in
// FlagBlock::all_left.
void DirectCarrier::finish() noexcept {
  started_ = false;
  for (FlagLine* line : left_) line->number.store(exchange_, std::memory_order_release);
}

void DirectCarrier::give_up() noexcept {
  if (std::exchange(failed_, true) || team_ == nullptr || !lanes_->is_here()) return;
  if (started_) {
    lanes_->mark_broken();
    for (FaceTransfer& face : incoming_) withdraw(face);
    for (FaceTransfer& face : outgoing_) withdraw(face);
    finish();
  }
  flags_.started().number.store(withdrawn, std::memory_order_release);
  team_->waits().wake_sleepers();
  flags_.abandon();
}

// Whoever has claimed it could not copy it.
bool DirectCarrier::given_up(const FaceTransfer& face) noexcept {
  // Pairs with the release in copy() of the neighbour, which touches the face no more.
  return face.copied->number.load(std::memory_order_acquire) == withdrawn;
}

// Takes back a face that nobody has claimed. Where a neighbour is copying it, waits for the end of
// that while the neighbour lives.
void DirectCarrier::withdraw(FaceTransfer& face) noexcept {
  if (seen_copied(face)) return;
  std::uint64_t claimed = exchange_ - 1;
  if (face.claim->number.compare_exchange_strong(claimed, withdrawn, std::memory_order_relaxed) ||
      claimed == withdrawn) {
    return;
  }
  while (!seen_copied(face) && !given_up(face) && !node::is_dead(team_->peer(face.place))) {
    std::this_thread::yield();
  }
}

// The death of a rank makes its neighbours give up, and then theirs. So an error that names the
// dead rank comes first, though it may take a moment until one of another node is known here.
void DirectCarrier::neighbour_gave_up(int peer) const {
  team_->waits().look_around();
  lanes_->lost().explain();
  throw Error(ErrorCode::mpi, "halo: rank " + std::to_string(peer) +
                                  " gave up an exchange, expected its data; see its error, and "
                                  "make new endpoints and halos on all ranks");
}

// The memory of a process that ends vanishes before the process itself, so the death of the rank is
// the better answer.
void DirectCarrier::kernel_refused() const {
  constexpr int looks = 500;  // one a millisecond
  for (int look = 0; look < looks; ++look) {
    team_->waits().look_around();
    if (refusal_ != ESRCH) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error(ErrorCode::system,
              "halo: the kernel refused a copy between private memory of this rank and of rank " +
                  std::to_string(refused_) +
                  " (process_vm_readv, process_vm_writev: " + std::strerror(refusal_) +
                  "), expected fields or faces that are still where they were when the halo was "
                  "made; keep them until it ends, or allocate them with ropewalk::Buffer or "
                  "rw_alloc");
}

}  // namespace ropewalk::halo
