// This file knows, for NERSC files, which part of the file is this rank's, how numbers lie in it,
// and what is checked.
#include "ropewalk/lattice/nersc.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "agree.hpp"
#include "nersc_header.hpp"
#include "ropewalk/lattice/gauge.hpp"
#include "ropewalk/lattice/su3.hpp"
#include "shared_file.hpp"

namespace ropewalk::lattice {
namespace {

constexpr std::size_t links_a_site = dimensions;
constexpr double plaquette_tolerance = 1e-5;  // of the digits that headers of the archive have
constexpr double link_trace_tolerance = 1e-6;
constexpr double su3_tolerance = 1e-6;
constexpr std::size_t header_limit = std::size_t{1} << 16;  // headers are some hundred bytes

constexpr std::size_t piece_bytes = std::size_t{1} << 20;  // of the file: what a rank buffers

// The runs of sites that lie together both here and in the file, cut into pieces of a bounded size.
class Runs {
 public:
  Runs(const Lattice& lattice, std::size_t site_bytes) : lattice_(lattice) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      sites_ *= static_cast<std::size_t>(lattice.local()[d]);
      if (lattice.local()[d] != lattice.global()[d]) break;
    }
    piece_ = std::clamp<std::size_t>(piece_bytes / site_bytes, 1, sites_);
  }
  std::size_t most() const { return piece_; }  // sites of a piece

  // Calls visit(first site here, first site in the file, sites) for each piece.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    for (std::size_t run = 0; run < lattice_.local_sites(); run += sites_) {
      const std::size_t there = global_site(run);
      for (std::size_t first = 0; first < sites_; first += piece_) {
        visit(run + first, there + first, std::min(piece_, sites_ - first));
      }
    }
  }

 private:
  std::size_t global_site(std::size_t rest) const {
    Extents x{};
    for (std::size_t d = 0; d < dimensions; ++d) {
      const auto local = static_cast<std::size_t>(lattice_.local()[d]);
      x[d] = lattice_.origin()[d] + static_cast<int>(rest % local);
      rest /= local;
    }
    return site_index(lattice_.global(), x);
  }

  const Lattice& lattice_;
  std::size_t sites_ = 1;  // of a run
  std::size_t piece_ = 1;
};

// How a link is written: rows, bytes a number, byte order.
struct Coding {
  std::size_t numbers;  // reals of one link: 12 or 18
  std::size_t bytes;    // of a real
  bool swapped;         // against this machine

  std::size_t link_bytes() const { return numbers * bytes; }
  std::size_t site_bytes() const { return links_a_site * link_bytes(); }
};

Coding coding(NerscData data, NerscFloat kind) {
  const bool big = kind == NerscFloat::ieee32big || kind == NerscFloat::ieee64big;
  return {data == NerscData::two_rows ? std::size_t{12} : std::size_t{18},
          static_cast<std::size_t>(bytes_of(kind)),
          big == (std::endian::native == std::endian::little)};
}

template <class Real>
void swap_bytes(Real* numbers, std::size_t count) {
  auto* bytes = reinterpret_cast<unsigned char*>(numbers);
  for (std::size_t k = 0; k < count; ++k, bytes += sizeof(Real)) {
    std::reverse(bytes, bytes + sizeof(Real));
  }
}

// The sum of 32-bit words in this machine's byte order.
std::uint32_t checksum(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  std::uint32_t out = 0;
  for (std::size_t k = 0; k < bytes; k += sizeof out) {
    std::uint32_t word = 0;
    std::memcpy(&word, from + k, sizeof word);
    out += word;
  }
  return out;
}

std::uint32_t sum_over_ranks(const Lattice& lattice, std::uint32_t own) {
  if (lattice.size() == 1) return own;
  std::uint32_t out = 0;
  meet(lattice);
  lattice.collectives().allreduce(&own, &out, 1, ElementType::uint32, ReductionOp::sum);
  return out;
}

template <class Real>
std::uint32_t decode(const Coding& how, const unsigned char* from, std::complex<double>* link) {
  std::array<Real, 18> numbers{};
  std::memcpy(numbers.data(), from, how.link_bytes());
  if (how.swapped) swap_bytes(numbers.data(), how.numbers);
  for (std::size_t k = 0; k < how.numbers / 2; ++k) link[k] = {numbers[2 * k], numbers[2 * k + 1]};
  if (how.numbers == 12) {
    Su3 u{};
    std::copy(link, link + 6, u.begin());
    complete_third_row(u);
    std::copy(u.begin() + 6, u.end(), link + 6);
  }
  return checksum(numbers.data(), how.link_bytes());
}

template <class Real>
std::uint32_t encode(const Coding& how, const std::complex<double>* link, unsigned char* to) {
  std::array<Real, 18> numbers{};
  for (std::size_t k = 0; k < how.numbers / 2; ++k) {
    numbers[2 * k] = static_cast<Real>(link[k].real());
    numbers[2 * k + 1] = static_cast<Real>(link[k].imag());
  }
  const std::uint32_t out = checksum(numbers.data(), how.link_bytes());
  if (how.swapped) swap_bytes(numbers.data(), how.numbers);
  std::memcpy(to, numbers.data(), how.link_bytes());
  return out;
}

