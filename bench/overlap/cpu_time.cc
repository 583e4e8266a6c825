// Reading the kernel's clocks, and filling a core; see cpu_time.hpp.
#include "overlap/cpu_time.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/statistics.hpp"
#include "common/timed_threads.hpp"

namespace ropewalk::bench {

// The median is taken, as for what is measured beside it: the least of them would count every
// disturbance of the core as time of the exchange.
Burner::Burner() {
  constexpr int burns = 20;
  std::vector<double> samples;
  for (int sample = 0; sample < 200; ++sample) {  // some 8 ms
    const double begin = now_us();
    for (int i = 0; i < burns; ++i) burn();
    samples.push_back((now_us() - begin) / burns);
  }
  us_ = summarize(samples).median;
}

// Each step waits for the one before, 4 cycles.
void Burner::burn() noexcept {
  double value = value_;
  for (int i = 0; i < 1500; ++i) value = value * 0.999999 + 1e-6;
  value_ = value;
}

KernelTime kernel_time() {
  KernelTime out;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    out.system_us = 1e6 * static_cast<double>(usage.ru_stime.tv_sec) +
                    static_cast<double>(usage.ru_stime.tv_usec);
  }
  // The line reads: cpu user nice system idle iowait irq softirq ...
  std::ifstream stat("/proc/stat");
  std::string word;
  double ticks = 0;
  for (int field = 0; field < 8 && stat >> word; ++field) {
    if (field == 7) ticks = std::stod(word);
  }
  const auto hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  out.softirq_us = hertz > 0 ? 1e6 * ticks / hertz : 0;
  return out;
}

}  // namespace ropewalk::bench
