// Tables and rows of the benchmark of Fourier transforms.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "fft/measure.hpp"

namespace ropewalk::bench {

std::vector<Json> rows(const FftOptions& options, const Ranks& ranks, const FftResult& result);
std::string table(const std::vector<FftResult>& results);
std::string summary(const std::vector<FftResult>& results);

}  // namespace ropewalk::bench
