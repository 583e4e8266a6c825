// The environment variables ROPEWALK_…: which there are, what each accepts, and which value this
// process has. `ropewalk config` shows the same.
#pragma once

#include <string>
#include <vector>

#include "ropewalk/export.hpp"

namespace ropewalk {

struct Setting {
  std::string name;             // ROPEWALK_…
  std::string type;             // choice, count, bytes, real, path, nodes or text
  std::string expected;         // what it takes, in words
  std::string default_value;    // empty: none
  std::string default_meaning;  // Markdown: what the default comes to, where it is not plain
  std::string scope;            // rank, all ranks or command
  std::string read_by;          // library, malloc library, drop-in, command, …
  std::string page;             // in docs/, which says more
  std::string meaning;          // Markdown, with links from docs/reference/
};

struct SettingValue {
  std::string value;   // as it was found, else the default
  bool given = false;  // set, and not empty
  std::string error;   // why it cannot be understood; empty where it can
};

// Returns all settings, those of the library first.
RW_EXPORT std::vector<Setting> all_settings();

// Returns the value that this process has now, and the one that a text would give. Throws
// Error(argument) for a name that is no setting.
RW_EXPORT SettingValue setting(const std::string& name);
RW_EXPORT SettingValue setting(const std::string& name, const std::string& text);

// What is wrong with the name of a variable that begins with ROPEWALK_ and is no setting, and which
// setting may be meant. The result is empty for the name of a setting, and for other variables.
RW_EXPORT std::string unknown_setting(const std::string& name);

}  // namespace ropewalk