// Reads this rank's links and returns the checksum of all ranks' parts.
std::uint32_t load(const SharedFile& file, std::size_t begin, const Coding& how,
                   GaugeField<double>& gauge) {
  const Runs runs(gauge.lattice(), how.site_bytes());
  std::uint32_t sum = 0;
  collectively(gauge.lattice(), [&] {
    std::vector<unsigned char> buffer(runs.most() * how.site_bytes());
    runs.for_each_piece([&](std::size_t here, std::size_t there, std::size_t sites) {
      const std::size_t bytes = sites * how.site_bytes();
      file.read(buffer.data(), bytes, begin + there * how.site_bytes());
      std::complex<double>* link = gauge.link(here, 0);
      for (std::size_t byte = 0; byte < bytes; byte += how.link_bytes(), link += 9) {
        sum += how.bytes == 4 ? decode<float>(how, &buffer[byte], link)
                              : decode<double>(how, &buffer[byte], link);
      }
    });
  });
  return sum_over_ranks(gauge.lattice(), sum);
}

// Calls put(bytes, size, offset in the data) for each piece; returns this rank's checksum.
template <class Put>
std::uint32_t store(const GaugeField<double>& gauge, const Coding& how, Put put) {
  const Runs runs(gauge.lattice(), how.site_bytes());
  std::uint32_t sum = 0;
  std::vector<unsigned char> buffer(runs.most() * how.site_bytes());
  runs.for_each_piece([&](std::size_t here, std::size_t there, std::size_t sites) {
    const std::size_t bytes = sites * how.site_bytes();
    const std::complex<double>* link = gauge.link(here, 0);
    for (std::size_t byte = 0; byte < bytes; byte += how.link_bytes(), link += 9) {
      sum += how.bytes == 4 ? encode<float>(how, link, &buffer[byte])
                            : encode<double>(how, link, &buffer[byte]);
    }
    put(buffer.data(), bytes, there * how.site_bytes());
  });
  return sum;
}

[[noreturn]] void wrong(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::argument, path + ": " + text);
}

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 16> out{};
  std::snprintf(out.data(), out.size(), "%08x", value);
  return out.data();
}

void check_shape(const std::string& path, const NerscHeader& header, const Lattice& lattice,
                 std::uint64_t size) {
  if (header.dimensions != lattice.global()) {
    wrong(path, "the configuration is " + text(header.dimensions) + ", the lattice " +
                    text(lattice.global()) + "; make a lattice of the configuration's extents");
  }
  const std::size_t expected =
      header.bytes +
      lattice.global_sites() * coding(header.data, header.floating_point).site_bytes();
  if (size != expected) {
    wrong(path,
          "has " + std::to_string(size) + " bytes, its header asks for " +
              std::to_string(expected) +
              (size < expected ? "; the file is cut short, copy it again"
                               : "; there is something after the links, or the header is wrong"));
  }
}

// Two numbers of the header against the same of the links that were read.
void check_value(const std::string& path, const char* key, double in_header, double found,
                 double tolerance) {
  if (std::abs(in_header - found) <= tolerance) return;  // false for a NaN
  std::array<char, 160> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%s is %.10g in the header and %.10g of the links",
                key, in_header, found);
  wrong(path, std::string(numbers.data()) +
                  "; the checksum fits, so the header is wrong, or the links are in another order");
}

NerscHeader header_of(const std::string& path, const SharedFile& file) {
  std::string beginning(header_limit, '\0');
  beginning.resize(file.read_some(beginning.data(), beginning.size()));
  return parse_nersc_header(path, beginning);
}

// Ranks that see different files would go different ways at the first error.
std::vector<AgreedFact> facts(const std::string& path, const NerscHeader& header) {
  const std::string remedy = "every rank must see the same file under this path";
  return {{path + ": DATATYPE", name(header.data), remedy},
          {path + ": FLOATING_POINT", name(header.floating_point), remedy},
          {path + ": CHECKSUM", hexadecimal(header.checksum), remedy},
          {path + ": PLAQUETTE", exactly(header.plaquette), remedy},
          {path + ": LINK_TRACE", exactly(header.link_trace), remedy}};
}

// Byte orders to try: the one that is stated, or both.
std::vector<NerscFloat> candidates(NerscFloat stated) {
  if (stated == NerscFloat::ieee32) return {NerscFloat::ieee32little, NerscFloat::ieee32big};
  if (stated == NerscFloat::ieee64) return {NerscFloat::ieee64little, NerscFloat::ieee64big};
  return {stated};
}

