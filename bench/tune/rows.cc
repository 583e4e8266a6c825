#include "tune/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/statistics.hpp"
#include "topology/signature.hpp"

namespace ropewalk::bench {
namespace {

// Returns the row of one size, which has the times of the ways for each of the calls.
Json size_row(const SizeFound& size, const Question& question) {
  Json cases = Json::array();
  for (std::size_t i = 0; i < size.us.size(); ++i) {
    cases.push_back({{"call", question.of_channel ? "message" : name(question.calls[i].op)},
                     {"us", size.us[i]}});
  }
  return {{"bytes", size.bytes}, {"ratio", size.ratio}, {"noise", size.noise}, {"calls", cases}};
}

}  // namespace

Json signature_row() {
  Json row = {{"bench", "tune"}, {"what", "machine"}};
  for (const topology::MachineFact& fact : topology::signature()) {
    row[std::string(fact.name)] = fact.value;
  }
  return row;
}

Json to_row(const TuneAnswer& answer) {
  const Question& question = *answer.question;
  Json sizes = Json::array();
  for (const SizeFound& size : answer.finding.sizes) sizes.push_back(size_row(size, question));
  return {{"bench", "tune"},
          {"what", "threshold"},
          {"name", question.name()},
          {"unit", tuning::name(tuning::row(question.id).unit)},
          {"memory", question.is_private ? "private" : "arena"},
          {"border", question.has_border()},
          {"default", answer.standard},
          {"before", answer.before},
          {"value", answer.finding.value},
          {"gain", answer.finding.gain},
          {"noise", answer.finding.noise},
          {"skipped", answer.skipped},
          {"sizes", sizes}};
}

Json to_row(const TuneCost& cost) {
  return {{"bench", "tune"},       {"what", "cost"},    {"subject", cost.subject},
          {"memory", cost.memory}, {"path", cost.path}, {"bytes", cost.bytes},
          {"us", cost.us}};
}

std::vector<TuneCost> costs_of(const P2pResult& result) {
  std::vector<TuneCost> all;
  for (const auto& [mechanism, times] : result.forced) {
    all.push_back(
        {"message", result.memory, name(mechanism), result.bytes, summarize(times.us).median});
  }
  const bool is_forced = result.forced.contains(result.path);
  if (!is_forced && result.path != Mechanism::none) {
    all.push_back({"message", result.memory, name(result.path), result.bytes,
                   summarize(result.choice.us).median});
  }
  return all;
}

Json choice_row(const P2pResult& result) {
  const BestMechanism best = best_mechanism(result);
  const double us = summarize(result.choice.us).median;
  const auto forced = result.forced.find(result.path);
  const double mechanism_us =
      forced == result.forced.end() ? us : std::min(us, summarize(forced->second.us).median);
  return {{"bench", "tune"},
          {"what", "choice"},
          {"memory", result.memory},
          {"bytes", result.bytes},
          {"path", name(result.path)},
          {"us", us},
          {"mechanism_us", mechanism_us},
          {"best", name(best.mechanism)},
          {"best_us", best.us},
          {"plain_us", summarize(result.plain.us).median}};
}

std::string line(const TuneAnswer& answer) {
  const tuning::Row& row = tuning::row(answer.question->id);
  const std::string value = tuning::value_text(row, answer.finding.value);
  if (!answer.skipped.empty()) return fmt::format("{}: not measured: {}", row.name, answer.skipped);
  if (!answer.finding.changes(answer.before)) return fmt::format("{}: {} stays", row.name, value);
  return fmt::format("{}: {}, was {}: saves {:.0f} % where it differs", row.name, value,
                     tuning::value_text(row, answer.before), 100 * answer.finding.gain);
}

}  // namespace ropewalk::bench
