// The MPI's own allreduce among the leaders of a slice, for fabrics that the MPI knows better:
// switches that combine, or offloaded collectives. Its order of summation is the MPI's.
#include "collectives/nodes/chunk_exchange.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "mpi/waiter.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class ByMpi final : public ChunkExchange {
 public:
  explicit ByMpi(const ExchangeSetup& setup) : nodes_(setup.nodes), operation_(setup.operation) {}

  ~ByMpi() override { mpi::leave(request_); }
  ByMpi(const ByMpi&) = delete;
  ByMpi& operator=(const ByMpi&) = delete;

  void start(const Route& route, int /*tag*/, const std::byte* input, std::byte* data,
             std::size_t count) override {
    request_ = mpi::fallback::start_allreduce(
        input == data ? mpi::in_place() : input, data, count, mpi::datatype(operation_.type),
        mpi::op(operation_.op), nodes_.comms().leaders(route.slice));
  }
  bool advance() override { return mpi::test(request_); }

 private:
  Nodes& nodes_;
  const Operation& operation_;
  mpi::Request request_ = mpi::request_null();
};

}  // namespace

std::unique_ptr<ChunkExchange> make_by_mpi(const ExchangeSetup& setup) {
  return std::make_unique<ByMpi>(setup);
}

}  // namespace ropewalk::collectives::nodes