void read_links(const std::string& path, const SharedFile& file, NerscHeader& header,
                GaugeField<double>& gauge) {
  std::uint32_t sum = 0;
  for (const NerscFloat kind : candidates(header.floating_point)) {
    sum = load(file, header.bytes, coding(header.data, kind), gauge);
    if (sum == header.checksum) {
      header.floating_point = kind;
      return;
    }
  }
  wrong(path, "CHECKSUM is " + hexadecimal(header.checksum) + " in the header and " +
                  hexadecimal(sum) + " of the data; the file is damaged, copy it again");
}

// Finds the largest violation on this rank of what two rows cannot say.
void check_su3(const GaugeField<double>& gauge) {
  for (std::size_t first = 0; first < gauge.size(); first += 9) {
    Su3 u{};
    std::copy(gauge.data() + first, gauge.data() + first + 9, u.begin());
    if (unitarity_error(u) <= su3_tolerance) continue;
    throw Error(ErrorCode::argument,
                "gauge: link " + std::to_string(first / 9 % 4) + " of local site " +
                    std::to_string(first / 36) +
                    " is not in SU(3), so two rows do not tell the third; reunitarise() first, or "
                    "write NerscData::three_rows");
  }
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> out{};
  std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return out.data();
}

std::map<std::string, std::string> texts(const NerscOptions& options) {
  struct utsname machine {};
  ::uname(&machine);
  return {{"ENSEMBLE_ID", options.ensemble_id},
          {"ENSEMBLE_LABEL", options.ensemble_label},
          {"SEQUENCE_NUMBER", std::to_string(options.sequence_number)},
          {"CREATOR", options.creator},
          {"CREATOR_HARDWARE", machine.machine},
          {"CREATION_DATE", today()},
          {"ARCHIVE_DATE", today()}};
}

// Collective: it is called inside of collectively().
std::string header_text(const GaugeField<double>& gauge, const Coding& how,
                        const NerscOptions& options) {
  const Lattice& lattice = gauge.lattice();
  NerscHeader header;
  std::uint32_t sum = 0;
  collectively(lattice, [&] {
    if (options.data == NerscData::two_rows) check_su3(gauge);
    sum = store(gauge, how, [](const void*, std::size_t, std::size_t) {});
  });
  header.dimensions = lattice.global();
  header.data = options.data;
  header.floating_point = options.floating_point;
  header.plaquette = plaquette(gauge);
  header.link_trace = link_trace(gauge);
  header.checksum = sum_over_ranks(lattice, sum);
  header.fields = texts(options);
  std::string out;
  on_rank_zero(lattice, [&] { out = format_nersc_header(header); });
  return broadcast(lattice, out);
}

// Collective. Writes all of an empty file.
void write_file(const GaugeField<double>& gauge, const std::string& path, const std::string& header,
                const Coding& how) {
  collectively(gauge.lattice(), [&] {
    SharedFile file(path, SharedFile::Mode::write);
    if (gauge.lattice().rank() == 0) file.write(header.data(), header.size(), 0);
    store(gauge, how, [&](const void* data, std::size_t bytes, std::size_t offset) {
      file.write(data, bytes, header.size() + offset);
    });
    file.close_on_disk();
  });
}

}  // namespace

NerscHeader read_nersc_header(const std::string& path) {
  const SharedFile file(path, SharedFile::Mode::read);
  return header_of(path, file);
}

GaugeField<double> read_nersc(const Lattice& lattice, const std::string& path,
                              NerscHeader* result) {
  return made_collectively(lattice, [&] {
    NerscHeader header;
    std::unique_ptr<SharedFile> file;
    collectively(lattice, [&] {
      file = std::make_unique<SharedFile>(path, SharedFile::Mode::read);
      header = header_of(path, *file);
      check_shape(path, header, lattice, file->size());
    });
    agree(lattice, facts(path, header));
    GaugeField<double> gauge(lattice);
    read_links(path, *file, header, gauge);
    check_value(path, "PLAQUETTE", header.plaquette, plaquette(gauge), plaquette_tolerance);
    check_value(path, "LINK_TRACE", header.link_trace, link_trace(gauge), link_trace_tolerance);
    if (result != nullptr) *result = header;
    return gauge;
  });
}

void write_nersc(const GaugeField<double>& gauge, const std::string& path,
                 const NerscOptions& options) {
  const Lattice& lattice = gauge.lattice();
  const Coding how = coding(options.data, options.floating_point);
  std::string beginning;
  std::string partial;
  collectively(lattice, [&] {
    agree(lattice,
          {{"data", name(options.data)}, {"floating_point", name(options.floating_point)}});
    beginning = header_text(gauge, how, options);
    partial = broadcast(lattice, path + ".partial-" + std::to_string(::getpid()));
    on_rank_zero(lattice, [&] { SharedFile(partial, SharedFile::Mode::create); });
  });
  try {
    write_file(gauge, partial, beginning, how);
    on_rank_zero(lattice, [&] { rename_file(partial, path); });
  } catch (const Error&) {  // on every rank
    if (lattice.rank() == 0) remove_file(partial);
    throw;
  }
}

}  // namespace ropewalk::lattice
