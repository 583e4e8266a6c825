// This file has blocks of any type of their own, for calls that go on after MPI has returned.
#include "kept_elements.hpp"

namespace ropewalk::preload {

using collectives::TypedPart;

KeptParts::KeptParts(std::shared_ptr<const void> owner, std::span<const TypedPart> parts)
    : owner_(std::move(owner)), parts_(parts.begin(), parts.end()), data_(parts.size()) {
  std::size_t copied = 0;
  for (TypedPart& part : parts_) {
    if (part.bytes() == 0 || part.as_run() != nullptr) continue;
    copied += part.bytes();
    if (part.pattern->known) continue;
    collectives::Pattern& own = own_.emplace_back(*part.pattern);
    own.type = {};
    own.type = one_of(part.pattern->type);
    part.pattern = &own;
  }
  // Not set: where the ranks share the memory of the program, nobody touches it.
  if (copied != 0) copies_ = std::make_unique_for_overwrite<std::byte[]>(copied);
  std::byte* unused = copies_.get();
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const TypedPart& part = parts_[k];
    data_[k] = const_cast<std::byte*>(part.as_run());
    if (part.bytes() == 0 || data_[k] != nullptr) continue;
    data_[k] = unused;
    unused += part.bytes();
  }
}

KeptParts::~KeptParts() {
  for (const collectives::Pattern& own : own_) let_go(own.type);
}

void KeptParts::pack() {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (parts_[k].bytes() != 0 && parts_[k].as_run() == nullptr) parts_[k].pack(data_[k]);
  }
}

void KeptParts::unpack() {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (parts_[k].bytes() != 0 && parts_[k].as_run() == nullptr) parts_[k].unpack(data_[k]);
  }
}

}  // namespace ropewalk::preload
