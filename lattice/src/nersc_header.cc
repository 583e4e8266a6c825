#include "nersc_header.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "ropewalk/error.hpp"

namespace ropewalk::lattice {
namespace {

constexpr std::string_view begin_line = "BEGIN_HEADER\n";
constexpr std::string_view end_line = "END_HEADER\n";

constexpr std::array<std::pair<const char*, NerscData>, 2> data_names{
    {{"4D_SU3_GAUGE", NerscData::two_rows}, {"4D_SU3_GAUGE_3x3", NerscData::three_rows}}};

// The first name of each kind is the one that is written: those that Grid reads.
constexpr std::array<std::pair<const char*, NerscFloat>, 6> float_names{
    {{"IEEE32BIG", NerscFloat::ieee32big},
     {"IEEE32LITTLE", NerscFloat::ieee32little},
     {"IEEE64BIG", NerscFloat::ieee64big},
     {"IEEE64LITTLE", NerscFloat::ieee64little},
     {"IEEE32", NerscFloat::ieee32},
     {"IEEE64", NerscFloat::ieee64}}};

[[noreturn]] void wrong(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::argument, path + ": " + text);
}

std::string_view trim(std::string_view text) {
  constexpr const char* blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

void parse_line(NerscHeader& header, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;  // a remark
  header.fields[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
}

const std::string& field(const NerscHeader& header, const std::string& path, const char* key) {
  const auto found = header.fields.find(key);
  if (found == header.fields.end()) {
    wrong(path, std::string("the header has no ") + key + "; expected all of DATATYPE, " +
                    "DIMENSION_1 to _4, FLOATING_POINT, CHECKSUM, PLAQUETTE and LINK_TRACE");
  }
  return found->second;
}

[[noreturn]] void wrong_value(const std::string& path, const char* key, const std::string& value,
                              const std::string& expected) {
  wrong(path, std::string(key) + " is " + value + "; expected " + expected);
}

template <class Names>
auto choose(const Names& names, const std::string& path, const char* key,
            const std::string& value) {
  std::string known;
  for (const auto& [text, kind] : names) {
    if (value == text) return kind;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  wrong_value(path, key, value, "one of " + known);
}

double number(const NerscHeader& header, const std::string& path, const char* key) {
  const std::string& value = field(header, path, key);
  char* end = nullptr;
  const double out = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || *end != '\0') wrong_value(path, key, value, "a number");
  return out;
}

int extent(const NerscHeader& header, const std::string& path, const std::string& key) {
  const std::string& value = field(header, path, key.c_str());
  int out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc{} || end != value.data() + value.size() || out < 1) {
    wrong_value(path, key.c_str(), value, "a whole number above 0");
  }
  return out;
}

std::uint32_t hexadecimal(const NerscHeader& header, const std::string& path, const char* key) {
  const std::string& value = field(header, path, key);
  std::string_view digits = value;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::uint32_t out = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, out, 16);
  if (error != std::errc{} || end != last) wrong_value(path, key, value, "up to 8 hex digits");
  return out;
}

std::string decimal(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

}  // namespace

const char* name(NerscData data) { return data_names[static_cast<std::size_t>(data)].first; }

const char* name(NerscFloat kind) { return float_names[static_cast<std::size_t>(kind)].first; }

int bytes_of(NerscFloat kind) {
  return kind == NerscFloat::ieee32big || kind == NerscFloat::ieee32little ||
                 kind == NerscFloat::ieee32
             ? 4
             : 8;
}

NerscHeader parse_nersc_header(const std::string& path, const std::string& beginning) {
  if (!beginning.starts_with(begin_line)) {
    wrong(path,
          "does not begin with BEGIN_HEADER, so it is no NERSC configuration; "
          "name a file in the NERSC format");
  }
  const std::size_t end = beginning.find("\n" + std::string(end_line));
  if (end == std::string::npos) {
    wrong(path, "no line END_HEADER in the first " + std::to_string(beginning.size()) +
                    " bytes; the file is cut short or no NERSC configuration");
  }
  NerscHeader out;
  out.bytes = end + 1 + end_line.size();
  for (std::size_t line = begin_line.size(); line < end;) {
    const std::size_t next = beginning.find('\n', line);
    parse_line(out, std::string_view(beginning).substr(line, next - line));
    line = next + 1;
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    out.dimensions[d] = extent(out, path, "DIMENSION_" + std::to_string(d + 1));
  }
  out.data = choose(data_names, path, "DATATYPE", field(out, path, "DATATYPE"));
  out.floating_point =
      choose(float_names, path, "FLOATING_POINT", field(out, path, "FLOATING_POINT"));
  out.plaquette = number(out, path, "PLAQUETTE");
  out.link_trace = number(out, path, "LINK_TRACE");
  out.checksum = hexadecimal(out, path, "CHECKSUM");
  return out;
}

std::string format_nersc_header(const NerscHeader& header) {
  std::string out(begin_line);
  const auto add = [&](const std::string& key, const std::string& value) {
    if (value.find_first_of("\n\r") != std::string::npos) {
      throw Error(ErrorCode::argument, key + ": has a line break; a header has a line a key");
    }
    out += key + " = " + value + "\n";
  };
  const auto given = [&](const char* key) {
    const auto found = header.fields.find(key);
    add(key, found == header.fields.end() ? "" : found->second);
  };
  add("HDR_VERSION", "1.0");
  add("DATATYPE", name(header.data));
  add("STORAGE_FORMAT", "1.0");
  for (std::size_t d = 0; d < dimensions; ++d) {
    add("DIMENSION_" + std::to_string(d + 1), std::to_string(header.dimensions[d]));
  }
  add("LINK_TRACE", decimal(header.link_trace));
  add("PLAQUETTE", decimal(header.plaquette));
  for (std::size_t d = 0; d < dimensions; ++d) {
    add("BOUNDARY_" + std::to_string(d + 1), "PERIODIC");
  }
  std::array<char, 16> checksum{};
  std::snprintf(checksum.data(), checksum.size(), "%08x", header.checksum);
  add("CHECKSUM", checksum.data());
  for (const char* key : {"ENSEMBLE_ID", "ENSEMBLE_LABEL", "SEQUENCE_NUMBER", "CREATOR",
                          "CREATOR_HARDWARE", "CREATION_DATE", "ARCHIVE_DATE"}) {
    given(key);
  }
  add("FLOATING_POINT", name(header.floating_point));
  return out + std::string(end_line);
}

}  // namespace ropewalk::lattice
