// Text tables for people, and CSV for spreadsheets made from the same rows as the JSON lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ropewalk::bench {

using Json = nlohmann::ordered_json;  // keeps the order in which a row was written

// Columns as wide as their widest cell, right-aligned but for the first `left` columns.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headers, std::size_t left = 0);
  void add(std::vector<std::string> cells);  // missing cells at the end are empty
  std::string text() const;                  // each line ends in a newline
  std::size_t rows() const noexcept { return cells_.size(); }

 private:
  std::vector<std::string> headers_;
  std::size_t left_;
  std::vector<std::vector<std::string>> cells_;
};

// One line a row; the header is the union of the keys in order of appearance, nested keys joined
// by a dot ("time_us.median"). RFC 4180: cells with comma, quote or newline are quoted.
std::string csv(const std::vector<Json>& rows);

}  // namespace ropewalk::bench
