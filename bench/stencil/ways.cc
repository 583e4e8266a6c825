#include "stencil/ways.hpp"

#include <algorithm>
#include <cstring>

#include "ropewalk/error.hpp"
#include "stencil/mpi_ways.hpp"

namespace ropewalk::bench {
namespace {

class HaloWay : public StencilWay {
 public:
  HaloWay(const CartesianGrid& grid, EndpointSet& endpoints, StencilBlock& block, Strategy strategy,
          int threads)
      : halo_(grid, endpoints, std::vector<Field>{block.field()},
              {.strategy = strategy, .corners = Corners::no, .workers = threads}) {}
  void start() override { halo_.start(); }
  void wait() override { halo_.wait(); }
  std::string path() const override { return name(halo_.strategy()); }
  bool is_shared() const noexcept override { return halo_.workers() > 1; }
  void start_worker(int worker) override { halo_.start_worker(worker); }
  void wait_worker(int worker) override { halo_.wait_worker(worker); }

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
                                     EndpointSet& endpoints, StencilBlock& block, int threads) {
  if (name == "isend" || name == "packed" || name == "neighbor_alltoallw") {
    return make_mpi_way(name, grid, block);
  }
  try {
    return std::make_unique<HaloWay>(grid, endpoints, block, strategy(name), threads);
  } catch (const Error& error) {  // the same on all ranks
    if (error.code() != ErrorCode::unsupported) throw;
    return nullptr;
  }
}

}  // namespace ropewalk::bench
