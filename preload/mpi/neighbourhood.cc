// In a grid whose periods have three or more ranks, every rank knows by itself which block goes
// where. Elsewhere a rank may be a neighbour twice, and MPIs differ in how they pair the blocks
// between two such ranks. So the ranks have MPI exchange blocks that tell where they come from, by
// each of its functions that exchange different blocks. Where these pair the blocks in the same
// way, the drop-in pairs them so as well. The nonblocking functions may pair them in another way
// (Open MPI 5.0.11's do), and are asked where they would be served.
#include "neighbourhood.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "collectives/typed.hpp"
#include "communicators.hpp"
#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "mpi/functions.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::preload {
namespace {

using collectives::IncomingBlock;
using collectives::most_directions;
using mpi::Count;
using mpi::Word;

struct TopologyFunctions {
  int (*topo_test)(Word, int*) = nullptr;
  int (*cartdim_get)(Word, int*) = nullptr;
  int (*cart_get)(Word, int, int*, int*, int*) = nullptr;
  int (*cart_shift)(Word, int, int, int*, int*) = nullptr;
  int (*graph_neighbors)(Word, int, int, int*) = nullptr;
  int (*dist_graph_neighbors)(Word, int, int*, int*, int, int*, int*) = nullptr;
  int (*alltoall)(const void*, int, Word, void*, int, Word, Word) = nullptr;
  int (*alltoallv)(const void*, const int*, const int*, Word, void*, const int*, const int*, Word,
                   Word) = nullptr;
  int (*alltoallw)(const void*, const int*, const Count*, const void*, void*, const int*,
                   const Count*, const void*, Word) = nullptr;
  int (*ialltoall)(const void*, int, Word, void*, int, Word, Word, Word*) = nullptr;
  int (*ialltoallv)(const void*, const int*, const int*, Word, void*, const int*, const int*, Word,
                    Word, Word*) = nullptr;
  int (*ialltoallw)(const void*, const int*, const Count*, const void*, void*, const int*,
                    const Count*, const void*, Word, Word*) = nullptr;
};

template <class Function>
void find(void* file, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(file, name));
  if (function == nullptr) throw Error(ErrorCode::mpi, std::string("mpi: no ") + name);
}

TopologyFunctions load() {
  TopologyFunctions call;
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (file == nullptr) file = RTLD_DEFAULT;
  find(file, call.topo_test, "PMPI_Topo_test");
  find(file, call.cartdim_get, "PMPI_Cartdim_get");
  find(file, call.cart_get, "PMPI_Cart_get");
  find(file, call.cart_shift, "PMPI_Cart_shift");
  find(file, call.graph_neighbors, "PMPI_Graph_neighbors");
  find(file, call.dist_graph_neighbors, "PMPI_Dist_graph_neighbors");
  find(file, call.alltoall, "PMPI_Neighbor_alltoall");
  find(file, call.alltoallv, "PMPI_Neighbor_alltoallv");
  find(file, call.alltoallw, "PMPI_Neighbor_alltoallw");
  find(file, call.ialltoall, "PMPI_Ineighbor_alltoall");
  find(file, call.ialltoallv, "PMPI_Ineighbor_alltoallv");
  find(file, call.ialltoallw, "PMPI_Ineighbor_alltoallw");
  return call;
}

const TopologyFunctions& mpi_call() {
  static const TopologyFunctions loaded = load();
  return loaded;
}

// ---- grids

struct Grid {
  std::vector<int> peers;  // below and above in each dimension, -1 for none
  bool tight = false;      // a dimension wraps around in one or two steps
};

