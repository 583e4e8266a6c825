#include "reduction/random_cases.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ropewalk/memory.hpp"

namespace ropewalk::test {
namespace {

using Vector = PlanCase::Vector;

// ---- 16-bit floating point, written out

float widen(ElementType type, std::uint16_t half) {
  if (type == ElementType::bfloat16) return std::bit_cast<float>(std::uint32_t{half} << 16);
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (half & 0x8000) != 0 ? -size : size;
}

// Nearest, ties to even, by trying: values of these tests are finite and in range.
std::uint16_t narrow(ElementType type, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const float size = std::fabs(value);
  std::uint16_t low = 0;
  std::uint16_t high = type == ElementType::bfloat16 ? 0x7f7f : 0x7bff;
  while (low < high) {  // the largest half that is not above
    const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
    if (widen(type, middle) <= size) {
      low = middle;
    } else {
      high = static_cast<std::uint16_t>(middle - 1);
    }
  }
  const auto above = static_cast<std::uint16_t>(low + 1);
  const float down = size - widen(type, low);
  const float up = widen(type, above) - size;
  const bool round_up = up < down || (up == down && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (round_up ? above : low));
}

// ---- elements as numbers

std::uint64_t mix(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ key >> 27) * 0x94d049bb133111ebULL;
  return key ^ key >> 31;
}

// With fractions that make sums round: a bit pattern a rank, vector, round and place.
double raw(const PlanCase& drawn, int rank, std::size_t vector, int round, std::size_t i) {
  const std::uint64_t key = mix(drawn.seed + 1000003ULL * static_cast<std::uint64_t>(rank) +
                                7919 * vector + 104729ULL * static_cast<std::uint64_t>(round)) +
                            i;
  return static_cast<double>(mix(key) % 20001) / 64.0 - 150.0;
}

template <class Real>
void put(std::byte* at, Real value) {
  std::memcpy(at, &value, sizeof value);
}
template <class Real>
Real get(const std::byte* at) {
  Real value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void store(ElementType type, std::byte* at, double value) {
  switch (type) {
    case ElementType::float64:
      return put(at, value);
    case ElementType::int32:
      return put(at, static_cast<std::int32_t>(value));
    case ElementType::float32:
      return put(at, static_cast<float>(value));
    default:
      return put(at, narrow(type, static_cast<float>(value)));
  }
}

double load(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::float64:
      return get<double>(at);
    case ElementType::int32:
      return get<std::int32_t>(at);
    case ElementType::float32:
      return get<float>(at);
    default:
      return widen(type, get<std::uint16_t>(at));
  }
}

template <class Real>
Real combined(ReductionOp op, Real a, Real b) {
  if (op == ReductionOp::max) return a > b ? a : b;
  if (op == ReductionOp::min) return a < b ? a : b;
  return a + b;
}

template <class Real, class Value>
Real folded(const PlanCase& drawn, int ranks, Value value) {
  Real result = value(0);
  for (int rank = 1; rank < ranks; ++rank) {
    result = combined<Real>(drawn.options.op, result, value(rank));
  }
  return drawn.options.average ? result / static_cast<Real>(ranks) : result;
}

// Writes one expected element, as it lies in memory.
void expect(const PlanCase& drawn, std::size_t vector, int round, std::size_t i, int ranks,
            std::byte* out) {
  const ElementType type = drawn.vectors[vector].type;
  const auto element = [&](int rank) {
    std::byte bytes[8];
    store(type, bytes, raw(drawn, rank, vector, round, i));
    return load(type, bytes);
  };
  if (type == ElementType::float64) {
    put(out, folded<double>(drawn, ranks, element));
  } else if (type == ElementType::int32) {
    put(out, folded<std::int32_t>(
                 drawn, ranks, [&](int rank) { return static_cast<std::int32_t>(element(rank)); }));
  } else {
    const auto sum =
        folded<float>(drawn, ranks, [&](int rank) { return static_cast<float>(element(rank)); });
    store(type, out, static_cast<double>(sum));
  }
}

// Returns the size of one rounding, relative to the largest sum on the way.
double unit(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return 0x1p-52;
    case ElementType::float32:
      return 0x1p-23;
    case ElementType::float16:
      return 0x1p-10;
    case ElementType::bfloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}

class Memory {
 public:
  Memory(std::size_t bytes, bool in_arena) {
    if (in_arena) {
      arena_ = Buffer<std::byte>(std::max<std::size_t>(1, bytes));
    } else {
      libc_.resize(std::max<std::size_t>(1, bytes));
    }
  }
  std::byte* data() { return libc_.empty() ? arena_.data() : libc_.data(); }

 private:
  Buffer<std::byte> arena_;
  std::vector<std::byte> libc_;
};

struct Buffers {
  Memory input;
  Memory output;
};

class Run {
 public:
  Run(Communicator communicator, const PlanCase& drawn) : drawn_(drawn) {
    std::vector<PlanTensor> tensors;
    for (const Vector& vector : drawn.vectors) {
      const std::size_t bytes = vector.count * size_of(vector.type);
      buffers_.push_back({Memory(bytes, vector.in_arena), Memory(bytes, vector.in_arena)});
      PlanTensor tensor{vector.count, vector.type, nullptr, nullptr};
      if (vector.where != Vector::Where::plan) tensor.output = buffers_.back().output.data();
      if (vector.where == Vector::Where::apart) tensor.input = buffers_.back().input.data();
      tensors.push_back(tensor);
    }
    plan_ = std::make_unique<ReductionPlan>(communicator, tensors, drawn.options);
    exact_ = plan_->size() == 1 || plan_->nodes() == 1;
  }

