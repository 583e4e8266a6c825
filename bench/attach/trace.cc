// Traces of registrations; see trace.hpp.
#include "attach/trace.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;  // addresses of programs end there

RegistrationRequest request_of(const std::string& line, const std::string& file, int number) {
  RegistrationRequest request;
  std::istringstream words(line);
  std::string rest;
  words >> request.process >> std::hex >> request.address >> std::dec >> request.bytes;
  const bool good = !words.fail() && !(words >> rest) && request.process > 0 && request.bytes > 0 &&
                    request.address < most_bytes && request.bytes < most_bytes;
  if (good) return request;
  throw Error(ErrorCode::argument,
              fmt::format("--traces: {}, line {}: \"{}\", expected the number of a process, an "
                          "address in hexadecimal digits and a number of bytes; record a trace "
                          "with ROPEWALK_REGISTRATION_TRACE",
                          file, number, line));
}

}  // namespace

std::vector<RegistrationRequest> read_trace(const std::string& file) {
  std::ifstream lines(file);
  std::vector<RegistrationRequest> all;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.front() != '#') all.push_back(request_of(line, file, number));
  }
  if (!all.empty()) return all;
  throw Error(ErrorCode::argument,
              fmt::format("--traces: {}: no requests, expected a registration trace; record one "
                          "with ROPEWALK_REGISTRATION_TRACE",
                          file));
}

}  // namespace ropewalk::bench
