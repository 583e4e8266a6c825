// What the caller of a halo asks for: one form for packets, fields and buffers of the halo.
#pragma once

#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::halo {

// Throws Error(argument).
[[noreturn]] inline void refuse(const std::string& text) { throw Error(ErrorCode::argument, text); }

enum class Form { faces, fields, buffers };

inline mpi::Comm comm_of(const CartesianGrid& grid) { return {grid.communicator().handle()}; }

struct HaloRequest {
  const CartesianGrid& grid;
  EndpointSet& endpoints;
  HaloOptions options;
  Form form;
  // These belong to Form::faces and Form::buffers. The halo's own buffers have bytes alone until
  // there is memory for them (own_faces.hpp).
  FacePackets faces;
  std::vector<Field> fields;  // of Form::fields

  mpi::Comm comm() const { return comm_of(grid); }
  std::size_t dimensions() const { return grid.extents().size(); }
  bool automatic() const { return options.strategy == Strategy::automatic; }
  // `automatic` must not write to the caller's memory while it measures. The halo's own it may.
  bool rehearses() const { return automatic() && form != Form::buffers; }
};

}  // namespace ropewalk::halo
