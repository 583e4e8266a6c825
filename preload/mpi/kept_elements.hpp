// The elements of a call that goes on after MPI has returned to the program, which may free its
// datatype meanwhile.
#pragma once

#include "collectives/typed.hpp"
#include "collectives/view.hpp"
#include "local_mpi.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::preload {

class KeptElements {
 public:
  using Elements = collectives::Elements;
  explicit KeptElements(const Elements& elements) : elements_(elements) {
    if (!mpi::is_predefined(elements.type)) elements_.type = duplicate(elements.type);
  }
  ~KeptElements() {
    if (!mpi::is_predefined(elements_.type)) let_go(elements_.type);
  }
  KeptElements(const KeptElements&) = delete;
  KeptElements& operator=(const KeptElements&) = delete;
  const Elements& get() const noexcept { return elements_; }

 private:
  Elements elements_;
};

// The program's blocks, seen as bytes without gaps for as long as this stands.
class KeptView {
 public:
  KeptView(const collectives::typed::TypedBuffers& blocks, int number)
      : elements_(blocks.elements),
        view_(elements_.get(), blocks.data, blocks.counts, blocks.displacements, number) {}
  bool packs() const noexcept { return elements_.get().packed; }
  void pack() { view_.pack(); }
  void unpack() { view_.unpack(); }
  std::size_t bytes(std::size_t block) const noexcept { return view_.counts()[block]; }
  std::byte* data(std::size_t block) const noexcept {
    return static_cast<std::byte*>(view_.data()) + view_.displacements()[block];
  }

 private:
  KeptElements elements_;
  collectives::View view_;
};

}  // namespace ropewalk::preload
