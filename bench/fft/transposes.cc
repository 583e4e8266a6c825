#include "fft/transposes.hpp"

#include <algorithm>
#include <utility>

#include "common/plain_mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/subarray_exchange.hpp"

namespace ropewalk::bench {
namespace {

// A complex number is two doubles for MPI.
class TransposeByAlltoallw final : public FftTranspose {
 public:
  TransposeByAlltoallw(Communicator ranks, const TransposeShape& shape)
      : ranks_(ranks),
        array_(volume(shape.to)),
        call_(mpi_function<Call>("PMPI_Alltoallw")),
        ones_(shape.sent.size(), 1),
        zeros_(shape.sent.size(), 0) {
    for (const GridBox& box : shape.sent) add(box, shape.from, sent_);
    for (const GridBox& box : shape.received) add(box, shape.to, received_);
  }
  Complex* data() const override { return array_.data(); }
  void run(const Complex* array) override {
    check_mpi(call_(array, ones_.data(), zeros_.data(), sent_.data(), array_.data(), ones_.data(),
                    zeros_.data(), received_.data(), ranks_.handle()),
              "MPI_Alltoallw");
  }

 private:
  using Call = int(const void*, const int*, const int*, const void*, void*, const int*, const int*,
                   const void*, MpiWord);

  void add(const GridBox& box, Triple array, MpiHandles& to) {
    Triple extents = box.count;
    Triple starts = box.first;
    for (Triple* one : {&array, &extents, &starts}) one->back() *= 2;
    types_.emplace_back(array, extents, starts);
    to.add(types_.back().word());
  }

  Communicator ranks_;
  Buffer<Complex> array_;
  Call* call_;
  std::vector<int> ones_;
  std::vector<int> zeros_;
  std::vector<DoubleSubarray> types_;
  MpiHandles sent_;
  MpiHandles received_;
};

// Bytes and their places in a buffer, for each rank.
struct PackedParts {
  PackedParts(const std::vector<GridBox>& of_ranks, const Triple& of) : boxes(of_ranks), array(of) {
    for (const GridBox& box : boxes) {
      places.push_back(bytes);
      counts.push_back(volume(box.count) * sizeof(Complex));
      bytes += counts.back();
    }
  }
  // Calls visit(place in the array, place in the buffer, elements) for each line of all boxes.
  template <class Visit>
  void for_each_line(const Visit& visit) const {
    std::size_t packed = 0;
    for (const GridBox& box : boxes) {
      const auto length = static_cast<std::ptrdiff_t>(box.count[2]);
      for (int i = 0; i < box.count[0]; ++i) {
        for (int j = 0; j < box.count[1]; ++j) {
          visit(line_place(array, box, i, j), packed, length);
          packed += static_cast<std::size_t>(length);
        }
      }
    }
  }

  std::vector<GridBox> boxes;
  Triple array;
  std::size_t bytes = 0;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> places;
};

// The rank's own loops copy lines between the arrays and buffers.
class PackedTranspose : public FftTranspose {
 public:
  explicit PackedTranspose(const TransposeShape& shape)
      : sent_(shape.sent, shape.from),
        received_(shape.received, shape.to),
        array_(volume(shape.to)),
        outgoing_(sent_.bytes / sizeof(Complex)),
        incoming_(received_.bytes / sizeof(Complex)) {}
  Complex* data() const override { return array_.data(); }
  void run(const Complex* array) override {
    sent_.for_each_line([&](std::size_t place, std::size_t packed, std::ptrdiff_t length) {
      std::copy_n(array + place, length, outgoing_.data() + packed);
    });
    exchange(outgoing_.data(), incoming_.data());
    received_.for_each_line([&](std::size_t place, std::size_t packed, std::ptrdiff_t length) {
      std::copy_n(incoming_.data() + packed, length, array_.data() + place);
    });
  }

 protected:
  virtual void exchange(const Complex* outgoing, Complex* incoming) = 0;
  const PackedParts& sent() const noexcept { return sent_; }
  const PackedParts& received() const noexcept { return received_; }

