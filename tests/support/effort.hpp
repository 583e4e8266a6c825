// How much a test of random cases does. A sanitizer looks at every access and takes ten times as
// long, and what it looks for shows in fewer cases as well.
#pragma once

namespace ropewalk::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// Returns so many cases, or a fourth of them under a sanitizer.
constexpr int cases(int count) { return sanitized ? (count + 3) / 4 : count; }

}  // namespace ropewalk::test
