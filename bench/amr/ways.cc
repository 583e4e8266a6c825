#include "amr/ways.hpp"

#include "p2p/ways.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::bench {
namespace {

const std::byte* bytes_of(const double* values) {
  return reinterpret_cast<const std::byte*>(values);
}

class AmrByMpi final : public AmrWay {
 public:
  explicit AmrByMpi(const Ranks& ranks) : ranks_(ranks) {}
  void start_send(const double* values, std::size_t count, int to) override {
    messages_.start_send(bytes_of(values), count * sizeof(double), to);
  }
  void start_receive(double* values, std::size_t count, int from) override {
    messages_.start_receive(reinterpret_cast<std::byte*>(values), count * sizeof(double), from);
  }
  void wait_all() override { messages_.wait_all(); }
  double sum(double value) override { return ranks_.sum(value); }

 private:
  const Ranks& ranks_;
  PlainMessages messages_;
};

class AmrByChannel final : public AmrWay {
 public:
  explicit AmrByChannel(const Ranks& ranks)
      : channel_(ranks.communicator()), collectives_(ranks.communicator()) {}
  void start_send(const double* values, std::size_t count, int to) override {
    requests_.push_back(channel_.start_send(values, count * sizeof(double), to));
  }
  void start_receive(double* values, std::size_t count, int from) override {
    requests_.push_back(channel_.start_receive(values, count * sizeof(double), from));
  }
  void wait_all() override {
    for (MessageRequest& request : requests_) request.wait();
    requests_.clear();
  }
  double sum(double value) override {
    collectives_.allreduce(&value, &value, 1, ElementType::float64, ReductionOp::sum);
    return value;
  }

 private:
  Channel channel_;
  Collectives collectives_;
  std::vector<MessageRequest> requests_;
};

}  // namespace

const std::vector<std::string>& amr_way_names() {
  static const std::vector<std::string> names = {"isend", "channel"};
  return names;
}

std::unique_ptr<AmrWay> make_amr_way(const std::string& name, const Ranks& ranks) {
  if (name == "isend") return std::make_unique<AmrByMpi>(ranks);
  return std::make_unique<AmrByChannel>(ranks);
}

}  // namespace ropewalk::bench
