// One buffer on scattered or on huge pages, handed over once (fresh) or again and again (steady).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/timed_threads.hpp"
#include "pages/fragmented.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// "scattered": a memfd of 4 KiB pages in fragmented memory; "huge": a block of the ladder;
// "thp": one of whatever pages the system gives.
class PageBuffer {
 public:
  PageBuffer(const std::string& pages, std::size_t bytes);
  std::byte* data() const noexcept;
  int descriptor() const noexcept;  // -1 where a peer cannot map it
  std::size_t mappable_bytes() const noexcept;

 private:
  SmallPages small_;
  PageBlock block_;
  std::size_t bytes_ = 0;
};

// Ways from one owner to a peer. `fresh` takes a new buffer for each transfer and counts all of it:
// pages, first touch, the peer's mapping, the copy, and giving it all back. `steady` counts the
// transfer alone, from a buffer that both sides know.
class TransferPath {
 public:
  virtual ~TransferPath() = default;
  virtual std::string name() const = 0;
  // Tells whether buffers on pages of this kind can go this way.
  virtual bool takes(const std::string& /*pages*/) const { return true; }
  virtual double fresh(const std::string& pages, std::size_t bytes) = 0;  // microseconds
  // Microseconds of one of `count` transfers.
  virtual double steady(const std::string& pages, std::size_t bytes, int count) = 0;
  // Tells whether every byte of every sample so far has arrived.
  virtual bool verified() const = 0;
};

// Inside one process: a second thread maps the buffer a second time, as a peer process does, and
// copies it into its own memory. The buffer of `steady` is kept until pages or size change.
class MappedPath : public TransferPath {
 public:
  explicit MappedPath(std::size_t largest);
  std::string name() const override { return "mapped"; }
  // Private memory has no second mapping.
  bool takes(const std::string& pages) const override { return pages != "thp"; }
  double fresh(const std::string& pages, std::size_t bytes) override;
  double steady(const std::string& pages, std::size_t bytes, int count) override;
  bool verified() const override { return verified_; }

 private:
  void check(std::size_t bytes, std::uint64_t key);
  TimedThreads team_{2};
  PageBlock destination_;
  std::uint64_t serial_ = 0;
  bool verified_ = true;
};

// The kernel copies (process_vm_readv, called on this process itself): it looks up and pins every
// page of the source on its way, as an adapter's driver does when it registers a buffer.
class KernelPath : public TransferPath {
 public:
  explicit KernelPath(std::size_t largest);
  std::string name() const override { return "kernel"; }
  double fresh(const std::string& pages, std::size_t bytes) override;
  double steady(const std::string& pages, std::size_t bytes, int count) override;
  bool verified() const override { return verified_; }

 private:
  void copy(const std::byte* from, std::size_t bytes);
  PageBlock destination_;
  std::uint64_t serial_ = 0;
  bool verified_ = true;
};

// Between ranks 2k and 2k+1, both ways at once, by the MPI's own isend and irecv. Collective.
class MpiPath : public TransferPath {
 public:
  explicit MpiPath(const Ranks& ranks);
  std::string name() const override { return "mpi"; }
  double fresh(const std::string& pages, std::size_t bytes) override;
  double steady(const std::string& pages, std::size_t bytes, int count) override;
  bool verified() const override { return verified_; }

 private:
  struct Pair;
  double slowest(double time) const;
  const Ranks& ranks_;
  EndpointSet endpoints_;
  int peer_;  // -1 for a last rank without a partner
  std::uint64_t serial_ = 0;
  bool verified_ = true;
};

}  // namespace ropewalk::bench
