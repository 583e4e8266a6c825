// The next function of each name, whatever the width of its counts. Where MPI has none with 64-bit
// counts, the one with int counts is called if all numbers fit an int, and a function of ropewalk
// otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <exception>

#include "datatypes.hpp"
#include "functions.hpp"
#include "ints.hpp"
#include "local_mpi.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::preload::pass {

namespace fallback = mpi::fallback;
using Counts = std::span<const Count>;

template <class Call>
int stand_in(Word word, Call call) noexcept {
  const mpi::Comm comm{clean(word)};
  try {
    if (mpi::is_inter(comm)) {
      return raise(comm,
                   "more than 2^31 - 1 elements between two groups, which this MPI does not "
                   "offer; use a larger datatype");
    }
    call();
    return 0;
  } catch (const std::exception& error) {
    return raise(comm, error.what());
  }
}
inline std::size_t size(Count count) { return static_cast<std::size_t>(count); }
inline int narrow(Count count) { return static_cast<int>(count); }
// Negative displacements wrap, and wrap back in the arithmetic of addresses.
inline const std::size_t* sizes(const Count* counts) {
  return reinterpret_cast<const std::size_t*>(counts);
}
// The counts of all blocks; none where the pointer is null.
inline Counts all(const Count* counts, std::size_t blocks) {
  return {counts, counts == nullptr ? 0 : blocks};
}

// Whether the numbers of all ranks fit an int: with displacements each rank knows its own alone,
// and the stand-in is another call than MPI's. Between two groups, which have no stand-in, and
// where there is no communicator, of which MPI will tell, each rank goes by what it knows.
inline bool all_fit(const Ints& own, Word word) noexcept {
  const mpi::Comm comm{clean(word)};
  const GroupSizes sizes = group_sizes(comm);
  try {
    if (sizes.own == 0 || mpi::is_inter(comm)) return own.fit();
    std::array<std::int64_t, 1> everywhere{own.fit() ? 1 : 0};
    mpi::all_reduce(everywhere, mpi::Combine::min, comm);
    return everywhere[0] != 0;
  } catch (const std::exception&) {  // MPI fails, as it will in the call
    return own.fit();
  }
}

inline int bcast(void* data, int n, Word t, int root, Word c) {
  return next.Bcast(data, n, t, root, c);
}
inline int bcast(void* data, Count n, Word t, int root, Word c) {
  if (next.Bcast_c != nullptr) return next.Bcast_c(data, n, t, root, c);
  if (fits_int(n)) return next.Bcast(data, narrow(n), t, root, c);
  return stand_in(c, [&] { fallback::broadcast(data, size(n), {t}, root, {c}); });
}

inline int reduce(const void* s, void* r, int n, Word t, Word o, int root, Word c) {
  return next.Reduce(s, r, n, t, o, root, c);
}
inline int reduce(const void* s, void* r, Count n, Word t, Word o, int root, Word c) {
  if (next.Reduce_c != nullptr) return next.Reduce_c(s, r, n, t, o, root, c);
  if (fits_int(n)) return next.Reduce(s, r, narrow(n), t, o, root, c);
  return stand_in(c, [&] { fallback::reduce(s, r, size(n), {t}, {o}, root, {c}); });
}

