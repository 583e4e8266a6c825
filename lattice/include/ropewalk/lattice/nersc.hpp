// Gauge configurations in the format of the NERSC archive ("Gauge Connection"): a header of text,
// then links in the order of GaugeField, of which every rank reads and writes its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "ropewalk/lattice/fields.hpp"

namespace ropewalk::lattice {

enum class NerscData {
  two_rows,    // 4D_SU3_GAUGE: the third row is the conjugate cross product of these
  three_rows,  // 4D_SU3_GAUGE_3x3
};

enum class NerscFloat {
  ieee32big,
  ieee32little,
  ieee64big,
  ieee64little,
  ieee32,  // reading: the file does not say the byte order, the checksum shows it; as little
  ieee64   // when written
};

struct NerscHeader {
  Extents dimensions{};
  NerscData data = NerscData::three_rows;
  NerscFloat floating_point = NerscFloat::ieee64big;
  double plaquette = 0;
  double link_trace = 0;
  std::uint32_t checksum = 0;  // sum of all 32-bit words of the numbers, modulo 2^32
  // All keys and values as the file has them: ENSEMBLE_ID, SEQUENCE_NUMBER, BOUNDARY_1, ...
  std::map<std::string, std::string> fields;
  std::size_t bytes = 0;  // of the header: where the links begin
};

// Not collective: for learning the dimensions before there is a Lattice. Errors as read_nersc.
NerscHeader read_nersc_header(const std::string& path);

// Collective; every rank must see the file under this path. Checks the length of the file, the
// checksum exactly, plaquette and link trace of the header to 1e-5 and 1e-6. Every rank gets the
// same Error: (argument) for a file that is not NERSC, is of a kind that is not supported (the
// message lists what is), of other dimensions, cut short or damaged; (system) for one that cannot
// be read.
GaugeField<double> read_nersc(const Lattice&, const std::string& path,
                              NerscHeader* header = nullptr);

struct NerscOptions {
  NerscData data = NerscData::three_rows;
  NerscFloat floating_point = NerscFloat::ieee64big;
  std::string ensemble_id = "none";
  std::string ensemble_label = "none";
  int sequence_number = 0;
  std::string creator = "ropewalk";
};

// Collective. The file is written under another name beside `path`, and renamed when all of it is
// on disk. So a file that was there before stays until then, and after an error, which every rank
// gets. Where two rows are written the links must be in SU(3); Error(argument) otherwise.
void write_nersc(const GaugeField<double>&, const std::string& path, const NerscOptions& = {});

}  // namespace ropewalk::lattice
