// What one rank can find wrong in a request by itself.
#include "halo/checks.hpp"

#include <string>

#include "halo/links.hpp"
#include "halo/regions.hpp"

namespace ropewalk::halo {

namespace {

// A face in memory of the halo has at most so many bytes: the sum of twelve of them, twice, still
// fits a size_t.
constexpr std::size_t most_face_bytes = SIZE_MAX >> 6;

void check_endpoints(const CartesianGrid& grid, const EndpointSet& endpoints,
                     const HaloOptions& options) {
  if (endpoints.size() != grid.size()) {
    refuse("endpoints: made on a communicator of " + std::to_string(endpoints.size()) +
           " ranks, expected the " + std::to_string(grid.size()) +
           " of the grid; make grid and endpoints from the same communicator");
  }
  if (endpoints.rank() != grid.rank()) {
    refuse("endpoints: this is rank " + std::to_string(endpoints.rank()) +
           " of their communicator and rank " + std::to_string(grid.rank()) +
           " of the grid's; make grid and endpoints from the same communicator");
  }
  if (options.strategy == Strategy::threaded && !endpoints.has_threads()) {
    refuse(
        "strategy: threaded, but the endpoints have no comm threads, expected at least one lane "
        "with a thread; make the EndpointSet with threads = true and lanes >= 1, or choose "
        "concurrent");
  }
}

void check_options(const HaloOptions& options, Form form) {
  if (options.strategy < Strategy::automatic || options.strategy > Strategy::put) {
    refuse("strategy: " + std::to_string(static_cast<int>(options.strategy)) +
           ", expected 0 to 5; pass automatic, sequential, concurrent, threaded, direct or "
           "put");
  }
  if (options.strategy == Strategy::put && form != Form::buffers) {
    refuse(
        "strategy: put with buffers of the caller's, expected faces in memory of the halo; "
        "pass HaloBuffers, or choose direct");
  }
  if (options.corners != Corners::no && options.corners != Corners::yes) {
    refuse("corners: " + std::to_string(static_cast<int>(options.corners)) +
           ", expected 0 or 1; pass Corners::no or Corners::yes");
  }
}

void check_parts(const HaloOptions& options, Form form) {
  if (options.parts < 0 || options.parts > Halo::max_parts) {
    refuse("parts: " + std::to_string(options.parts) + ", expected 0 to " +
           std::to_string(Halo::max_parts) + "; pass 0 to hand over faces as a whole");
  }
  if (options.parts == 0) return;
  if (form != Form::buffers) {
    refuse(
        "parts: with buffers of the caller's, expected faces in memory of the halo; pass "
        "HaloBuffers, or parts = 0");
  }
  if (options.strategy != Strategy::automatic && options.strategy != Strategy::put) {
    refuse(std::string("parts: with strategy ") + name(options.strategy) +
           ", expected put; pass put or automatic, or parts = 0");
  }
}

void check_workers(const HaloOptions& options) {
  if (options.workers >= 1 && options.workers <= Halo::max_workers) return;
  refuse("workers: " + std::to_string(options.workers) + ", expected 1 to " +
         std::to_string(Halo::max_workers) + "; pass the number of threads that share the copies");
}

void check_face_count(std::size_t count, const char* member, std::size_t expected) {
  if (count != expected) {
    refuse(std::string("faces.") + member + ": " + std::to_string(count) +
           " entries, expected 2 for each dimension of the grid, " + std::to_string(expected) +
           "; pass one towards + and one towards - of each");
  }
}

void check_faces(const HaloRequest& request) {
  const FacePackets& faces = request.faces;
  const std::size_t expected = 2 * request.dimensions();
  check_face_count(faces.send.size(), "send", expected);
  check_face_count(faces.receive.size(), "receive", expected);
  check_face_count(faces.bytes.size(), "bytes", expected);
  for (std::size_t i = 0; i < expected; ++i) {
    if (faces.bytes[i] == 0 || face_neighbour(request.grid, i) < 0) continue;
    if (faces.send[i] == nullptr || faces.receive[i] == nullptr) {
      refuse(std::string("faces.") + (faces.send[i] == nullptr ? "send[" : "receive[") +
             std::to_string(i) + "]: null with " + std::to_string(faces.bytes[i]) +
             " bytes, expected a buffer; allocate it, or pass 0 bytes to leave the direction out");
    }
  }
}

void check_buffers(const HaloRequest& request) {
  const std::vector<std::size_t>& bytes = request.faces.bytes;
  check_face_count(bytes.size(), "bytes", 2 * request.dimensions());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] <= most_face_bytes) continue;
    throw Error(ErrorCode::memory, "faces.bytes[" + std::to_string(i) +
                                       "]: " + std::to_string(bytes[i]) +
                                       ", expected what fits in memory; send less at a time");
  }
}

void check_fields(const HaloRequest& request) {
  if (request.fields.empty()) {
    refuse("fields: none, expected at least one; pass the arrays whose ghosts are exchanged");
  }
  for (std::size_t i = 0; i < request.fields.size(); ++i) {
    check_field(request.fields[i], i, request.grid);
  }
}

}  // namespace

void check_request(const HaloRequest& request) {
  check_options(request.options, request.form);
  check_parts(request.options, request.form);
  check_workers(request.options);
  check_endpoints(request.grid, request.endpoints, request.options);
  if (request.form == Form::faces) check_faces(request);
  if (request.form == Form::buffers) check_buffers(request);
  if (request.form == Form::fields) check_fields(request);
}

}  // namespace ropewalk::halo
