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

Json threshold_row(tuning::Id id, std::size_t standard, std::size_t before,
                   const Finding& finding) {
  return {{"bench", "tune"},
          {"what", "threshold"},
          {"name", tuning::row(id).name},
          {"unit", tuning::name(tuning::row(id).unit)},
          {"default", standard},
          {"before", before},
          {"value", finding.value},
          {"gain", finding.gain},
          {"noise", finding.noise}};
}

}  // namespace

Json signature_row() {
  Json row = {{"bench", "tune"}, {"what", "machine"}};
  for (const topology::MachineFact& fact : topology::signature()) {
    row[std::string(fact.name)] = fact.value;
  }
  return row;
}

Json situation_row(const TuneMeasurement& measurement) {
  const NodePlaces& places = measurement.places();
  return {{"bench", "tune"},
          {"what", "situation"},
          {"nodes", places.nodes},
          {"ranks", places.most},
          {"crowded", measurement.crowded()}};
}

Json to_row(const TuneAnswer& answer) {
  const Question& question = *answer.question;
  Json sizes = Json::array();
  for (const SizeFound& size : answer.finding.sizes) sizes.push_back(size_row(size, question));
  Json row = threshold_row(question.id, answer.standard, answer.before, answer.finding);
  row["memory"] = name(question.memory);
  row["border"] = question.has_border();
  row["skipped"] = answer.skipped;
  row["sizes"] = sizes;
  return row;
}

std::vector<Json> to_rows(const LanesFound& found) {
  const auto standard = [](tuning::Id id) {
    return tuning::default_value(tuning::row(id), tuning::Facts{});
  };
  Json sizes = Json::array();
  for (const SizeFound& size : found.splitting.sizes) {
    sizes.push_back({{"bytes", size.bytes}, {"ratio", size.ratio}, {"noise", size.noise}});
  }
  const std::size_t split = standard(tuning::Id::transport_split);
  const std::size_t lanes = standard(tuning::Id::transport_lanes);
  Finding number = found.splitting;
  Finding splitting = found.splitting;
  number.value = static_cast<std::size_t>(found.lanes);
  if (found.lanes == 1) {  // lanes that are not faster by splitting may be useful otherwise
    number.value = lanes;
    splitting.value = split;
  }
  std::vector<Json> rows = {threshold_row(tuning::Id::transport_lanes, lanes, lanes, number),
                            threshold_row(tuning::Id::transport_split, split, split, splitting)};
  for (Json& row : rows) {
    row["memory"] = "arena";
    row["border"] = true;
    row["skipped"] = "";
    row["sizes"] = sizes;
  }
  return rows;
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
