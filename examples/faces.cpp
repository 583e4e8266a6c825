// The least a lattice code needs: packets to both neighbours of each dimension, sent again and
// again.
//
//   ropewalk run -n 4 -- build/release/examples/faces
#include <ropewalk/halo.hpp>
#include <ropewalk/memory.hpp>
#include <ropewalk/process.hpp>

#include <cstdio>
#include <exception>

namespace {

constexpr std::size_t count = 1024;  // numbers in a packet

// Describes the packets of one rank on communication memory as [direction][number]: direction 2d
// goes towards +, 2d+1 towards -.
ropewalk::FacePackets packets(ropewalk::Buffer<double>& send, ropewalk::Buffer<double>& receive) {
  ropewalk::FacePackets faces;
  for (std::size_t i = 0; i < send.size() / count; ++i) {
    faces.send.push_back(&send[i * count]);
    faces.receive.push_back(&receive[i * count]);
    faces.bytes.push_back(count * sizeof(double));
  }
  return faces;
}

int run(ropewalk::Communicator world) {
  // A ring in the first dimension; the second is not divided, so a rank is its own neighbour there.
  const ropewalk::CartesianGrid grid(world, {world.size(), 1}, {true, true});
  ropewalk::EndpointSet endpoints(world);
  ropewalk::Buffer<double> send(4 * count);
  ropewalk::Buffer<double> receive(4 * count);
  for (double& number : send) number = world.rank();

  ropewalk::Halo halo(grid, endpoints, packets(send, receive));
  for (int i = 0; i < 100; ++i) {
    halo.start();
    // ... compute what needs no neighbour ...
    halo.wait();
  }

  const bool right = receive[0] == grid.neighbour(0, 1) && receive[count] == grid.neighbour(0, -1);
  if (world.rank() == 0) {
    std::printf("faces: %s, strategy %s, %zu bytes a rank and exchange\n",
                right ? "right" : "WRONG", ropewalk::name(halo.strategy()), halo.send_bytes());
  }
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    return run(process.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faces: %s\n", error.what());
    return 1;
  }
}
