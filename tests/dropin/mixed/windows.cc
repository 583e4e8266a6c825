// One-sided communication, often with a rank that waits in a collective meanwhile. A window lives
// between two steps of its communicator and knows one way to synchronise:
//   fence    rounds of MPI_Win_fence
//   post     one rank exposes its window to some: MPI_Win_post, start, complete, wait
//   short    locks, exclusive ones too, within a step
//   long     shared locks, and MPI_Win_lock_all, that are held over several steps
// Each rank's memory: what everybody may read, counters that everybody adds to, and room that each
// put has for itself; so the end is known whatever the order.
#include "windows.hpp"

#include <algorithm>

namespace mixed {

namespace {

constexpr std::size_t readable = 8192, counters = 16;
constexpr std::size_t puts_begin = readable + counters * sizeof(std::int64_t);
enum Mode { fence, post, short_locks, long_locks };
constexpr const char* mode_names[] = {"fence", "post", "short locks", "long locks"};

}  // namespace

void Window::create() {
  bytes_ = puts_begin + room;
  if (allocated) {
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes_), 1, MPI_INFO_NULL, comm->handle, &memory_,
                     &window_);
  } else {
    storage_.resize(bytes_);
    memory_ = storage_.data();
  }
  std::fill(memory_, memory_ + bytes_, '\0');
  fill_bytes(memory_, readable, key(comm->index));
  if (!allocated) {
    MPI_Win_create(memory_, static_cast<MPI_Aint>(bytes_), 1, MPI_INFO_NULL, comm->handle,
                   &window_);
  }
  MPI_Barrier(comm->handle);  // what is read and added to is there
}

void Window::access(const Access& access) {
  const int target = access.target_of(*comm->own);
  const auto displacement = static_cast<MPI_Aint>(puts_begin + access.offset);
  const int bytes = static_cast<int>(access.bytes);
  const auto counter = static_cast<MPI_Aint>(readable + access.counter * sizeof(std::int64_t));
  switch (access.what) {
    case Access::put:
      held_.emplace_back(new Buffer(bytes_layout(), access.bytes, access.bytes % 2 == 0));
      held_.back()->fill(0, access.bytes, access.key);
      MPI_Put(held_.back()->data(), bytes, MPI_BYTE, target, displacement, bytes, MPI_BYTE,
              window_);
      return;
    case Access::get: {
      const int most = std::min<int>(bytes, readable);
      held_.emplace_back(new Buffer(bytes_layout(), static_cast<std::size_t>(most), false));
      got_.push_back({held_.back().get(), key(target)});
      MPI_Get(held_.back()->data(), most, MPI_BYTE, target, 0, most, MPI_BYTE, window_);
      return;
    }
    case Access::add:
      MPI_Accumulate(&access.value, 1, MPI_INT64_T, target, counter, 1, MPI_INT64_T, MPI_SUM,
                     window_);
      return;
    case Access::fetch:
      MPI_Fetch_and_op(&access.value, &fetched_[access.counter], MPI_INT64_T, target, counter,
                       MPI_SUM, window_);
      return;
    case Access::swap:  // never equal: a read
      MPI_Compare_and_swap(&access.value, &never_, &fetched_[access.counter], MPI_INT64_T, target,
                           counter, window_);
      return;
  }
}

void Window::run(const Epoch& epoch) {
  for (const Access& one : epoch.accesses) {
    if (one.origin == world_rank) access(one);
  }
}

// All that was started is complete at this rank.
void Window::completed() {
  for (const Got& got : got_) {
    expect(got.buffer->take(0, got.buffer->elements(), got.key), "the bytes of MPI_Get");
    expect(got.buffer->untouched(), "nothing else was written by MPI_Get");
  }
  got_.clear();
  held_.clear();
}

void Window::run_locked(const Epoch& epoch) {
  for (const Access& one : epoch.accesses) {
    const int target = one.target_of(*comm->own);
    MPI_Win_lock(one.exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, window_);
    access(one);
    if (one.flush) {
      MPI_Win_flush(target, window_);
      completed();
    }
    MPI_Win_unlock(target, window_);
    completed();
  }
}

