// Fourier transforms of one line, by KissFFT or by a library that has the interface of FFTW 3.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>

namespace ropewalk::bench {

using Complex = std::complex<double>;

// For one thread at a time.
class LinePlan {
 public:
  LinePlan() = default;
  LinePlan(const LinePlan&) = delete;
  LinePlan& operator=(const LinePlan&) = delete;
  virtual ~LinePlan() = default;
  // Forward is exp(-2 pi i j k / n), backward exp(2 pi i j k / n); neither is divided by n.
  virtual void forward(const Complex* from, Complex* to) = 0;
  virtual void backward(const Complex* from, Complex* to) = 0;
};

struct FftwFunctions;

class LineLibrary {
 public:
  // "kissfft", or the file of the other library as dlopen takes it. Throws Error(argument) where it
  // cannot be loaded, or has no such interface. Plans must be gone before this object is.
  explicit LineLibrary(const std::string& name = "kissfft");
  std::unique_ptr<LinePlan> plan(std::size_t length) const;

 private:
  std::shared_ptr<const FftwFunctions> fftw_;  // null: KissFFT
};

}  // namespace ropewalk::bench
