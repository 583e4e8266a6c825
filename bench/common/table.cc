// Layout of text tables and of CSV; see table.hpp.
#include "common/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ropewalk::bench {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;

std::string csv_cell(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void flatten(const Json& value, const std::string& name, Cells& cells) {
  if (!value.is_object()) {
    cells.emplace_back(name, csv_cell(value));
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    flatten(inner, name.empty() ? key : fmt::format("{}.{}", name, key), cells);
  }
}

void append_line(std::string& text, const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths, std::size_t left) {
  std::string line;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const std::string cell = column < cells.size() ? cells[column] : "";
    if (column > 0) line += "  ";
    line += column < left ? fmt::format("{:<{}}", cell, widths[column])
                          : fmt::format("{:>{}}", cell, widths[column]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headers, std::size_t left)
    : headers_(std::move(headers)), left_(left) {}

void TextTable::add(std::vector<std::string> cells) { cells_.push_back(std::move(cells)); }

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (const std::string& header : headers_) widths.push_back(header.size());
  for (const auto& row : cells_) {
    for (std::size_t column = 0; column < std::min(row.size(), widths.size()); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  append_line(text, headers_, widths, left_);
  for (const auto& row : cells_) append_line(text, row, widths, left_);
  return text;
}

std::string csv(const std::vector<Json>& rows) {
  std::vector<std::string> header;
  std::vector<Cells> lines;
  for (const Json& row : rows) {
    lines.emplace_back();
    flatten(row, "", lines.back());
    for (const auto& [key, cell] : lines.back()) {
      if (std::find(header.begin(), header.end(), key) == header.end()) header.push_back(key);
    }
  }
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const Cells& line : lines) {
    std::vector<std::string> cells(header.size());
    for (const auto& [key, cell] : line) {
      cells[std::find(header.begin(), header.end(), key) - header.begin()] = cell;
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace ropewalk::bench