#define ROPEWALK_PASS_REDUCTION(lower, Upper)                                   \
  inline int lower(const void* s, void* r, int n, Word t, Word o, Word c) {     \
    return next.Upper(s, r, n, t, o, c);                                        \
  }                                                                             \
  inline int lower(const void* s, void* r, Count n, Word t, Word o, Word c) {   \
    if (next.Upper##_c != nullptr) return next.Upper##_c(s, r, n, t, o, c);     \
    if (fits_int(n)) return next.Upper(s, r, narrow(n), t, o, c);               \
    return stand_in(c, [&] { fallback::lower(s, r, size(n), {t}, {o}, {c}); }); \
  }
ROPEWALK_PASS_REDUCTION(allreduce, Allreduce)
ROPEWALK_PASS_REDUCTION(scan, Scan)
ROPEWALK_PASS_REDUCTION(exscan, Exscan)
ROPEWALK_PASS_REDUCTION(reduce_scatter_block, Reduce_scatter_block)
#undef ROPEWALK_PASS_REDUCTION

inline int reduce_scatter(const void* s, void* r, const int* n, Word t, Word o, Word c) {
  return next.Reduce_scatter(s, r, n, t, o, c);
}
inline int reduce_scatter(const void* s, void* r, const Count* n, Word t, Word o, Word c) {
  if (next.Reduce_scatter_c != nullptr) return next.Reduce_scatter_c(s, r, n, t, o, c);
  const Ints i{all(n, group_sizes({clean(c)}).own)};
  if (i.fit()) return next.Reduce_scatter(s, r, i[0], t, o, c);
  return stand_in(c, [&] { fallback::reduce_scatter(s, r, sizes(n), {t}, {o}, {c}); });
}

#define ROPEWALK_PASS_ALL(lower, Upper)                                                     \
  inline int lower(const void* s, int n, Word t, void* r, int m, Word u, Word c) {          \
    return next.Upper(s, n, t, r, m, u, c);                                                 \
  }                                                                                         \
  inline int lower(const void* s, Count n, Word t, void* r, Count m, Word u, Word c) {      \
    if (next.Upper##_c != nullptr) return next.Upper##_c(s, n, t, r, m, u, c);              \
    if (fits_int(n) && fits_int(m)) return next.Upper(s, narrow(n), t, r, narrow(m), u, c); \
    return stand_in(c, [&] { fallback::lower(s, size(n), {t}, r, size(m), {u}, {c}); });    \
  }
ROPEWALK_PASS_ALL(allgather, Allgather)
ROPEWALK_PASS_ALL(alltoall, Alltoall)
#undef ROPEWALK_PASS_ALL

#define ROPEWALK_PASS_ROOTED(lower, Upper)                                                       \
  inline int lower(const void* s, int n, Word t, void* r, int m, Word u, int root, Word c) {     \
    return next.Upper(s, n, t, r, m, u, root, c);                                                \
  }                                                                                              \
  inline int lower(const void* s, Count n, Word t, void* r, Count m, Word u, int root, Word c) { \
    if (next.Upper##_c != nullptr) return next.Upper##_c(s, n, t, r, m, u, root, c);             \
    if (fits_int(n) && fits_int(m)) {                                                            \
      return next.Upper(s, narrow(n), t, r, narrow(m), u, root, c);                              \
    }                                                                                            \
    return stand_in(c, [&] { fallback::lower(s, size(n), {t}, r, size(m), {u}, root, {c}); });   \
  }
ROPEWALK_PASS_ROOTED(gather, Gather)
ROPEWALK_PASS_ROOTED(scatter, Scatter)
#undef ROPEWALK_PASS_ROOTED

inline int allgatherv(const void* s, int n, Word t, void* r, const int* m, const int* d, Word u,
                      Word c) {
  return next.Allgatherv(s, n, t, r, m, d, u, c);
}
inline int allgatherv(const void* s, Count n, Word t, void* r, const Count* m, const Count* d,
                      Word u, Word c) {
  if (next.Allgatherv_c != nullptr) return next.Allgatherv_c(s, n, t, r, m, d, u, c);
  const std::size_t blocks = group_sizes({clean(c)}).other;
  const Ints i{{&n, 1}, all(m, blocks), all(d, blocks)};
  if (all_fit(i, c)) return next.Allgatherv(s, *i[0], t, r, i[1], i[2], u, c);
  return stand_in(c,
                  [&] { fallback::allgatherv(s, size(n), {t}, r, sizes(m), sizes(d), {u}, {c}); });
}

inline int gatherv(const void* s, int n, Word t, void* r, const int* m, const int* d, Word u,
                   int root, Word c) {
  return next.Gatherv(s, n, t, r, m, d, u, root, c);
}
inline int gatherv(const void* s, Count n, Word t, void* r, const Count* m, const Count* d, Word u,
                   int root, Word c) {
  if (next.Gatherv_c != nullptr) return next.Gatherv_c(s, n, t, r, m, d, u, root, c);
  // Significant at the root alone: elsewhere the arrays may be anything.
  const std::size_t blocks = blocks_at_root({clean(c)}, root);
  const Ints i{{&n, 1}, {blocks == 0 ? nullptr : m, blocks}, {blocks == 0 ? nullptr : d, blocks}};
  if (all_fit(i, c)) return next.Gatherv(s, *i[0], t, r, i[1], i[2], u, root, c);
  return stand_in(
      c, [&] { fallback::gatherv(s, size(n), {t}, r, sizes(m), sizes(d), {u}, root, {c}); });
}

inline int scatterv(const void* s, const int* n, const int* d, Word t, void* r, int m, Word u,
                    int root, Word c) {
  return next.Scatterv(s, n, d, t, r, m, u, root, c);
}
inline int scatterv(const void* s, const Count* n, const Count* d, Word t, void* r, Count m, Word u,
                    int root, Word c) {
  if (next.Scatterv_c != nullptr) return next.Scatterv_c(s, n, d, t, r, m, u, root, c);
  const std::size_t blocks = blocks_at_root({clean(c)}, root);
  const Ints i{{&m, 1}, {blocks == 0 ? nullptr : n, blocks}, {blocks == 0 ? nullptr : d, blocks}};
  if (all_fit(i, c)) return next.Scatterv(s, i[1], i[2], t, r, *i[0], u, root, c);
  return stand_in(
      c, [&] { fallback::scatterv(s, sizes(n), sizes(d), {t}, r, size(m), {u}, root, {c}); });
}

inline int alltoallv(const void* s, const int* n, const int* d, Word t, void* r, const int* m,
                     const int* e, Word u, Word c) {
  return next.Alltoallv(s, n, d, t, r, m, e, u, c);
}
inline int alltoallv(const void* s, const Count* n, const Count* d, Word t, void* r, const Count* m,
                     const Count* e, Word u, Word c) {
  if (next.Alltoallv_c != nullptr) return next.Alltoallv_c(s, n, d, t, r, m, e, u, c);
  const std::size_t blocks = group_sizes({clean(c)}).other;
  // In place, what is sent is not described.
  const std::size_t sent = collectives::is_in_place(s) ? 0 : blocks;
  const Ints i{all(sent == 0 ? nullptr : n, sent), all(sent == 0 ? nullptr : d, sent),
               all(m, blocks), all(e, blocks)};
  if (all_fit(i, c)) return next.Alltoallv(s, i[0], i[1], t, r, i[2], i[3], u, c);
  return stand_in(
      c, [&] { fallback::alltoallv(s, sizes(n), sizes(d), {t}, r, sizes(m), sizes(e), {u}, {c}); });
}

}  // namespace ropewalk::preload::pass
