// Halos over several nodes: strategies direct and put inside the node, and messages to the others,
// in one exchange.
#pragma once

#include <memory>

#include "halo/carrier.hpp"

namespace ropewalk::halo {

// Faces that leave the node are sent first, and those inside it are copied while they travel. Both
// parts are of the same exchange: where one of them fails, this rank gives up the other as well.
class MixedCarrier final : public Carrier {
 public:
  // `far` has messages. `caller_drives`: they move only while this rank looks at them.
  MixedCarrier(std::unique_ptr<Carrier> near, std::unique_ptr<Carrier> far, bool caller_drives);

  void start() override;
  bool test() override;
  void wait() override;
  void give_up() noexcept override;

  Strategy strategy() const noexcept override { return near_->strategy(); }
  std::size_t send_bytes() const noexcept override {
    return near_->send_bytes() + far_->send_bytes();
  }
  std::size_t turn() const noexcept override { return near_->turn(); }
  bool writable() const noexcept override { return near_->writable(); }
  void settle() noexcept override { near_->settle(); }

 private:
  template <class Body>
  void together(Body&& body);
  void poll_both();

  std::unique_ptr<Carrier> far_;
  std::unique_ptr<Carrier> near_;  // its end comes first, and MPI moves the messages meanwhile
  bool caller_drives_;
  bool far_there_ = false;  // in this exchange, as is `near_there_`
  bool near_there_ = false;
};

}  // namespace ropewalk::halo
