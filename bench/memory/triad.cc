// This file has the loops of triad.hpp. It is compiled with -O3; each instruction set is chosen at
// run time, so that one binary shows what the CPU can do.
#include "memory/triad.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ropewalk::bench {
namespace {

template <class T>
[[gnu::always_inline]] inline void loop(T* __restrict__ z, const T* __restrict__ x,
                                        const T* __restrict__ y, T a, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) z[i] = a * x[i] + y[i];
}

#if defined(__x86_64__)

template <class T>
[[gnu::target("avx512f")]] void loop_avx512(T* z, const T* x, const T* y, T a, std::size_t count) {
  loop(z, x, y, a, count);
}

template <class T>
[[gnu::target("avx2,fma")]] void loop_avx2(T* z, const T* x, const T* y, T a, std::size_t count) {
  loop(z, x, y, a, count);
}

template <class T>
void plain(T* z, const T* x, const T* y, T a, std::size_t count) {
  if (__builtin_cpu_supports("avx512f")) return loop_avx512(z, x, y, a, count);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return loop_avx2(z, x, y, a, count);
  }
  loop(z, x, y, a, count);
}

// SSE2 is on every x86-64: four 16-byte stores fill one line in the write-combining buffer.
void streaming(float* z, const float* x, const float* y, float a, std::size_t count) {
  const __m128 factor = _mm_set1_ps(a);
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    _mm_stream_ps(z + i, _mm_add_ps(_mm_mul_ps(factor, _mm_load_ps(x + i)), _mm_load_ps(y + i)));
  }
  _mm_sfence();
  loop(z + i, x + i, y + i, a, count - i);
}

void streaming(double* z, const double* x, const double* y, double a, std::size_t count) {
  const __m128d factor = _mm_set1_pd(a);
  std::size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    _mm_stream_pd(z + i, _mm_add_pd(_mm_mul_pd(factor, _mm_load_pd(x + i)), _mm_load_pd(y + i)));
  }
  _mm_sfence();
  loop(z + i, x + i, y + i, a, count - i);
}

constexpr bool streams = true;

#else

template <class T>
void plain(T* z, const T* x, const T* y, T a, std::size_t count) {
  loop(z, x, y, a, count);
}
template <class T>
void streaming(T* z, const T* x, const T* y, T a, std::size_t count) {
  loop(z, x, y, a, count);
}
constexpr bool streams = false;

#endif

}  // namespace

bool has_streaming_stores() { return streams; }

void triad(float* z, const float* x, const float* y, float a, std::size_t count, Stores stores) {
  stores == Stores::streaming ? streaming(z, x, y, a, count) : plain(z, x, y, a, count);
}

void triad(double* z, const double* x, const double* y, double a, std::size_t count,
           Stores stores) {
  stores == Stores::streaming ? streaming(z, x, y, a, count) : plain(z, x, y, a, count);
}

}  // namespace ropewalk::bench