  std::string round(int number) {
    for (std::size_t v = 0; v < buffers_.size(); ++v) write(v, number);
    start_and_wait();
    for (std::size_t v = 0; v < buffers_.size(); ++v) {
      const std::string wrong = check(v, number);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::byte* input(std::size_t v) {
    const Vector::Where where = drawn_.vectors[v].where;
    if (where == Vector::Where::apart) return buffers_[v].input.data();
    return where == Vector::Where::in_place ? buffers_[v].output.data() : memory(v);
  }
  std::byte* output(std::size_t v) {
    return drawn_.vectors[v].where == Vector::Where::plan ? memory(v) : buffers_[v].output.data();
  }
  std::byte* memory(std::size_t v) {
    return static_cast<std::byte*>(plan_->data(static_cast<int>(v)));
  }

  void write(std::size_t v, int number) {
    const Vector& vector = drawn_.vectors[v];
    for (std::size_t i = 0; i < vector.count; ++i) {
      store(vector.type, input(v) + i * size_of(vector.type),
            raw(drawn_, plan_->rank(), v, number, i));
    }
  }

  void start_and_wait() {
    using Manner = PlanCase::Manner;
    if (drawn_.manner == Manner::reduce) return plan_->reduce();
    if (drawn_.manner == Manner::start) {
      PendingReduction pending = plan_->start();
      while (!pending.test()) {
      }
      return;
    }
    if (drawn_.manner == Manner::ready) {
      for (int tensor = 0; tensor < plan_->tensors(); ++tensor) plan_->ready(tensor);
      return plan_->wait();
    }
    std::vector<PendingReduction> pending;
    for (int bucket = plan_->buckets(); bucket-- > 0;) pending.push_back(plan_->start(bucket));
    for (PendingReduction& one : pending) one.wait();
  }

  std::string check(std::size_t v, int number) {
    const auto [count, type, where, in_arena] = drawn_.vectors[v];
    const std::size_t element = size_of(type);
    for (std::size_t i = 0; i < count; ++i) {
      std::byte right[8];
      expect(drawn_, v, number, i, plan_->size(), right);
      const std::byte* found = output(v) + i * element;
      if (std::memcmp(found, right, element) == 0) continue;
      const double difference = std::fabs(load(type, found) - load(type, right));
      const double bound = 150.0 * plan_->size() * plan_->size() * unit(type);
      if (!exact_ && difference <= bound) continue;
      return "vector " + std::to_string(v) + ", element " + std::to_string(i) + ": " +
             std::to_string(load(type, found)) + ", expected " + std::to_string(load(type, right)) +
             "; " + drawn_.text();
    }
    return "";
  }

  const PlanCase& drawn_;
  bool exact_ = false;
  std::vector<Buffers> buffers_;
  std::unique_ptr<ReductionPlan> plan_;
};

}  // namespace

std::string PlanCase::text() const {
  std::string out = std::string(options.average ? "average" : name(options.op)) + ", manner " +
                    std::to_string(static_cast<int>(manner)) + ", buckets of " +
                    std::to_string(options.bucket_bytes) + ", fused to " +
                    std::to_string(options.fuse_bytes) + (options.thread ? ", thread:" : ":");
  for (const Vector& vector : vectors) {
    out += " " + std::to_string(vector.count) + " " + name(vector.type) + " (" +
           std::to_string(static_cast<int>(vector.where)) + (vector.in_arena ? "a)" : ")");
  }
  return out;
}

PlanCase draw_plan(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  PlanCase drawn;
  drawn.seed = random();
  drawn.manner = static_cast<PlanCase::Manner>(below(4));
  drawn.options.average = below(2) == 0;
  constexpr ReductionOp ops[] = {ReductionOp::sum, ReductionOp::max, ReductionOp::min};
  drawn.options.op = drawn.options.average ? ReductionOp::sum : ops[below(3)];
  drawn.options.bucket_bytes = std::size_t{1} << (8 + below(8));
  drawn.options.fuse_bytes = below(4) == 0 ? 0 : std::size_t{1} << (6 + below(9));
  drawn.options.thread = below(2) == 0;
  constexpr ElementType types[] = {ElementType::float32, ElementType::float64,
                                   ElementType::bfloat16, ElementType::float16, ElementType::int32};
  const std::size_t number = 1 + below(8);
  for (std::size_t i = 0; i < number; ++i) {
    const std::size_t count = below(5) == 0 ? below(3) : below(1 << (2 + below(11)));
    drawn.vectors.push_back({count, types[below(drawn.options.average ? 4 : 5)],
                             static_cast<Vector::Where>(below(3)), below(2) == 0});
  }
  return drawn;
}

std::string run_plan(Communicator communicator, const PlanCase& drawn) {
  Run run(communicator, drawn);
  for (int number = 0; number < drawn.rounds; ++number) {
    const std::string wrong = run.round(number);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace ropewalk::test
