// This file has the reductions.
#include <memory>
#include <new>

#include "call.hpp"
#include "pass.hpp"

namespace ropewalk::preload {
namespace {

namespace typed = collectives::typed;
using collectives::is_in_place;
using typed::Reduction;

// A receive buffer for the same call made once more by MPI: what the first has given must stay.
class SpareResult {
 public:
  SpareResult(std::size_t count, Word type) {
    const FoundElements elements = elements_of(type);
    if (!elements || elements->packed) return;
    memory_.reset(new (std::nothrow) std::byte[count * elements->bytes + 1]);
  }
  void* data() const noexcept { return memory_.get(); }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

// Only one rank may reduce in place here, so that the ranks would not agree on making the call once
// more.
int not_again() noexcept { return -1; }

// again(receive) into a spare buffer of `count` elements; not in place, where the input is gone.
// All ranks or none reduce in place, as MPI demands of these calls.
template <class Again>
int repeat(const void* send, std::size_t count, Word type, Again again) {
  if (is_in_place(send)) return -1;
  const SpareResult spare(count, type);
  return spare.data() == nullptr ? -1 : again(spare.data());
}

std::size_t bytes_of(std::int64_t count, Word type) {
  if (statistics == Statistics::off || count < 0) return 0;
  const FoundElements elements = elements_of(type);
  return elements ? static_cast<std::size_t>(count) * elements->bytes : 0;
}

template <class Number>
std::size_t unsign(Number count) {
  return static_cast<std::size_t>(count);
}

template <class Number>
int reduce_to(const void* send, void* receive, Number count, Word type, Word op, int root,
              Word comm) {
  return serve_or_pass(
      Function::reduce, bytes_of(count, type), comm,
      [&](Collectives& team) {
        const auto reduction = reduction_of(type, op);
        if (!reduction || count < 0 || root < 0 || root >= team.size()) return false;
        typed::reduce(team, send, receive, unsign(count), *reduction, root);
        return true;
      },
      [&] { return pass::reduce(send, receive, count, type, op, root, comm); }, not_again);
}

template <class Number>
int allreduce(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  return serve_or_pass(
      Function::allreduce, bytes_of(count, type), comm,
      [&](Collectives& team) {
        const auto reduction = reduction_of(type, op);
        if (!reduction || count < 0) return false;
        typed::allreduce(team, send, receive, unsign(count), *reduction);
        return true;
      },
      [&] { return pass::allreduce(send, receive, count, type, op, comm); },
      [&] {
        return repeat(send, unsign(count), type, [&](void* spare) {
          return pass::allreduce(send, spare, count, type, op, comm);
        });
      });
}

template <class Number, class Pass>
int scan(Function function, const void* send, void* receive, Number count, Word type, Word op,
         Word comm, Pass pass) {
  return serve_or_pass(
      function, bytes_of(count, type), comm,
      [&](Collectives& team) {
        const auto reduction = reduction_of(type, op);
        if (!reduction || count < 0) return false;
        typed::scan(team, send, receive, unsign(count), *reduction, function == Function::exscan);
        return true;
      },
      [&] { return pass(receive); }, not_again);
}

template <class Number>
int reduce_scatter(const void* send, void* receive, const Number* counts, Word type, Word op,
                   Word comm) {
  return serve_or_pass(
      Function::reduce_scatter, 0, comm,
      [&](Collectives& team) {
        const auto reduction = reduction_of(type, op);
        if (!reduction || counts == nullptr) return false;
        std::vector<std::size_t> sizes;
        for (int rank = 0; rank < team.size(); ++rank) {
          if (counts[rank] < 0) return false;
          sizes.push_back(unsign(counts[rank]));
        }
        typed::reduce_scatter(team, send, receive, sizes.data(), *reduction);
        return true;
      },
      [&] { return pass::reduce_scatter(send, receive, counts, type, op, comm); }, not_again);
}

template <class Number>
int reduce_scatter_block(const void* send, void* receive, Number count, Word type, Word op,
                         Word comm) {
  return serve_or_pass(
      Function::reduce_scatter_block, bytes_of(count, type), comm,
      [&](Collectives& team) {
        const auto reduction = reduction_of(type, op);
        if (!reduction || count < 0) return false;
        typed::reduce_scatter_block(team, send, receive, unsign(count), *reduction);
        return true;
      },
      [&] { return pass::reduce_scatter_block(send, receive, count, type, op, comm); },
      [&] {
        return repeat(send, unsign(count), type, [&](void* spare) {
          return pass::reduce_scatter_block(send, spare, count, type, op, comm);
        });
      });
}

template <class Number>
int inclusive(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  return scan(Function::scan, send, receive, count, type, op, comm,
              [&](void* into) { return pass::scan(send, into, count, type, op, comm); });
}

template <class Number>
int exclusive(const void* send, void* receive, Number count, Word type, Word op, Word comm) {
  return scan(Function::exscan, send, receive, count, type, op, comm,
              [&](void* into) { return pass::exscan(send, into, count, type, op, comm); });
}

}  // namespace

namespace serve {

int Reduce(const void* send, void* receive, int count, Word type, Word op, int root, Word comm) {
  return reduce_to(send, receive, count, type, op, root, comm);
}
int Reduce_c(const void* send, void* receive, Count count, Word type, Word op, int root,
             Word comm) {
  return reduce_to(send, receive, count, type, op, root, comm);
}
int Allreduce(const void* send, void* receive, int count, Word type, Word op, Word comm) {
  return allreduce(send, receive, count, type, op, comm);
}
int Allreduce_c(const void* send, void* receive, Count count, Word type, Word op, Word comm) {
  return allreduce(send, receive, count, type, op, comm);
}
int Scan(const void* send, void* receive, int count, Word type, Word op, Word comm) {
  return inclusive(send, receive, count, type, op, comm);
}
int Scan_c(const void* send, void* receive, Count count, Word type, Word op, Word comm) {
  return inclusive(send, receive, count, type, op, comm);
}
int Exscan(const void* send, void* receive, int count, Word type, Word op, Word comm) {
  return exclusive(send, receive, count, type, op, comm);
}
int Exscan_c(const void* send, void* receive, Count count, Word type, Word op, Word comm) {
  return exclusive(send, receive, count, type, op, comm);
}
int Reduce_scatter(const void* send, void* receive, const int* counts, Word type, Word op,
                   Word comm) {
  return reduce_scatter(send, receive, counts, type, op, comm);
}
int Reduce_scatter_c(const void* send, void* receive, const Count* counts, Word type, Word op,
                     Word comm) {
  return reduce_scatter(send, receive, counts, type, op, comm);
}
int Reduce_scatter_block(const void* send, void* receive, int count, Word type, Word op,
                         Word comm) {
  return reduce_scatter_block(send, receive, count, type, op, comm);
}
int Reduce_scatter_block_c(const void* send, void* receive, Count count, Word type, Word op,
                           Word comm) {
  return reduce_scatter_block(send, receive, count, type, op, comm);
}

}  // namespace serve
}  // namespace ropewalk::preload