 private:
  PackedParts sent_;
  PackedParts received_;
  Buffer<Complex> array_;
  Buffer<Complex> outgoing_;
  Buffer<Complex> incoming_;
};

class PackedByMpi final : public PackedTranspose {
 public:
  PackedByMpi(Communicator ranks, const TransposeShape& shape)
      : PackedTranspose(shape),
        ranks_(ranks),
        is_even_(shape.is_even),
        even_(mpi_function<Even>("PMPI_Alltoall")),
        uneven_(mpi_function<Uneven>("PMPI_Alltoallv")),
        send_counts_(doubles(sent().counts)),
        send_places_(doubles(sent().places)),
        receive_counts_(doubles(received().counts)),
        receive_places_(doubles(received().places)) {}

 protected:
  void exchange(const Complex* outgoing, Complex* incoming) override {
    if (is_even_) {
      check_mpi(even_(outgoing, send_counts_[0], type_, incoming, receive_counts_[0], type_,
                      ranks_.handle()),
                "MPI_Alltoall");
      return;
    }
    check_mpi(uneven_(outgoing, send_counts_.data(), send_places_.data(), type_, incoming,
                      receive_counts_.data(), receive_places_.data(), type_, ranks_.handle()),
              "MPI_Alltoallv");
  }

 private:
  using Even = int(const void*, int, MpiWord, void*, int, MpiWord, MpiWord);
  using Uneven = int(const void*, const int*, const int*, MpiWord, void*, const int*, const int*,
                     MpiWord, MpiWord);

  static std::vector<int> doubles(const std::vector<std::size_t>& bytes) {
    std::vector<int> out;
    out.reserve(bytes.size());
    for (const std::size_t one : bytes) out.push_back(static_cast<int>(one / sizeof(double)));
    return out;
  }

  Communicator ranks_;
  bool is_even_;
  Even* even_;
  Uneven* uneven_;
  MpiWord type_ = mpi_double();
  std::vector<int> send_counts_;
  std::vector<int> send_places_;
  std::vector<int> receive_counts_;
  std::vector<int> receive_places_;
};

class PackedByCollectives final : public PackedTranspose {
 public:
  PackedByCollectives(Communicator ranks, const TransposeShape& shape)
      : PackedTranspose(shape), is_even_(shape.is_even), collectives_(ranks) {}

 protected:
  void exchange(const Complex* outgoing, Complex* incoming) override {
    if (is_even_) {
      collectives_.alltoall(outgoing, incoming, sent().counts[0]);
      return;
    }
    collectives_.alltoallv(outgoing, sent().counts.data(), sent().places.data(), incoming,
                           received().counts.data(), received().places.data());
  }

 private:
  bool is_even_;
  Collectives collectives_;
};

ArrayParts array_parts(const std::vector<GridBox>& boxes, const Triple& array) {
  constexpr std::size_t element = sizeof(Complex);
  const auto line = static_cast<std::size_t>(array[2]) * element;
  const std::vector<std::size_t> strides{static_cast<std::size_t>(array[1]) * line, line, element};
  ArrayParts parts{volume(array) * element, {}};
  for (const GridBox& box : boxes) {
    parts.parts.push_back({line_place(array, box, 0, 0) * element,
                           std::vector<std::size_t>(box.count.begin(), box.count.end()), strides});
  }
  return parts;
}

class TransposeByExchange final : public FftTranspose {
 public:
  TransposeByExchange(Communicator ranks, const TransposeShape& shape)
      : exchange_(ranks, sizeof(Complex), array_parts(shape.sent, shape.from),
                  array_parts(shape.received, shape.to)) {}
  Complex* data() const override { return reinterpret_cast<Complex*>(exchange_.data()); }
  void run(const Complex* array) override { exchange_.exchange(array); }

 private:
  SubarrayExchange exchange_;
};

}  // namespace

const std::vector<std::string>& fft_way_names() {
  static const std::vector<std::string> names = {"alltoallw", "packed", "collectives", "exchange"};
  return names;
}

bool is_by_mpi(const std::string& way) { return way == "alltoallw" || way == "packed"; }

std::unique_ptr<FftTranspose> make_transpose(const std::string& way, Communicator ranks,
                                             const TransposeShape& shape) {
  if (way == "alltoallw") return std::make_unique<TransposeByAlltoallw>(ranks, shape);
  if (way == "exchange") return std::make_unique<TransposeByExchange>(ranks, shape);
  if (way == "packed") return std::make_unique<PackedByMpi>(ranks, shape);
  return std::make_unique<PackedByCollectives>(ranks, shape);
}

}  // namespace ropewalk::bench
