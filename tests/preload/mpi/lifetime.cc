// lifetime WHAT...: communicators that come and go under the drop-in, and MPI's other traffic while
// a collective is served. Each WHAT is the name of a check below.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "the_mpi.hpp"

namespace {

using namespace test;

// Makes three allreduces, the last of which is served, of numbers that tell the communicators
// apart.
void use(MPI_Comm comm, int number) {
  const int size = size_of(comm);
  for (int i = 0; i < 3; ++i) {
    const int mine = number + i;
    int sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == mine * size, "an allreduce of communicator " + std::to_string(number));
  }
}

MPI_Comm duplicate(MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_Comm made;
  PMPI_Comm_dup(comm, &made);
  return made;
}

// ---- what a process holds

struct Held {
  long descriptors = 0;
  long maps = 0;
  long kilobytes = 0;
};

Held held() {
  Held now_held;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++now_held.descriptors;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now_held.maps;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> now_held.kilobytes;
  }
  return now_held;
}

// Goes through one life of a few communicators, `served` or by MPI alone.
void one_life(int i, bool served) {
  const int rank = rank_of(MPI_COMM_WORLD);
  MPI_Comm all = duplicate();
  MPI_Comm part;
  PMPI_Comm_split(all, rank % 2, -rank, &part);
  if (served) {
    use(all, i);
    use(part, i + 7);
  }
  MPI_Comm_free(&all);
  if (i % 2 == 0) {
    MPI_Comm_disconnect(&part);
  } else {
    MPI_Comm_free(&part);
  }
}

Held growth(int lives, bool served) {
  const Held before = held();
  for (int i = 0; i < lives; ++i) one_life(i, served);
  PMPI_Barrier(MPI_COMM_WORLD);
  const Held after = held();
  return {after.descriptors - before.descriptors, after.maps - before.maps,
          after.kilobytes - before.kilobytes};
}

void churn() {
  // Over nodes a communicator takes some 10 ms where ranks share cores: most of it in MPI's splits
  // and exchanges, none of it in waits for something lost.
  const int part = std::getenv("ROPEWALK_NODES") == nullptr ? 1 : 5;
  growth(100 / part, true);  // what is kept for the next ones
  const Held plain = growth(400 / part, false);
  const Held served = growth(1000 / part, true);
  const auto text = [&](long ours, long theirs) {
    return ": " + std::to_string(ours) + ", without collectives " + std::to_string(theirs);
  };
  expect(served.descriptors <= 2, "descriptors" + text(served.descriptors, plain.descriptors));
  expect(served.maps <= plain.maps * 3 + 20, "maps" + text(served.maps, plain.maps));
  // The address sanitizer keeps what is freed for a while.
  const bool kept = dlsym(RTLD_DEFAULT, "__asan_init") != nullptr;
  expect(kept || served.kilobytes <= plain.kilobytes * 5 / 2 + 3000,
         "kilobytes" + text(served.kilobytes, plain.kilobytes));
}

// ---- orders

// Freed in another order on each rank, handles used again meanwhile.
void orders() {
  const int rank = rank_of(MPI_COMM_WORLD);
  for (int round = 0; round < 40; ++round) {
    std::vector<MPI_Comm> comms;
    for (int i = 0; i < 6; ++i) {
      comms.push_back(duplicate());
      use(comms.back(), round + i);
    }
    std::rotate(comms.begin(), comms.begin() + (rank + round) % 6, comms.end());
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    // The same handle may come back for half of the ranks.
    MPI_Comm half;
    PMPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 2, rank, &half);
    use(half, 1000 + round);
    MPI_Comm_free(&half);
  }
}

// The root of a broadcast leaves and frees while the others come later; and the other way round.
void left_behind() {
  const int rank = rank_of(MPI_COMM_WORLD);
  for (int round = 0; round < 30; ++round) {
    MPI_Comm comm = duplicate();
    use(comm, round);
    std::vector<int> data(round % 3 == 0 ? 100000 : 4, rank == 0 ? round : -1);
    if (rank != 0 && round % 2 == 0) usleep(2000);
    MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_INT, 0, comm);
    MPI_Comm_free(&comm);
    expect(data.front() == round && data.back() == round, "a broadcast whose root has left");
  }
}

// ---- attributes

int deleted = 0;
int count_delete(MPI_Comm, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}
// Makes a collective on the communicator while it is freed.
int use_and_delete(MPI_Comm comm, int, void*, void*) {
  use(comm, 5);
  ++deleted;
  return MPI_SUCCESS;
}

void attributes() {
  int before = MPI_KEYVAL_INVALID;
  int after = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &use_and_delete, &before, nullptr);
  PMPI_Comm_create_keyval(MPI_COMM_DUP_FN, &count_delete, &after, nullptr);
  MPI_Comm comm = duplicate();
  PMPI_Comm_set_attr(comm, before, &before);
  use(comm, 1);
  PMPI_Comm_set_attr(comm, after, &after);
  PMPI_Comm_delete_attr(comm, after);
  expect(deleted == 1, "the delete function of a deleted attribute");
  PMPI_Comm_set_attr(comm, after, &after);
  MPI_Comm copy = duplicate(comm);
  use(copy, 2);
  MPI_Comm_free(&comm);
  expect(deleted == 3, "the delete functions of a freed communicator");
  use(copy, 3);
  // The handle may be this one's now; nothing is left of the communicator it was.
  MPI_Comm half;
  PMPI_Comm_split(MPI_COMM_WORLD, rank_of(MPI_COMM_WORLD) % 2, 0, &half);
  use(half, 4);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  expect(deleted == 4, "the delete function of a copied attribute");
  PMPI_Comm_free_keyval(&before);
  PMPI_Comm_free_keyval(&after);
}

