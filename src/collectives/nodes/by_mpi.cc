// The MPI's own allreduce among the owners of a slice, for fabrics that the MPI knows better:
// switches that combine, or offloaded collectives. Its order of summation is the MPI's.
#include "collectives/nodes/exchange.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class ByMpi final : public Exchange {
 public:
  explicit ByMpi(const Making& making) : nodes_(making.nodes), operation_(making.operation) {}

  void start(const Route& route, int /*tag*/, const std::byte* input, std::byte* data,
             std::size_t count) override {
    mpi::fallback::allreduce(input == data ? mpi::in_place() : input, data, count,
                             mpi::datatype(operation_.type), mpi::op(operation_.op),
                             nodes_.owners(route.slice));
  }
  bool advance() override { return true; }

 private:
  Nodes& nodes_;
  const Operation& operation_;
};

}  // namespace

std::unique_ptr<Exchange> make_by_mpi(const Making& making) {
  return std::make_unique<ByMpi>(making);
}

}  // namespace ropewalk::collectives::nodes
