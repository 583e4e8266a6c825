#include "stencil/ways.hpp"

#include <algorithm>
#include <cstring>

#include "ropewalk/error.hpp"
#include "stencil/mpi_ways.hpp"

namespace ropewalk::bench {
namespace {

class HaloWay : public StencilWay {
 public:
  HaloWay(const CartesianGrid& grid, EndpointSet& endpoints, StencilBlock& block, Strategy strategy)
      : halo_(grid, endpoints, std::vector<Field>{block.field()},
              HaloOptions{strategy, Corners::no}) {}
  void start() override { halo_.start(); }
  void wait() override { halo_.wait(); }
  std::string path() const override { return name(halo_.strategy()); }

 private:
  Halo halo_;
};

}  // namespace

const std::vector<std::string>& stencil_way_names() {
  static const std::vector<std::string> names = {"isend",  "packed",     "neighbor_alltoallw",
                                                 "direct", "concurrent", "automatic"};
  return names;
}

std::unique_ptr<StencilWay> make_way(const std::string& name, const CartesianGrid& grid,
                                     EndpointSet& endpoints, StencilBlock& block) {
  if (name == "isend" || name == "packed" || name == "neighbor_alltoallw") {
    return make_mpi_way(name, grid, block);
  }
  try {
    return std::make_unique<HaloWay>(grid, endpoints, block, strategy(name));
  } catch (const Error& error) {  // the same on all ranks
    if (error.code() != ErrorCode::unsupported) throw;
    return nullptr;
  }
}

}  // namespace ropewalk::bench
