// Names of the strategies, as command lines and tables write them.
#include <array>
#include <utility>

#include "ropewalk/endpoint.hpp"

namespace ropewalk {
namespace {

constexpr std::array<std::pair<Strategy, const char*>, 6> names{
    {{Strategy::automatic, "automatic"},
     {Strategy::sequential, "sequential"},
     {Strategy::concurrent, "concurrent"},
     {Strategy::threaded, "threaded"},
     {Strategy::direct, "direct"},
     {Strategy::put, "put"}}};

}  // namespace

const char* name(Strategy strategy) {
  for (const auto& [value, text] : names) {
    if (value == strategy) return text;
  }
  return "unknown";
}

Strategy strategy(const std::string& name) {
  if (name == "auto") return Strategy::automatic;
  std::string list;
  for (const auto& [value, text] : names) {
    if (name == text) return value;
    list += list.empty() ? text : std::string(", ") + text;
  }
  throw Error(ErrorCode::argument, "strategy: '" + name + "', expected one of " + list);
}

}  // namespace ropewalk