Grid grid_of(mpi::Comm comm) {
  int dimensions = 0;
  mpi::check(mpi_call().cartdim_get(comm.value, &dimensions), "MPI_Cartdim_get");
  const auto count = static_cast<std::size_t>(dimensions);
  std::vector<int> extents(count);
  std::vector<int> periods(count);
  std::vector<int> place(count);
  mpi::check(
      mpi_call().cart_get(comm.value, dimensions, extents.data(), periods.data(), place.data()),
      "MPI_Cart_get");
  Grid grid;
  for (std::size_t d = 0; d < count; ++d) {
    grid.tight = grid.tight || (periods[d] != 0 && extents[d] <= 2);
    int below = 0;
    int above = 0;
    mpi::check(mpi_call().cart_shift(comm.value, static_cast<int>(d), 1, &below, &above),
               "MPI_Cart_shift");
    grid.peers.push_back(below == mpi::proc_null() ? -1 : below);
    grid.peers.push_back(above == mpi::proc_null() ? -1 : above);
  }
  return grid;
}

// Blocks 2d and 2d + 1 go to opposite directions.
Neighbourhood opposite(const Grid& grid) {
  Neighbourhood made{grid.peers, {}, true};
  for (std::size_t k = 0; k < grid.peers.size(); ++k) {
    made.incoming.push_back({grid.peers[k], k ^ 1U});
  }
  return made;
}

// ---- other topologies

std::vector<int> destinations_of(mpi::Comm comm, int topology, const Degrees& degrees) {
  const mpi::Abi& abi = mpi::library().abi;
  if (topology == abi.cartesian) return grid_of(comm).peers;
  const auto in = static_cast<int>(degrees.in);
  const auto out = static_cast<int>(degrees.out);
  std::vector<int> destinations(degrees.out);
  if (topology == abi.graph) {
    mpi::check(mpi_call().graph_neighbors(comm.value, mpi::rank(comm), out, destinations.data()),
               "MPI_Graph_neighbors");
    return destinations;
  }
  std::vector<int> sources(degrees.in);
  std::vector<int> weights(degrees.in);
  std::vector<int> more_weights(degrees.out);
  mpi::check(mpi_call().dist_graph_neighbors(comm.value, in, sources.data(), weights.data(), out,
                                             destinations.data(), more_weights.data()),
             "MPI_Dist_graph_neighbors");
  return destinations;
}

// A block that tells where it comes from. Those that nobody sends keep their beginning.
struct Origin {
  std::int32_t rank = -1;
  std::int32_t block = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};
constexpr int origin_bytes = sizeof(Origin);

// How MPI's functions exchange such blocks. Their number is at most most_directions on either side.
class PairingProbe {
 public:
  PairingProbe(mpi::Comm comm, const Degrees& degrees)
      : comm_(comm.value), degrees_(degrees), rank_(mpi::rank(comm)) {
    lengths_.fill(origin_bytes);
    for (std::size_t k = 0; k < most_directions; ++k) {
      sent_[k] = {rank_, static_cast<std::int32_t>(k)};
      places_[k] = static_cast<int>(k) * origin_bytes;
      far_places_[k] = places_[k];
      const Word byte = mpi::byte_type().value;
      const std::size_t handle = mpi::library().abi.int_handles ? 4 : sizeof byte;
      std::memcpy(types_.data() + k * handle, &byte, handle);
    }
  }
  void exchange() {
    const Word byte = mpi::byte_type().value;
    const TopologyFunctions& call = mpi_call();
    mpi::check(
        call.alltoall(sent_.data(), origin_bytes, byte, all_[0].data(), origin_bytes, byte, comm_),
        "MPI_Neighbor_alltoall");
    mpi::check(call.alltoallv(sent_.data(), lengths_.data(), places_.data(), byte, all_[1].data(),
                              lengths_.data(), places_.data(), byte, comm_),
               "MPI_Neighbor_alltoallv");
    mpi::check(
        call.alltoallw(sent_.data(), lengths_.data(), far_places_.data(), types_.data(),
                       all_[2].data(), lengths_.data(), far_places_.data(), types_.data(), comm_),
        "MPI_Neighbor_alltoallw");
  }
  // By the nonblocking functions.
  void exchange_nonblocking() {
    const Word byte = mpi::byte_type().value;
    const TopologyFunctions& call = mpi_call();
    const auto end = [](int code, mpi::Request& request, const char* name) {
      mpi::check(code, name);
      mpi::wait(request);
    };
    mpi::Request request;
    end(call.ialltoall(sent_.data(), origin_bytes, byte, all_[3].data(), origin_bytes, byte, comm_,
                       &request.value),
        request, "MPI_Ineighbor_alltoall");
    end(call.ialltoallv(sent_.data(), lengths_.data(), places_.data(), byte, all_[4].data(),
                        lengths_.data(), places_.data(), byte, comm_, &request.value),
        request, "MPI_Ineighbor_alltoallv");
    end(call.ialltoallw(sent_.data(), lengths_.data(), far_places_.data(), types_.data(),
                        all_[5].data(), lengths_.data(), far_places_.data(), types_.data(), comm_,
                        &request.value),
        request, "MPI_Ineighbor_alltoallw");
  }
  bool is_the_same_by_all() const { return all_[0] == all_[1] && all_[0] == all_[2]; }
  bool is_the_same_nonblocking() const {
    return all_[0] == all_[3] && all_[0] == all_[4] && all_[0] == all_[5];
  }
  std::vector<IncomingBlock> incoming() const {
    std::vector<IncomingBlock> found;
    for (std::size_t k = 0; k < degrees_.in; ++k) {
      found.push_back({all_[0][k].rank, static_cast<std::size_t>(all_[0][k].block)});
    }
    return found;
  }

