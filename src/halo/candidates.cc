// This file has the table of carriers, with a line for each class.
#include <array>
#include <string>

#include "halo/candidate.hpp"

namespace ropewalk::halo {

namespace {

bool serves_put(Strategy wanted, Form form) {
  return wanted == Strategy::put || (wanted == Strategy::automatic && form == Form::buffers);
}

bool serves_direct(Strategy wanted, Form) {
  return wanted == Strategy::direct || wanted == Strategy::automatic;
}

bool serves_plan(Strategy wanted, Form) { return !uses_shared_memory(wanted); }

constexpr std::array<CarrierKind, 3> kinds{{
    {serves_put, {.messages = false, .team = true}, add_put},
    {serves_direct, {.messages = false, .team = true}, add_direct},
    {serves_plan, {.messages = true, .team = false}, add_plans},
}};

}  // namespace

std::vector<CarrierKind> carrier_kinds(Strategy wanted, Form form) {
  std::vector<CarrierKind> out;
  for (const CarrierKind& kind : kinds) {
    if (kind.serves(wanted, form)) out.push_back(kind);
  }
  return out;
}

std::optional<Error> refuse_without_team(const HaloFacts& facts, Strategy strategy) {
  if (facts.team != nullptr || facts.links.directions == 0) return {};
  return Error(ErrorCode::unsupported,
               std::string("strategy: ") + name(strategy) + ", but " + facts.no_team +
                   ", expected ranks that map each other's memory; choose another strategy");
}

}  // namespace ropewalk::halo
