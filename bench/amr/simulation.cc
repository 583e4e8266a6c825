#include "amr/simulation.hpp"

#include "common/timed_threads.hpp"

namespace ropewalk::bench {

AmrSimulation::AmrSimulation(const Ranks& ranks, AmrWay& way, int edge, int cells)
    : ranks_(ranks), way_(way), edge_(edge), mesh_(edge, ranks.size(), 0), blocks_(cells) {
  blocks_.fill(mesh_, ranks.rank());
  plan();
}

// What has passed since the last call belongs to the share.
void AmrSimulation::lap(double& share) {
  const double now = now_us();
  share += now - lap_us_;
  lap_us_ = now;
}

void AmrSimulation::plan() {
  local_.clear();
  sent_.clear();
  received_.clear();
  std::size_t out = 0;
  std::size_t in = 0;
  for (const FaceLink& link : mesh_.links()) {
    const bool from_here = mesh_.owner(link.from.base) == ranks_.rank();
    const bool to_here = mesh_.owner(link.to.base) == ranks_.rank();
    if (from_here && to_here) {
      local_.push_back(link);
    } else if (from_here) {
      sent_.push_back(link);
      out += blocks_.face_values(link.kind);
    } else if (to_here) {
      received_.push_back(link);
      in += blocks_.face_values(link.kind);
    }
  }
  outgoing_ = Buffer<double>(out);
  incoming_ = Buffer<double>(in);
  scratch_.resize(blocks_.block_values());
}

void AmrSimulation::send(const double* values, std::size_t count, int to) {
  way_.start_send(values, count, to);
  messages_ += 1;
  bytes_ += static_cast<double>(count * sizeof(double));
}

// One message for each face that another rank needs, in the order of the faces.
void AmrSimulation::send_faces() {
  double* in = incoming_.data();
  for (const FaceLink& link : received_) {
    way_.start_receive(in, blocks_.face_values(link.kind), mesh_.owner(link.from.base));
    in += blocks_.face_values(link.kind);
  }
  lap(shares_.communication);
  double* out = outgoing_.data();
  for (const FaceLink& link : sent_) {
    blocks_.pack(link, out);
    out += blocks_.face_values(link.kind);
  }
  lap(shares_.computing);
  out = outgoing_.data();
  for (const FaceLink& link : sent_) {
    send(out, blocks_.face_values(link.kind), mesh_.owner(link.to.base));
    out += blocks_.face_values(link.kind);
  }
  way_.wait_all();
  lap(shares_.communication);
}

void AmrSimulation::fill_ghosts() {
  for (const FaceLink& link : local_) {
    blocks_.pack(link, scratch_.data());
    blocks_.unpack(link, scratch_.data());
  }
  const double* from = incoming_.data();
  for (const FaceLink& link : received_) {
    blocks_.unpack(link, from);
    from += blocks_.face_values(link.kind);
  }
}

void AmrSimulation::step() {
  send_faces();
  fill_ghosts();
  blocks_.update();
  const double sum = blocks_.sum();
  lap(shares_.computing);
  checksum_ = way_.sum(sum);
  lap(shares_.reductions);
}

// Blocks go as they are; their new owner divides or joins them.
void AmrSimulation::move_blocks(const AmrMesh& after) {
  std::vector<MeshBlock> gone;
  for (int base = 0; base < mesh_.bases(); ++base) {
    const int from = mesh_.owner(base);
    const int to = after.owner(base);
    if (from == to || (from != ranks_.rank() && to != ranks_.rank())) continue;
    for (const MeshBlock& block : mesh_.blocks_of(base)) {
      if (to == ranks_.rank()) {
        blocks_.add(block);
        way_.start_receive(blocks_.values(block), blocks_.block_values(), from);
      } else {
        send(blocks_.values(block), blocks_.block_values(), to);
        gone.push_back(block);
      }
    }
  }
  way_.wait_all();
  for (const MeshBlock& block : gone) blocks_.remove(block);
}

void AmrSimulation::change(int time) {
  AmrMesh after(edge_, ranks_.size(), time);
  lap(shares_.computing);
  move_blocks(after);
  lap(shares_.communication);
  for (int base = 0; base < mesh_.bases(); ++base) {
    if (after.owner(base) == ranks_.rank()) blocks_.follow(mesh_, after, base);
  }
  mesh_ = std::move(after);
  plan();
  const auto count = static_cast<double>(blocks_.count());
  lap(shares_.computing);
  way_.sum(count);
  lap(shares_.reductions);
}

void AmrSimulation::run(int meshes, int steps_each) {
  lap_us_ = now_us();
  for (int time = 0; time < meshes; ++time) {
    if (time > 0) change(time);
    for (int i = 0; i < steps_each; ++i) step();
  }
}

}  // namespace ropewalk::bench
