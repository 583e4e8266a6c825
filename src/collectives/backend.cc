#include "collectives/backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/algorithms.hpp"
#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/nodes.hpp"
#include "collectives/patience.hpp"
#include "collectives/through_mpi.hpp"
#include "node/machine_share.hpp"
#include "node/rank_nodes.hpp"

namespace ropewalk::collectives {
namespace {

// Tables of one entry a rank must fit a slot (gather.cc, alltoall.cc).
constexpr int largest_team = 128;

// One rank: a result is what it has sent.
class Alone final : public Backend {
 public:
  void barrier() override {}
  void reduce(const void* send, void* receive, std::size_t count, const Operation& operation,
              int /*root*/) override {
    copy(send, receive, count * operation.element_bytes);
  }
  void scan(const void* send, void* receive, std::size_t count, const Operation& operation,
            bool exclusive) override {
    if (!exclusive) copy(send, receive, count * operation.element_bytes);
  }
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                      const Operation& operation) override {
    copy(send, receive, counts[0] * operation.element_bytes);
  }
  void broadcast(void* /*data*/, std::size_t /*bytes*/, int /*root*/) override {}
  void allgather(const void* send, void* receive, const Blocks& blocks) override {
    copy(send, at(receive, blocks), blocks.counts[0]);
  }
  void gather(const void* send, std::size_t bytes, void* receive, const Blocks& blocks,
              int /*root*/) override {
    copy(send, at(receive, blocks), bytes);
  }
  void scatter(const void* send, const Blocks& blocks, void* receive, std::size_t bytes,
               int /*root*/) override {
    if (receive != nullptr) copy(at(send, blocks), receive, bytes);
  }
  void alltoall(const void* send, void* receive, std::size_t bytes_each) override {
    copy(send, receive, bytes_each);
  }
  void alltoallv(const void* send, const Blocks& sends, void* receive,
                 const Blocks& receives) override {
    copy(at(send, sends), at(receive, receives), receives.counts[0]);
  }

  int nodes() const noexcept override { return 1; }
  Path path() const noexcept override { return Path::none; }

 private:
  static void copy(const void* from, void* to, std::size_t bytes) {
    if (bytes > 0 && from != to) std::memmove(to, from, bytes);
  }
  static const std::byte* at(const void* buffer, const Blocks& blocks) {
    return static_cast<const std::byte*>(buffer) + blocks.displacements[0];
  }
  static std::byte* at(void* buffer, const Blocks& blocks) {
    return static_cast<std::byte*>(buffer) + blocks.displacements[0];
  }
};

// Serves the ranks of one node.
class OneNode final : public Backend {
 public:
  OneNode(std::unique_ptr<Engine> engine, int timeout_s)
      : Backend(engine->team().slots().calls()), engine_(std::move(engine)) {
    if (timeout_s > 0) patience_.emplace(engine_->team(), timeout_s);
  }

  void barrier() override { collectives::barrier(*engine_); }
  void reduce(const void* send, void* receive, std::size_t count, const Operation& operation,
              int root) override {
    collectives::reduce(*engine_, send, receive, count, operation, root);
  }
  void scan(const void* send, void* receive, std::size_t count, const Operation& operation,
            bool exclusive) override {
    collectives::scan(*engine_, send, receive, count, operation, exclusive);
  }
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                      const Operation& operation) override {
    collectives::reduce_scatter(*engine_, send, receive, counts, operation);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    collectives::broadcast(*engine_, data, bytes, root);
  }
  void allgather(const void* send, void* receive, const Blocks& blocks) override {
    collectives::allgather(*engine_, send, receive, blocks);
  }
  void gather(const void* send, std::size_t bytes, void* receive, const Blocks& blocks,
              int root) override {
    collectives::gather(*engine_, send, bytes, receive, of_root(blocks, root), root);
  }
  void scatter(const void* send, const Blocks& blocks, void* receive, std::size_t bytes,
               int root) override {
    collectives::scatter(*engine_, send, of_root(blocks, root), receive, bytes, root);
  }
  void alltoall(const void* send, void* receive, std::size_t bytes_each) override {
    collectives::alltoall(*engine_, send, receive, bytes_each);
  }
  void alltoallv(const void* send, const Blocks& sends, void* receive,
                 const Blocks& receives) override {
    collectives::alltoallv(*engine_, send, sends, receive, receives);
  }

  int nodes() const noexcept override { return 1; }
  Path path() const noexcept override { return engine_->path; }
  Engine* engine() noexcept override { return engine_.get(); }

