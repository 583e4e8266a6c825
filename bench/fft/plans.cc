#include "fft/plans.hpp"

#include <dlfcn.h>

#include <kissfft/kissfft.hh>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {

// Of the header of FFTW 3, whose binary interface has stayed the same since 3.0 (2003). Complex
// numbers are two doubles.
struct FftwFunctions {
  using Plan = void*;
  Plan (*plan)(int length, Complex* from, Complex* to, int sign, unsigned flags) = nullptr;
  void (*execute)(Plan, Complex* from, Complex* to) = nullptr;
  void (*destroy)(Plan) = nullptr;
};

namespace {

constexpr int fftw_forward = -1;
constexpr int fftw_backward = 1;
constexpr unsigned fftw_measure = 0;
constexpr unsigned fftw_unaligned = 1U << 1;  // arrays other than those of the planner are aligned
                                              // to 16 bytes only

class KissPlan final : public LinePlan {
 public:
  explicit KissPlan(std::size_t length) : forward_(length, false), backward_(length, true) {}
  void forward(const Complex* from, Complex* to) override { forward_.transform(from, to); }
  void backward(const Complex* from, Complex* to) override { backward_.transform(from, to); }

 private:
  kissfft<double> forward_;
  kissfft<double> backward_;
};

// The planner tries algorithms on arrays of its own. Execution does not write to the input, since
// transforms are out of place.
class FftwPlan final : public LinePlan {
 public:
  FftwPlan(std::shared_ptr<const FftwFunctions> call, std::size_t length) : call_(std::move(call)) {
    std::vector<Complex> from(length);
    std::vector<Complex> to(length);
    const auto planned = [&](int sign) {
      return call_->plan(static_cast<int>(length), from.data(), to.data(), sign,
                         fftw_measure | fftw_unaligned);
    };
    forward_ = planned(fftw_forward);
    backward_ = planned(fftw_backward);
  }
  ~FftwPlan() override {
    call_->destroy(forward_);
    call_->destroy(backward_);
  }
  FftwPlan(const FftwPlan&) = delete;
  FftwPlan& operator=(const FftwPlan&) = delete;
  void forward(const Complex* from, Complex* to) override {
    call_->execute(forward_, const_cast<Complex*>(from), to);
  }
  void backward(const Complex* from, Complex* to) override {
    call_->execute(backward_, const_cast<Complex*>(from), to);
  }

 private:
  std::shared_ptr<const FftwFunctions> call_;
  FftwFunctions::Plan forward_ = nullptr;
  FftwFunctions::Plan backward_ = nullptr;
};

[[noreturn]] void refuse_library(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::argument,
              "--library: \"" + name + "\": " + why +
                  "; write kissfft, or a library with the interface of FFTW 3, for example "
                  "libfftw3.so.3");
}

// The library stays loaded: it may have threads and destructors of its own.
FftwFunctions load_fftw(const std::string& name) {
  void* file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) refuse_library(name, dlerror());
  FftwFunctions call;
  const auto find = [&](auto& function, const char* symbol) {
    void* found = dlsym(file, symbol);
    if (found == nullptr) refuse_library(name, std::string("has no ") + symbol);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(call.plan, "fftw_plan_dft_1d");
  find(call.execute, "fftw_execute_dft");
  find(call.destroy, "fftw_destroy_plan");
  return call;
}

}  // namespace

LineLibrary::LineLibrary(const std::string& name) {
  if (name != "kissfft") fftw_ = std::make_shared<const FftwFunctions>(load_fftw(name));
}

std::unique_ptr<LinePlan> LineLibrary::plan(std::size_t length) const {
  if (!fftw_) return std::make_unique<KissPlan>(length);
  return std::make_unique<FftwPlan>(fftw_, length);
}

}  // namespace ropewalk::bench
