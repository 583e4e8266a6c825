// Communicators of every kind, for random collectives: each rank makes the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preload/mpi/the_mpi.hpp"

namespace generator {

struct Comm {
  std::string name;
  MPI_Comm handle;  // MPI_COMM_NULL on a rank that does not belong to it
  int rank = 0;
  int size = 1;
};

class Communicators {
 public:
  explicit Communicators(std::uint64_t seed);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  static constexpr std::size_t kinds = 10;
  std::vector<Comm> all;

  // Attributes and error handler are as they were, and nobody has looked into them.
  void check_burdened() const;

 private:
  void add(const std::string& name, MPI_Comm handle);
  void own(const std::string& name, MPI_Comm handle);
  void add_splits(std::uint64_t seed);
  void add_group();
  void add_grid();
  void add_burdened();

  int rank_;
  int size_;
  std::vector<MPI_Comm> owned_;
  MPI_Comm burdened_ = MPI_COMM_NULL;
  int keyval_ = MPI_KEYVAL_INVALID;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

}  // namespace generator
