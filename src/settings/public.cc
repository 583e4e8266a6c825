// This file is the public interface to the table: ropewalk/settings.hpp.
#include "ropewalk/error.hpp"
#include "ropewalk/settings.hpp"
#include "settings/names.hpp"
#include "settings/value.hpp"

namespace ropewalk {
namespace {

const settings::Option& known(const std::string& name) {
  if (const settings::Option* found = settings::find(name)) return *found;
  const settings::Text text = settings::unknown(name);
  throw Error(ErrorCode::argument, "name: " + std::string(text.view()));
}

SettingValue shown(const settings::Value& value) {
  const settings::Text error = value.malformed ? settings::complaint(value) : settings::Text();
  return {std::string(value.text), value.given, std::string(error.view())};
}

}  // namespace

std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  for (const settings::Option& row : settings::table()) {
    all.push_back({std::string(row.name), settings::name(row.kind),
                   std::string(settings::expected(row).view()), std::string(row.fallback),
                   std::string(row.automatic), settings::name(row.scope),
                   settings::name(row.reader), std::string(row.page), std::string(row.meaning)});
  }
  return all;
}

SettingValue setting(const std::string& name) { return shown(settings::read(known(name))); }

SettingValue setting(const std::string& name, const std::string& text) {
  return shown(settings::parse(known(name), text.c_str()));
}

std::string unknown_setting(const std::string& name) {
  return settings::is_unknown(name) ? std::string(settings::unknown(name).view()) : "";
}

}  // namespace ropewalk
