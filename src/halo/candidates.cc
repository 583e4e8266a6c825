// The table of carriers: a line for each class.
#include <array>
#include <string>

#include "halo/candidate.hpp"

namespace ropewalk::halo {

namespace {

bool serves_put(const HaloRequest& request) {
  return request.options.strategy == Strategy::put ||
         (request.automatic() && request.form == Form::buffers);
}

bool serves_direct(const HaloRequest& request) {
  return request.options.strategy == Strategy::direct || request.automatic();
}

bool serves_plan(const HaloRequest& request) {
  return !uses_shared_memory(request.options.strategy);
}

constexpr std::array<CarrierKind, 3> kinds{{
    {serves_put, {.messages = false, .team = true}, add_put},
    {serves_direct, {.messages = false, .team = true}, add_direct},
    {serves_plan, {.messages = true, .team = false}, add_plans},
}};

}  // namespace

std::vector<CarrierKind> carrier_kinds(const HaloRequest& request) {
  std::vector<CarrierKind> out;
  for (const CarrierKind& kind : kinds) {
    if (kind.serves(request)) out.push_back(kind);
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