void Window::end() {
  MPI_Barrier(comm->handle);
  const bool passive = mode == short_locks || mode == long_locks;
  if (passive) MPI_Win_lock(MPI_LOCK_SHARED, comm->index, 0, window_);
  bool right = holds_bytes(memory_, readable, key(comm->index));
  std::int64_t sums[counters] = {}, found[counters];
  for (const Epoch& epoch : epochs) {
    for (const Access& one : epoch.accesses) {
      if (comm->own->index_of(one.origin) < 0) continue;
      if (one.target_of(*comm->own) != comm->index) continue;
      if (one.what == Access::add || one.what == Access::fetch) sums[one.counter] += one.value;
      if (one.what == Access::put) {
        right &= holds_bytes(memory_ + puts_begin + one.offset, one.bytes, one.key);
      }
    }
  }
  std::copy_n(memory_ + readable, sizeof found, reinterpret_cast<char*>(found));
  right &= std::equal(found, found + counters, sums);
  digest_bytes(memory_, bytes_, 1);
  expect(right, "what others have put into the window and added to it");
  if (passive) MPI_Win_unlock(comm->index, window_);
  MPI_Win_free(&window_);
}

namespace {

class Planner {
 public:
  Planner(Schedule& schedule, std::shared_ptr<Window> window)
      : schedule_(schedule), random_(schedule.random), w_(std::move(window)) {}

  void plan() {
    const double made = schedule_.begin();
    const Ranks all = w_->comm->ranks();
    schedule_.add(made, all, "make a" + text(), [w = w_] { w->create(); });
    double last = made;
    if (w_->mode == fence) last = plan_fences(made);
    if (w_->mode == post) last = plan_posts(made);
    if (w_->mode == short_locks) last = plan_short(made);
    if (w_->mode == long_locks) last = plan_long(made);
    schedule_.add(schedule_.after(last), all, "check and free the" + text(),
                  [w = w_] { w->end(); });
  }

 private:
  std::string text() const {
    return std::string(" window (") + mode_names[w_->mode] + ") of " + w_->comm->name;
  }

  Access draw(int origin) {
    Access made;
    made.origin = origin;
    made.target = random_.next() >> 8;
    made.what = static_cast<Access::What>(random_.below(5));
    const Data data = draw_data(random_, 200000);
    made.bytes = data.bytes;
    made.key = data.key;
    made.counter = random_.below(counters);
    made.value = static_cast<std::int64_t>(random_.between(1, 1000));
    made.exclusive = made.what == Access::swap || random_.chance(50);  // swaps mix with no sum
    made.flush = random_.chance(50);
    if (made.what == Access::put) {
      made.offset = w_->room;
      w_->room += data.bytes;
    }
    // Counters are read and added to by one kind of call in one epoch, a result has one place.
    if (w_->mode == fence || w_->mode == post || w_->mode == long_locks) {
      if (made.what == Access::fetch || made.what == Access::swap) made.what = Access::add;
    }
    return made;
  }

  std::shared_ptr<const Epoch> epoch(const std::vector<int>& origins, std::size_t most) {
    w_->epochs.emplace_back();
    for (const int origin : origins) {
      for (std::size_t n = random_.between(1, most); n > 0; --n) {
        w_->epochs.back().accesses.push_back(draw(origin));
      }
    }
    return std::make_shared<const Epoch>(w_->epochs.back());
  }

  std::vector<int> members() const {
    std::vector<int> ranks;
    for (const Group& group : w_->comm->groups) {
      ranks.insert(ranks.end(), group.world_ranks.begin(), group.world_ranks.end());
    }
    return ranks;
  }

  double plan_fences(double time) {
    const Ranks all = w_->comm->ranks();
    const auto fence_now = [w = w_] { w->fence(); };
    for (std::size_t rounds = random_.between(1, 2); rounds > 0; --rounds) {
      time = schedule_.after(time);
      schedule_.add(time, all, "Win_fence before, on the" + text(), fence_now);
      double last = time;
      for (const int rank : members()) {
        const double now = schedule_.after(time);
        schedule_.add(now, rank, "accesses to the" + text(),
                      [w = w_, e = epoch({rank}, 3)] { w->run(*e); });
        last = std::max(last, now);
      }
      time = schedule_.after(last);
      schedule_.add(time, all, "Win_fence after, on the" + text(), fence_now);
    }
    return time;
  }