// ---- threads

void threads() {
  int provided = 0;
  PMPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return skip("threads: this MPI has no MPI_THREAD_MULTIPLE");
  std::vector<MPI_Comm> parents;
  for (int i = 0; i < 3; ++i) parents.push_back(duplicate());
  std::vector<std::thread> running;
  for (int thread = 0; thread < 3; ++thread) {
    running.emplace_back([&, thread] {
      const MPI_Comm parent = parents[static_cast<std::size_t>(thread)];
      for (int i = 0; i < 25; ++i) {
        MPI_Comm part;
        PMPI_Comm_split(parent, (rank_of(parent) + i) % 2, 0, &part);
        use(part, thread * 1000 + i);
        MPI_Comm_free(&part);
        use(parent, thread * 1000 + i);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (MPI_Comm& parent : parents) MPI_Comm_free(&parent);
}

// ---- other traffic

// What is nonblocking is MPI's; it is under way while blocking calls of the same communicator are
// served.
void nonblocking() {
  MPI_Comm comm = duplicate();
  use(comm, 1);
  const int size = size_of(comm);
  for (int round = 0; round < 50; ++round) {
    const int mine = round;
    int sum = 0;
    int served = 0;
    int max = 0;
    std::array<MPI_Request, 2> requests{};
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, requests.data());
    MPI_Allreduce(&mine, &served, 1, MPI_INT, MPI_SUM, comm);
    MPI_Iallreduce(&mine, &max, 1, MPI_INT, MPI_MAX, comm, &requests[1]);
    MPI_Barrier(comm);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect(sum == round * size && served == sum && max == round, "nonblocking and blocking");
  }
  MPI_Comm_free(&comm);
}

// Receives from any source with any tag, posted on the same communicator, get the program's
// messages and nothing else.
void wildcards() {
  MPI_Comm comm = duplicate();
  const int rank = rank_of(comm);
  const int size = size_of(comm);
  for (int round = 0; round < 50; ++round) {
    int got = -1;
    const int sent = round * 100 + rank;
    MPI_Request receive;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    use(comm, round);
    MPI_Send(&sent, 1, MPI_INT, (rank + 1) % size, round, comm);
    MPI_Status status;
    MPI_Wait(&receive, &status);
    MPI_Barrier(comm);  // before the next round's messages
    expect(status.MPI_TAG == round && got == round * 100 + (rank + size - 1) % size,
           "a message to a receive from any source");
  }
  MPI_Comm_free(&comm);
}

// A rank that waits in a served collective is the sender of a long message, which its peer must
// have before it comes.
void progress() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  expect(size >= 2, "progress takes two ranks");
  if (size < 2) return;
  use(MPI_COMM_WORLD, 1);
  std::vector<char> message(std::size_t{8} << 20, static_cast<char>(rank + 1));
  for (int kind = 0; kind < 4; ++kind) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int bytes = static_cast<int>(message.size());
    if (rank == 0) MPI_Isend(message.data(), bytes, MPI_CHAR, 1, kind, MPI_COMM_WORLD, &request);
    if (rank == 1) {
      usleep(20000);
      MPI_Recv(message.data(), bytes, MPI_CHAR, 0, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect(message.back() == 1, "a long message");
    }
    std::vector<int> data(50000, 1);
    std::vector<int> sum(50000);
    if (kind == 0) MPI_Barrier(MPI_COMM_WORLD);
    if (kind == 1) MPI_Bcast(data.data(), 4, MPI_INT, 1, MPI_COMM_WORLD);
    if (kind == 2) MPI_Allreduce(data.data(), sum.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (kind == 3) MPI_Allreduce(data.data(), sum.data(), 50000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// ---- the end

MPI_Comm alive = MPI_COMM_NULL;

void after_exit() {
  int flag = 0;
  PMPI_Finalized(&flag);
  if (flag == 0) _exit(3);
}

void ends_with_communicators() {
  for (int i = 0; i < 20; ++i) {
    alive = duplicate();
    use(alive, i);
  }
  std::atexit(&after_exit);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> checks = {
      {"churn", &churn},           {"orders", &orders},     {"left_behind", &left_behind},
      {"attributes", &attributes}, {"threads", &threads},   {"nonblocking", &nonblocking},
      {"wildcards", &wildcards},   {"progress", &progress}, {"ends", &ends_with_communicators}};
  // MPI begins late, and from a process that has had threads.
  std::thread([] { usleep(1000); }).join();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  end_after(150);
  for (int i = 1; i < argc; ++i) {
    now(argv[i]);
    checks.at(argv[i])();
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  const int result = status();
  MPI_Finalize();
  return result;
}
