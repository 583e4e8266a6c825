// Messages of ranks that are processes. Ranks that are threads of one process move each other's
// messages, so that they cannot show who moves a message.
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/store_communicator.hpp"

namespace ropewalk::test {
namespace {

namespace fs = std::filesystem;

// A store of one file for each key.
class FolderStore final : public KeyValueStore {
 public:
  explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, const std::string& value) override {
    const fs::path whole = path(key);
    const fs::path partial = whole.string() + "." + std::to_string(getpid());
    std::ofstream(partial, std::ios::binary) << value;
    fs::rename(partial, whole);
  }
  std::string get(const std::string& key) override {
    for (int look = 0; look < 20000; ++look) {
      if (std::ifstream file(path(key), std::ios::binary); file) {
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("nobody has set " + key);
  }
  void remove(const std::string& key) override { fs::remove(path(key)); }

 private:
  fs::path path(std::string key) const {
    for (char& letter : key) {
      if (letter == '/') letter = '_';
    }
    return folder_ / key;
  }
  fs::path folder_;
};

constexpr unsigned patience_s = 30;  // ends a rank that hangs

// Calls body(communicator, rank, folder), which returns whether all was as it should be, in two
// children. The folder is there until both have ended.
template <class Body>
void run_processes(const Body& body) {
  std::string name = (fs::temp_directory_path() / "ropewalk-store-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(patience_s);
      setenv("ROPEWALK_NODES", "1", 1);
      bool fine = false;
      {
        const StoreCommunicator own(std::make_shared<FolderStore>(name), rank, 2);
        fine = body(mpi::Comm{own.communicator().handle()}, rank, fs::path(name));
      }
      _exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  fs::remove_all(name);
}

const std::vector<char> data(std::size_t{64} << 20, 'x');  // more than sockets hold

void complete(mpi::Request& request) {
  while (!mpi::test(request)) {
  }
}

TEST(ProcessesWithoutMpi, AMessageMovesWhileItsSenderWaitsForTheOthers) {
  run_processes([](mpi::Comm comm, int rank, const fs::path&) {
    if (rank == 0) {
      mpi::Request request = mpi::isend(data.data(), data.size(), 1, 0, comm);
      mpi::barrier(comm);
      complete(request);
      return true;
    }
    std::vector<char> got(data.size());
    mpi::receive(got.data(), got.size(), 0, 0, comm);
    mpi::barrier(comm);
    return got == data;
  });
}

// The long send moves on only while its rank tests a request of another communicator.
TEST(ProcessesWithoutMpi, AMessageMovesWhileItsSenderWaitsInAnotherCommunicator) {
  run_processes([](mpi::Comm comm, int rank, const fs::path&) {
    mpi::Comm other = mpi::dup(comm);
    std::vector<char> got(data.size());
    char answer = 0;
    if (rank == 0) {
      mpi::Request request = mpi::isend(data.data(), data.size(), 1, 0, comm);
      mpi::Request received = mpi::ireceive(&answer, 1, 1, 0, other);
      complete(received);
      complete(request);
    } else {
      mpi::receive(got.data(), got.size(), 0, 0, comm);
      mpi::send(got.data(), 1, 0, 0, other);
    }
    mpi::barrier(comm);
    mpi::free(other);
    return rank == 0 ? answer == 'x' : got == data;
  });
}

// Its buffer is not written to any more, though its sender is silent in the middle of the message.
TEST(ProcessesWithoutMpi, AReceiveIsGivenUpInTheMiddle) {
  run_processes([](mpi::Comm comm, int rank, const fs::path& folder) {
    const fs::path given_up = folder / "given-up";
    int next = 17;
    if (rank == 0) {
      mpi::Request request = mpi::isend(data.data(), data.size(), 1, 0, comm);
      while (!fs::exists(given_up)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      complete(request);
      mpi::send(&next, sizeof next, 1, 0, comm);
      return true;
    }
    std::vector<char> got(data.size());
    mpi::Request request = mpi::ireceive(got.data(), got.size(), 0, 0, comm);
    while (got[1000] != 'x') mpi::test(request);
    const bool withdrawn = mpi::withdraw(request);
    std::ranges::fill(got, 'z');
    std::ofstream{given_up};
    mpi::receive(&next, sizeof next, 0, 0, comm);
    return withdrawn && next == 17 && std::ranges::all_of(got, [](char one) { return one == 'z'; });
  });
}

// A child of fork keeps no connection open: the other rank sees the end of this one.
TEST(ProcessesWithoutMpi, TheEndOfARankIsSeenThoughAChildOfItLives) {
  run_processes([](mpi::Comm comm, int rank, const fs::path& folder) {
    char byte = 'y';
    if (rank == 0) {
      mpi::send(&byte, 1, 1, 0, comm);
      if (fork() == 0) {
        for (unsigned s = 0; s < 2 * patience_s && fs::exists(folder); ++s) sleep(1);
      }
      _exit(0);
    }
    mpi::receive(&byte, 1, 0, 0, comm);
    try {
      mpi::receive(&byte, 1, 0, 0, comm);
    } catch (const Error& error) {
      return std::string(error.what()).find("rank 0 on node") != std::string::npos;
    }
    return false;
  });
}

}  // namespace
}  // namespace ropewalk::test
