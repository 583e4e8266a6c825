// Where the other ranks of a group reach this one: a listening socket, the addresses at which this
// rank reaches them, and the connections that have come, until their communicator takes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "node/monitored_process.hpp"
#include "os/network.hpp"
#include "without_mpi/socket.hpp"
#include "without_mpi/wire.hpp"

namespace ropewalk::without_mpi {

struct Arrival {
  int source;  // rank in the group
  Socket socket;
};

class Endpoint {
 public:
  // Listens on a port of the kernel's choice, and answers questions from now on. Throws
  // Error(system) where there is no network, and Error(argument) where ROPEWALK_INTERFACE names
  // none.
  explicit Endpoint(int rank);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // How the other ranks of the group reach this one, which they must be told.
  const node::Contact& own() const noexcept { return own_; }
  // To be called on all ranks of the group, with what each has told. It tries the addresses of the
  // others, and keeps of those that answer the one whose interface is the fastest. Throws
  // Error(system) that names the rank where none does.
  void find_routes(std::span<const node::Contact> contacts);
  // To be called when all ranks have found their routes.
  void stop_answering() noexcept;

  // Connects to a rank of the group, for the messages of a communicator. The other rank need not
  // do anything meanwhile. Throws Error(system) where there is no connection to be had.
  Socket connect(int rank, const std::string& communicator) const;
  // What errors call a rank: "rank 3 on node n2 (10.0.0.2, process 4711)".
  std::string described(int rank) const;

  // Takes connections from the kernel. Any thread may call it. Throws Error(system) where the
  // system has no descriptor for one.
  void accept();
  const os::Descriptor& listener() const noexcept { return listener_.get(); }
  // Rises with every connection whose greeting has come.
  std::uint32_t arrivals() const noexcept { return arrivals_.load(std::memory_order_acquire); }
  bool greets() const noexcept { return greeting_.load(std::memory_order_relaxed) > 0; }
  // Returns the connections that have come for a communicator.
  std::vector<Arrival> take(const std::string& communicator);
  // Connections for this communicator are closed from now on, so that their ranks learn that this
  // one has left it.
  void refuse(const std::string& communicator);

 private:
  class Answering;
  struct Unknown {  // a connection whose greeting has not all come
    Socket socket;
    std::int64_t since_ns;
    std::vector<std::byte> bytes;
  };
  struct Greeted {
    std::string communicator;
    Arrival arrival;
  };
  bool read_greeting(Unknown&);
  void admit(Unknown&, const Greeting&);
  void look_at_unknown(std::int64_t now);
  os::Address route_to(std::size_t rank) const;

  int rank_;
  node::Contact own_;
  Socket listener_;
  std::vector<node::Contact> contacts_;
  std::vector<os::Address> routes_;

  std::mutex mutex_;  // guards what has come; no other mutex is taken under it
  std::vector<Unknown> unknown_;
  std::vector<Greeted> greeted_;
  std::set<std::string> refused_;
  std::int64_t looked_ns_ = 0;              // at the unknown
  std::atomic<std::uint32_t> arrivals_{0};  // its release pairs with the acquire of arrivals()
  std::atomic<std::size_t> greeting_{0};
  std::unique_ptr<Answering> answering_;  // is the last, since its thread uses the others
};

}  // namespace ropewalk::without_mpi
