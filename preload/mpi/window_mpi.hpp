// This file has the functions of MPI that served windows need beside those that the drop-in takes.
#pragma once

#include <vector>

#include "functions.hpp"
#include "mpi/mpi.hpp"
#include "mpi/window_abi.hpp"

namespace ropewalk::preload::onesided {

const mpi::WindowAbi& window_abi() noexcept;

// Calls the window's error handler with an error of ours, and returns its code.
int raise_on_window(Word window, const char* text) noexcept;

// MPI frees a window that ropewalk has made for itself. Collective.
void free_window(Word window) noexcept;

// Where the memory of a rank of a shared window is mapped here, and how it is counted. Local.
struct SharedPart {
  std::byte* base = nullptr;
  Count bytes = 0;
  int unit = 1;
};
SharedPart shared_part(Word window, int rank);

// The ranks that the members of a group have in the group of a window. Local.
std::vector<int> ranks_in_window(Word group, Word window);

// Hints that let the memory of each rank of a shared window begin on a page of its own, beside
// those that the program gives.
class ScatteredInfo {
 public:
  explicit ScatteredInfo(Word given);
  ~ScatteredInfo();
  ScatteredInfo(const ScatteredInfo&) = delete;
  ScatteredInfo& operator=(const ScatteredInfo&) = delete;
  Word word() const noexcept { return word_; }

 private:
  Word word_ = 0;
};

}  // namespace ropewalk::preload::onesided