 private:
  using Origins = std::array<Origin, most_directions>;
  Word comm_;
  Degrees degrees_;
  int rank_;
  Origins sent_;
  std::array<Origins, 6> all_;
  std::array<int, most_directions> lengths_{};
  std::array<int, most_directions> places_{};
  std::array<Count, most_directions> far_places_{};
  std::array<std::byte, most_directions * sizeof(Word)> types_{};
};

// Collective. Nothing in here fails on one rank alone.
std::unique_ptr<Neighbourhood> learn(mpi::Comm comm, int topology, bool starts) {
  const Degrees degrees = preload::degrees(comm);
  std::unique_ptr<Neighbourhood> made;
  try {
    if (degrees.in <= most_directions && degrees.out <= most_directions) {
      made = std::make_unique<Neighbourhood>();
      made->destinations = destinations_of(comm, topology, degrees);
      made->incoming.reserve(degrees.in);
    }
  } catch (...) {  // no memory
    made = nullptr;
  }
  if (!mpi::true_on_all(comm, made != nullptr)) return nullptr;
  PairingProbe probe(comm, degrees);
  probe.exchange();
  if (!mpi::true_on_all(comm, probe.is_the_same_by_all())) return nullptr;
  for (const IncomingBlock& block : probe.incoming()) made->incoming.push_back(block);
  if (starts) {
    probe.exchange_nonblocking();
    made->starts = mpi::true_on_all(comm, probe.is_the_same_nonblocking());
  }
  return made;
}

std::unique_ptr<Neighbourhood> find(mpi::Comm comm, bool starts) {
  int topology = 0;
  mpi::check(mpi_call().topo_test(comm.value, &topology), "MPI_Topo_test");
  const mpi::Abi& abi = mpi::library().abi;
  if (topology == abi.cartesian) {
    // All ranks know the same grid.
    const Grid grid = grid_of(comm);
    if (grid.peers.empty() || grid.peers.size() > most_directions) return nullptr;
    if (!grid.tight) return std::make_unique<Neighbourhood>(opposite(grid));
  }
  const bool has_neighbours =
      topology == abi.cartesian || topology == abi.graph || topology == abi.dist_graph;
  return has_neighbours ? learn(comm, topology, starts) : nullptr;
}

}  // namespace

const Neighbourhood* neighbourhood_of(CommunicatorEntry& entry) noexcept {
  if (!entry.neighbours_known) {
    if (collectives::typed::serves_neighbours(*entry.team)) {
      try {
        entry.neighbourhood = find({entry.handle.load()}, entry.starts_exchanges);
      } catch (...) {  // MPI fails, as it will in the call
        return nullptr;
      }
    }
    entry.neighbours_known = true;
  }
  return entry.neighbourhood.get();
}

}  // namespace ropewalk::preload
