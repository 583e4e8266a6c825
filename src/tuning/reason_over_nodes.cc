// Why a collective over several nodes goes the way that over_nodes.cc chooses.
#include <algorithm>
#include <string>

#include "ropewalk/collectives.hpp"
#include "settings/value.hpp"
#include "tuning/over_nodes.hpp"

namespace ropewalk::tuning {
namespace {

Shape shape_of(const Situation& situation) {
  return {situation.nodes, situation.ranks, situation.ranks, situation.crowded,
          settings::get(settings::Id::movements).is("nodes")};
}

const char* nodes_path() { return name(Path::nodes); }
Way by_mpi() { return {name(Path::mpi), "the MPI's own call", "", name(Algorithm::whole)}; }

std::string detail_of(const ReductionChoice& choice) {
  const bool one = choice.slices == 1;
  return std::to_string(choice.slices) + (one ? " leader" : " leaders") +
         " a node, chunks of up to " + std::to_string(choice.chunk_bytes / 1024) + "K";
}

Way way_of(const ReductionChoice& choice, bool rooted) {
  switch (choice.algorithm) {
    case Algorithm::whole:
      return by_mpi();
    case Algorithm::flat:
      return {nodes_path(),
              rooted ? "a binomial tree of all ranks" : "recursive doubling among all ranks", "",
              name(choice.algorithm)};
    case Algorithm::doubling:
      return {nodes_path(), "recursive doubling among one rank a node", "", name(choice.algorithm)};
    case Algorithm::halving:
      return {nodes_path(), "halving and doubling between leaders", detail_of(choice),
              name(choice.algorithm)};
    case Algorithm::ring:
      return {nodes_path(), rooted ? "a chain of leaders to the root" : "a ring of leaders",
              detail_of(choice), rooted ? "chain" : name(choice.algorithm)};
    case Algorithm::mpi:
      return {nodes_path(), "the MPI's own call between leaders", detail_of(choice),
              name(choice.algorithm)};
  }
  return by_mpi();
}

// Where the setting asks for an algorithm, sizes do not count.
void reason_allreduce(Reasons& reasons, std::size_t bytes, const Shape& shape) {
  const Values& values = reasons.values();
  const auto way = [&](int wish) {
    return way_of(choose_reduction(values, shape,
                                   {.bytes = bytes,
                                    .wish = wish,
                                    .longest_message_bytes = values[Id::nodes_most_message]}),
                  false);
  };
  const auto forced = [&](Algorithm algorithm) { return way(static_cast<int>(algorithm)); };
  if (const int wish = wished_algorithm(); wish >= 0) {
    reasons.when({}, std::string("ROPEWALK_ALLREDUCE is ") + name(static_cast<Algorithm>(wish)),
                 way(wish));
  }
  const Amount vector{bytes, "the vector"};
  reasons.below(Id::nodes_flat, vector, forced(Algorithm::flat));
  reasons.below(Id::nodes_ring, vector, forced(Algorithm::mpi));
  reasons.from(Id::nodes_ring, vector, forced(Algorithm::ring));
}

void reason_reduce(Reasons& reasons, std::size_t bytes, const Shape& shape) {
  const Values& values = reasons.values();
  const ReductionChoice choice = choose_reduction(
      values, shape,
      {.bytes = bytes, .rooted = true, .longest_message_bytes = values[Id::nodes_most_message]});
  const Amount vector{bytes, "the vector"};
  if (values[Id::nodes_rooted_flat] > 0) {
    reasons.below(Id::nodes_rooted_flat, vector, way_of({Algorithm::flat, 1, 0}, true));
  }
  reasons.below(Id::nodes_chain, vector, by_mpi());
  reasons.from(Id::nodes_chain, vector, way_of(choice, true));
}

void reason_broadcast(Reasons& reasons, std::size_t bytes, const Shape& shape) {
  const Values& values = reasons.values();
  const BroadcastWay way = choose_broadcast(values, shape, bytes);
  const std::size_t chunk = broadcast_chunk(values, bytes / static_cast<std::size_t>(shape.least));
  const Amount vector{bytes, "the vector"};
  reasons.from(
      Id::nodes_broadcast_chain, vector,
      {nodes_path(), "slices along a chain of nodes", "chunks of " + size_text(chunk), "chain"},
      {way == BroadcastWay::chain, "too few chunks of " + size_text(chunk) +
                                       " to fill a chain of " + std::to_string(shape.nodes) +
                                       " nodes"});
  reasons.below(Id::nodes_broadcast_flat, vector,
                {nodes_path(), "a binomial tree of all ranks", "", "flat"},
                {way == BroadcastWay::flat, "ROPEWALK_MOVEMENTS is nodes"});
  reasons.when({way == BroadcastWay::tree, "every node has one rank"},
               "the vector lies between the two thresholds",
               {nodes_path(), "a binomial tree of nodes, then inside each", "", "tree"});
  reasons.otherwise(by_mpi());
}

// Explains where ropewalk serves only from, or up to, a size; ROPEWALK_MOVEMENTS=nodes serves all
// sizes.
std::string why_not(const Shape& shape) {
  return shape.most == 1 ? "every node has one rank" : "ranks share cores";
}

void reason_served(Reasons& reasons, bool served, const Shape& shape, Id id, const Amount& amount,
                   Way way) {
  const Condition condition{served, why_not(shape)};
  if (shape.serves_all_sizes && served) {
    reasons.when({}, "ROPEWALK_MOVEMENTS is nodes", std::move(way));
  } else if (id == Id::nodes_alltoall) {
    reasons.up_to(id, amount, std::move(way), condition);
  } else {
    reasons.from(id, amount, std::move(way), condition);
  }
  reasons.otherwise(by_mpi());
}

void reason_allgather(Reasons& reasons, std::size_t bytes, const Situation& situation,
                      const Shape& shape) {
  const std::size_t all =
      bytes * static_cast<std::size_t>(situation.ranks) * static_cast<std::size_t>(situation.nodes);
  const AllgatherWay way = choose_allgather(reasons.values(), shape, all);
  const bool leaders = way == AllgatherWay::leaders;
  reason_served(
      reasons, way != AllgatherWay::mpi, shape, Id::nodes_allgather, {all, "all blocks"},
      {nodes_path(),
       leaders ? "through a leader of each node" : "slices of each node's blocks from rank to rank",
       "", leaders ? "leaders" : "slices"});
}

Way rooted_way() {
  return {nodes_path(), "the root and each node's ranks or leader", "", "rooted"};
}
Way alltoall_way(const Values& values, const Shape& shape, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(shape.most);
  const bool together = sends_together(values, bytes * ranks * ranks, ranks, ranks);
  return {nodes_path(),
          together ? "blocks of a pair of nodes in one message"
                   : "each block straight from rank to rank",
          "", together ? "together" : "each"};
}

std::string too_many_nodes(const Values& values, const Shape& shape) {
  return std::to_string(shape.nodes) + " nodes are more than nodes.rooted_nodes (" +
         std::to_string(values[Id::nodes_rooted_nodes]) + ")";
}

// Gather and scatter: a root talks to each node itself.
void reason_rooted(Reasons& reasons, Collective what, std::size_t bytes, const Shape& shape) {
  const Values& values = reasons.values();
  const bool gathers = what == Collective::gather;
  if (rooted_goes_flat(values, shape, 0)) {
    reasons.below(Id::nodes_rooted_flat, {bytes, "a block"},
                  {nodes_path(), "a message between the root and each rank", "", "flat"});
  }
  const bool served =
      gathers ? serves_gather(values, shape, bytes) : serves_scatter(values, shape, bytes);
  if (!has_few_nodes(values, shape)) {
    return reasons.when({}, too_many_nodes(values, shape), by_mpi());
  }
  reason_served(reasons, served, shape, gathers ? Id::nodes_gather : Id::nodes_scatter,
                {bytes, "a block"}, rooted_way());
}

// Forms whose sizes no rank knows of all ranks: MPI serves them, or ropewalk does, whatever the
// sizes.
void reason_unknown_sizes(Reasons& reasons, bool served, const Situation& situation,
                          const Shape& shape, Way way) {
  const bool faster = !shape.crowded;
  std::string why = faster ? "every rank has a core of its own" : "";
  if (situation.int_counts) why = "the MPI's own call, of int counts, begins with an agreement";
  if (shape.serves_all_sizes) why = "ROPEWALK_MOVEMENTS is nodes";
  std::string why_not = "the MPI's own call is faster here";
  if (shape.most == 1) why_not = "every node has one rank";
  reasons.when({served, std::move(why_not)}, std::move(why), std::move(way));
  reasons.otherwise(by_mpi());
}

void reason_rooted_unknown_sizes(Reasons& reasons, Collective what, const Situation& situation,
                                 const Shape& shape) {
  const Values& values = reasons.values();
  const bool served = what == Collective::gatherv
                          ? serves_gatherv(values, shape, situation.int_counts)
                          : serves_scatterv(values, shape, situation.int_counts);
  if (has_few_nodes(values, shape)) {
    return reason_unknown_sizes(reasons, served, situation, shape, rooted_way());
  }
  reasons.when({}, too_many_nodes(values, shape), by_mpi());
}

}  // namespace

void reason_over_nodes(Reasons& reasons, Collective what, std::size_t bytes,
                       const Situation& situation) {
  const Shape shape = shape_of(situation);
  const Values& values = reasons.values();
  switch (what) {
    case Collective::allreduce:
      return reason_allreduce(reasons, bytes, shape);
    case Collective::reduce:
      return reason_reduce(reasons, bytes, shape);
    case Collective::broadcast:
      return reason_broadcast(reasons, bytes, shape);
    case Collective::allgather:
    case Collective::allgatherv:
      return reason_allgather(reasons, bytes, situation, shape);
    case Collective::gather:
    case Collective::scatter:
      return reason_rooted(reasons, what, bytes, shape);
    case Collective::reduce_scatter:
      return reason_served(
          reasons, serves_reduce_scatter(values, shape, bytes), shape, Id::nodes_reduce_scatter,
          {bytes, "the vector"},
          {nodes_path(), "each node combines what goes to another, then sends", "", "chunks"});
    case Collective::alltoall:
      return reason_served(reasons, serves_alltoall(values, shape, bytes), shape,
                           Id::nodes_alltoall, {bytes, "a block"},
                           alltoall_way(values, shape, bytes));
    case Collective::gatherv:
    case Collective::scatterv:
      return reason_rooted_unknown_sizes(reasons, what, situation, shape);
    case Collective::alltoallv:
      return reason_unknown_sizes(reasons, serves_alltoallv(shape, situation.int_counts), situation,
                                  shape, alltoall_way(values, shape, bytes));
    case Collective::barrier:
      reasons.when(
          {serves_barrier(shape), "every node has one rank"}, "flags and few messages",
          {nodes_path(), "ranks of a node, then leaders, then ranks of a node", "", "leaders"});
      return reasons.otherwise(by_mpi());
    case Collective::scan:
    case Collective::exscan:
      return reasons.when({}, "no algorithm of ropewalk's over nodes", by_mpi());
  }
}

}  // namespace ropewalk::tuning
