// The elements of a call that goes on after MPI has returned to the program, which may free its
// datatype meanwhile.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "collectives/typed.hpp"
#include "collectives/view.hpp"
#include "local_mpi.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::preload {

class KeptElements {
 public:
  using Elements = collectives::Elements;
  explicit KeptElements(const Elements& elements) : elements_(elements) {
    if (!mpi::is_predefined(elements.type)) elements_.type = one_of(elements.type);
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
class KeptBlocks {
 public:
  KeptBlocks() = default;
  virtual ~KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  // Whether some of these bytes are copies, which pack() brings from the elements, and unpack()
  // takes to them.
  virtual bool packs() const noexcept = 0;
  virtual void pack() = 0;
  virtual void unpack() = 0;
  virtual std::size_t bytes(std::size_t block) const noexcept = 0;
  virtual std::byte* data(std::size_t block) const noexcept = 0;
};

// Blocks of one type.
class KeptView final : public KeptBlocks {
 public:
  KeptView(const collectives::typed::TypedBuffers& blocks, int number)
      : elements_(blocks.elements),
        view_(elements_.get(), blocks.data, blocks.counts, blocks.displacements, number) {}
  bool packs() const noexcept override { return elements_.get().packed; }
  void pack() override { view_.pack(); }
  void unpack() override { view_.unpack(); }
  std::size_t bytes(std::size_t block) const noexcept override { return view_.counts()[block]; }
  std::byte* data(std::size_t block) const noexcept override {
    return static_cast<std::byte*>(view_.data()) + view_.displacements()[block];
  }

 private:
  KeptElements elements_;
  collectives::View view_;
};

// Blocks that each have a type of their own.
class KeptParts final : public KeptBlocks {
 public:
  // `owner` keeps what the parts refer to.
  KeptParts(std::shared_ptr<const void> owner, std::span<const collectives::TypedPart> parts);
  ~KeptParts() override;
  bool packs() const noexcept override { return copies_ != nullptr; }
  void pack() override;
  void unpack() override;
  std::size_t bytes(std::size_t block) const noexcept override { return parts_[block].bytes(); }
  std::byte* data(std::size_t block) const noexcept override { return data_[block]; }
  const collectives::TypedPart& part(std::size_t block) const noexcept { return parts_[block]; }
  std::size_t size() const noexcept { return parts_.size(); }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<collectives::TypedPart> parts_;
  std::deque<collectives::Pattern> own_;  // with types that the program cannot free
  std::unique_ptr<std::byte[]> copies_;
  std::vector<std::byte*> data_;
};

}  // namespace ropewalk::preload
