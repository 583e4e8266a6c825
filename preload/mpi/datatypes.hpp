// The datatypes and operations of a call, as the collectives take them.
//
// The properties of a datatype, and of each pair with a predefined operation, are found out at its
// first call and kept until the type is freed. So a call that goes to MPI because of its type or
// operation costs no more than one that is served.
//
// MPI allows a program to free a type while a call that uses it is under way, on another thread. So
// a call uses the record of one of MPI's own types in place, but copies that of a type of the
// program. If MPI will be asked about such a type during the call, the call keeps the type alive.
#pragma once

#include <memory>
#include <optional>

#include "collectives/pattern.hpp"
#include "collectives/typed.hpp"
#include "functions.hpp"

namespace ropewalk::preload {

// Set when the MPI is known: handles that are ints come with an undefined upper half.
extern Word handle_bits;
inline Word clean(Word handle) noexcept { return handle & handle_bits; }

// A type of the program that MPI keeps while this stands: where other threads may call MPI, which
// costs some tenths of a microsecond there. Nothing for MPI's own types.
class HeldType {
 public:
  HeldType() = default;
  ~HeldType();
  HeldType(const HeldType&) = delete;
  HeldType& operator=(const HeldType&) = delete;
  void hold(mpi::Datatype) noexcept;

 private:
  Word word_ = 0;
};

// The elements of a type; none for what MPI must judge. It stays where it was made.
class FoundElements {
 public:
  using Elements = collectives::Elements;
  explicit FoundElements(const Elements* kept = nullptr) noexcept : found_(kept) {}
  explicit FoundElements(const Elements& own) noexcept : found_(&own_.emplace(own)) {}
  FoundElements(const FoundElements&) = delete;
  FoundElements& operator=(const FoundElements&) = delete;

  explicit operator bool() const noexcept { return found_ != nullptr; }
  const Elements& operator*() const noexcept { return *found_; }
  const Elements* operator->() const noexcept { return found_; }
  // For a call that begins: MPI packs and unpacks what has gaps, to its end.
  void hold() noexcept {
    if (own_ && own_->packed) [[unlikely]] {
      held_.hold(own_->type);
    }
  }

 private:
  std::optional<Elements> own_;
  const Elements* found_;
  HeldType held_;
};
FoundElements elements_of(Word type) noexcept;

// Says whether a message of this type may be cut behind any multiple of 32 bytes: its elements lie
// side by side, and consist of predefined types of one size of 1, 2, 4, 8, 16 or 32 bytes. Neither
// a pair is such a type, nor MPI_PACKED. Asked for once a type.
bool is_even(Word type) noexcept;

// Where the data of a type's elements lie; null for what MPI must judge. Asked for once a type, at
// its first call that does not pack. std::bad_alloc is this rank's alone, as below.
using KeptPattern = std::shared_ptr<const collectives::Pattern>;
KeptPattern pattern_of(Word type);

// A reduction, or nothing for a pair that MPI must judge. It stays where it was made, for a call
// that begins.
class FoundReduction {
 public:
  using Reduction = collectives::typed::Reduction;
  explicit FoundReduction(const Reduction* kept = nullptr) noexcept : found_(kept) {}
  FoundReduction(const Reduction& own, bool derived) noexcept : found_(&own_.emplace(own)) {
    if (derived && own.operation.by_mpi) held_.hold(own.operation.mpi_type);
  }
  FoundReduction(const FoundReduction&) = delete;
  FoundReduction& operator=(const FoundReduction&) = delete;

  explicit operator bool() const noexcept { return found_ != nullptr; }
  const Reduction& operator*() const noexcept { return *found_; }
  const Reduction* operator->() const noexcept { return found_; }

 private:
  std::optional<Reduction> own_;
  const Reduction* found_;
  HeldType held_;
};
// std::bad_alloc is this rank's alone: thrown in a call that is served, it is an error on all.
FoundReduction reduction_of(Word type, Word op);

}  // namespace ropewalk::preload
