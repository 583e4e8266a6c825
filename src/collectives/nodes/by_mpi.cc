// The MPI's own allreduce among the owners of a slice, for fabrics that the MPI knows better:
// switches that combine, or offloaded collectives. Its order of summation is the MPI's.
#include "collectives/nodes/exchange.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "mpi/waiter.hpp"

namespace ropewalk::collectives::nodes {
namespace {

class ByMpi final : public Exchange {
 public:
  explicit ByMpi(const Making& making) : nodes_(making.nodes), operation_(making.operation) {}

  ~ByMpi() override { mpi::leave(request_); }
  ByMpi(const ByMpi&) = delete;
  ByMpi& operator=(const ByMpi&) = delete;

  void start(const Route& route, int /*tag*/, const std::byte* input, std::byte* data,
             std::size_t count) override {
    request_ = mpi::fallback::start_allreduce(input == data ? mpi::in_place() : input, data, count,
                                              mpi::datatype(operation_.type),
                                              mpi::op(operation_.op), nodes_.owners(route.slice));
  }
  bool advance() override { return mpi::test(request_); }

 private:
  Nodes& nodes_;
  const Operation& operation_;
  mpi::Request request_ = mpi::request_null();
};

}  // namespace

std::unique_ptr<Exchange> make_by_mpi(const Making& making) {
  return std::make_unique<ByMpi>(making);
}

}  // namespace ropewalk::collectives::nodes