  double plan_posts(double time) {
    const Group& group = draw_group(random_, *w_->comm);
    if (group.size() < 2) return time;
    const auto target = random_.below(static_cast<std::size_t>(group.size()));
    std::vector<int> origins;
    for (std::size_t i = 0; i < group.world_ranks.size(); ++i) {
      if (i != target && (origins.empty() || random_.chance(60))) {
        origins.push_back(group.world_ranks[i]);
      }
    }
    const int exposed = group.world_ranks[target];
    const double posted = schedule_.after(time);
    schedule_.add(posted, exposed, "Win_post of the" + text(), [=, w = w_] { w->post(origins); });
    double last = posted;
    for (const int origin : origins) {
      auto made = *epoch({origin}, 3);
      for (Access& one : made.accesses) one.target = target;
      for (Access& one : w_->epochs.back().accesses) one.target = target;
      const double started = schedule_.after(posted), completed = schedule_.after(started);
      schedule_.add(started, origin, "Win_start and accesses to the" + text(),
                    [=, w = w_] { w->start(exposed, made); });
      schedule_.add(completed, origin, "Win_complete of the" + text(), [w = w_] { w->complete(); });
      last = std::max(last, completed);
    }
    const bool tested = random_.chance(30);
    last = schedule_.after(last);
    schedule_.add(last, exposed, (tested ? "Win_test of the" : "Win_wait of the") + text(),
                  [=, w = w_] { w->wait(tested); });
    return last;
  }

  double plan_short(double time) {
    double last = time;
    for (const int rank : members()) {
      for (std::size_t n = random_.below(4); n > 0; --n) {
        const double now = schedule_.after(time);
        schedule_.add(now, rank, "lock, accesses to, unlock the" + text(),
                      [w = w_, e = epoch({rank}, 4)] { w->run_locked(*e); });
        last = std::max(last, now);
      }
    }
    return last;
  }

  double plan_long(double time) {
    double last = time;
    for (const int rank : members()) {
      const double locked = schedule_.after(time);
      double now = locked;
      schedule_.add(locked, rank, "Win_lock_all of the" + text(), [w = w_] { w->lock_all(); });
      for (std::size_t n = random_.between(1, 3); n > 0; --n) {
        now = schedule_.after(now);
        schedule_.add(now, rank, "accesses to the" + text(), [w = w_, e = epoch({rank}, 3)] {
          w->run(*e);
          w->flush_all();
        });
      }
      now = schedule_.after(now);
      schedule_.add(now, rank, "Win_unlock_all of the" + text(), [w = w_] { w->unlock_all(); });
      last = std::max(last, now);
    }
    return last;
  }

  Schedule& schedule_;
  Random& random_;
  std::shared_ptr<Window> w_;
};

}  // namespace

void Window::fence() {
  MPI_Win_fence(0, window_);
  completed();
}

// Returns MPI's group of these ranks of MPI_COMM_WORLD.
static MPI_Group group_of(const std::vector<int>& world_ranks) {
  MPI_Group all, made;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, static_cast<int>(world_ranks.size()), world_ranks.data(), &made);
  MPI_Group_free(&all);
  return made;
}

void Window::post(const std::vector<int>& origins) {
  MPI_Group group = group_of(origins);
  MPI_Win_post(group, 0, window_);
  MPI_Group_free(&group);
}

void Window::start(int target, const Epoch& epoch) {
  MPI_Group group = group_of({target});
  MPI_Win_start(group, 0, window_);
  MPI_Group_free(&group);
  run(epoch);
}

void Window::complete() {
  MPI_Win_complete(window_);
  completed();
}

void Window::wait(bool tested) {
  if (!tested) MPI_Win_wait(window_);
  for (int flag = 0; tested && flag == 0;) MPI_Win_test(window_, &flag);
}

void Window::lock_all() { MPI_Win_lock_all(0, window_); }

void Window::flush_all() {
  MPI_Win_flush_all(window_);
  completed();
}

void Window::unlock_all() { MPI_Win_unlock_all(window_); }

void add_window(Schedule& schedule, const World& world) {
  Random& random = schedule.random;
  const auto window = std::make_shared<Window>();
  window->comm = &draw_comm(random, world);
  window->mode = static_cast<int>(random.below(4));
  window->allocated = random.chance(50);
  window->key_of_window = random.next();
  Planner(schedule, window).plan();
}

}  // namespace mixed
