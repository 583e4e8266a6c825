// This header tells who has the core while faces travel: it measures the processor time of an
// exchange, as the kernel counts it, and as what is left of the core for something else.
#pragma once

namespace ropewalk::bench {

// Arithmetic in registers of known length, a few microseconds: it neither uses the caches nor
// waits.
class Burner {
 public:
  Burner();
  void burn() noexcept;
  double us() const noexcept { return us_; }  // of a burn(), the median

 private:
  double value_ = 1;
  double us_ = 0;
};

// The times are microseconds since some moment: of this thread in the kernel, without interrupts;
// and of the whole machine in soft interrupts, where TCP handles what arrives, in steps of the
// kernel's clock (10 ms).
struct KernelTime {
  double system_us = 0;
  double softirq_us = 0;
};
KernelTime kernel_time();

}  // namespace ropewalk::bench