  void refuse(const char* /*message*/) override { engine_->arrivals().refuse(); }
  void leave_for_good() noexcept override {
    try {
      engine_->arrivals().leave_for_good();
    } catch (...) {  // the dead are known to the others, too
    }
  }
  void rescue(std::uint64_t before) noexcept override { engine_->rescue(before); }

 private:
  const Blocks* of_root(const Blocks& blocks, int root) const noexcept {
    return engine_->rank() == root ? &blocks : nullptr;
  }

  std::unique_ptr<Engine> engine_;
  std::optional<Patience> patience_;  // looked at by waits of the engine's team
};

// Serves ranks on several nodes. What fails inside a call is told to all there (Nodes::run).
class SeveralNodes final : public Backend {
 public:
  explicit SeveralNodes(std::unique_ptr<nodes::Nodes> hierarchy)
      : Backend(hierarchy->calls()), hierarchy_(std::move(hierarchy)) {}

  void barrier() override { nodes::barrier(*hierarchy_); }
  void reduce(const void* send, void* receive, std::size_t count, const Operation& operation,
              int root) override {
    nodes::reduce(*hierarchy_, send, receive, count, operation, root);
  }
  void scan(const void* send, void* receive, std::size_t count, const Operation& operation,
            bool exclusive) override {
    nodes::scan(*hierarchy_, send, receive, count, operation, exclusive);
  }
  void reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                      const Operation& operation) override {
    nodes::reduce_scatter(*hierarchy_, send, receive, counts, operation);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    nodes::broadcast(*hierarchy_, data, bytes, root);
  }
  void allgather(const void* send, void* receive, const Blocks& blocks) override {
    nodes::allgather(*hierarchy_, send, receive, blocks);
  }
  void gather(const void* send, std::size_t bytes, void* receive, const Blocks& blocks,
              int root) override {
    nodes::gather(*hierarchy_, send, bytes, receive, blocks, root);
  }
  void scatter(const void* send, const Blocks& blocks, void* receive, std::size_t bytes,
               int root) override {
    nodes::scatter(*hierarchy_, send, blocks, receive, bytes, root);
  }
  void alltoall(const void* send, void* receive, std::size_t bytes_each) override {
    nodes::alltoall(*hierarchy_, send, receive, bytes_each);
  }
  void alltoallv(const void* send, const Blocks& sends, void* receive,
                 const Blocks& receives) override {
    nodes::alltoallv(*hierarchy_, send, sends, receive, receives);
  }

  int nodes() const noexcept override { return hierarchy_->layout().count(); }
  Path path() const noexcept override { return hierarchy_->path; }
  Engine* engine() noexcept override { return &hierarchy_->engine(); }
  nodes::Nodes* hierarchy() noexcept override { return hierarchy_.get(); }

  void refuse(const char* message) override { hierarchy_->refuse(message); }
  void leave_for_good() noexcept override { hierarchy_->leave_for_good(); }
  void rescue(std::uint64_t before) noexcept override {
    if (hierarchy_->calls() == before) hierarchy_->refuse("see its error");
  }

 private:
  std::unique_ptr<nodes::Nodes> hierarchy_;
};

std::unique_ptr<Backend> make_several(mpi::Comm comm, const nodes::NodeLayout& layout,
                                      const CollectivesOptions& options, BackendFacts& facts) {
  auto hierarchy =
      nodes::Nodes::create(comm, layout, options.threads, facts.reason, facts.attach_reason);
  const node::Crowding crowding = node::crowding(comm, layout.size());
  if (hierarchy == nullptr) return nullptr;
  hierarchy->crowded = crowding.anywhere;
  if (crowding.here) hierarchy->share_cores();
  hierarchy->waits().limit_calls(options.timeout_s);
  return std::make_unique<SeveralNodes>(std::move(hierarchy));
}

}  // namespace

std::unique_ptr<Backend> make_backend(mpi::Comm comm, const CollectivesOptions& options,
                                      BackendFacts& facts) {
  const int rank = mpi::rank(comm);
  const int size = mpi::size(comm);
  const nodes::NodeLayout layout = nodes::layout_of(node::nodes_of_ranks(comm), rank);
  std::unique_ptr<Backend> backend;
  if (size == 1) {
    backend = std::make_unique<Alone>();
  } else if (layout.most > largest_team) {
    facts.reason = "more than " + std::to_string(largest_team) + " ranks on a node";
  } else if (layout.count() > 1) {
    backend = make_several(comm, layout, options, facts);
  } else if (auto engine = Engine::create(comm, facts.reason, facts.attach_reason)) {
    backend = std::make_unique<OneNode>(std::move(engine), options.timeout_s);
  }
  if (backend == nullptr) backend = std::make_unique<ThroughMpi>(comm, rank);
  return backend;
}

}  // namespace ropewalk::collectives
