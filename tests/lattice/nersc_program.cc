// For nersc_numpy.py: makes NERSC files and reads them, on as many ranks as it is started with.
//
//   nersc_program write EXTENTS FILE   random links in every format: FILE.<data>.<floating point>
//   nersc_program copy EXTENTS FILE... reads each FILE, checks included, and writes FILE.copy
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "ropewalk/lattice/gauge.hpp"
#include "ropewalk/lattice/nersc.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk::lattice;

Extents parse(const std::string& text) {
  Extents out{};
  if (std::sscanf(text.c_str(), "%d.%d.%d.%d", &out[0], &out[1], &out[2], &out[3]) != 4) {
    throw std::invalid_argument("extents: " + text + ", expected as in 4.4.4.8");
  }
  return out;
}

void write_all(const Lattice& lattice, const std::string& path) {
  const GaugeField<double> gauge = random_gauge(lattice, 17);
  NerscOptions options;
  for (const auto& [data, name] :
       {std::pair{NerscData::two_rows, "2"}, std::pair{NerscData::three_rows, "3"}}) {
    for (const auto& [kind, word] : {std::pair{NerscFloat::ieee32big, "32big"},
                                     std::pair{NerscFloat::ieee32little, "32little"},
                                     std::pair{NerscFloat::ieee64big, "64big"},
                                     std::pair{NerscFloat::ieee64little, "64little"}}) {
      options.data = data;
      options.floating_point = kind;
      write_nersc(gauge, path + "." + name + "." + word, options);
    }
  }
}

int run(int argc, char** argv) {
  if (argc < 4) throw std::invalid_argument("usage: nersc_program write|copy EXTENTS FILE...");
  const ropewalk::Process process;
  const Extents extents = parse(argv[2]);
  const Lattice lattice(extents, process.world(),
                        choose_rank_grid(extents, process.world().size()));
  if (std::string(argv[1]) == "write") {
    write_all(lattice, argv[3]);
    return EXIT_SUCCESS;
  }
  for (int k = 3; k < argc; ++k) {
    const std::string path = argv[k];
    write_nersc(read_nersc(lattice, path), path + ".copy");
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nersc_program: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);
  }
}
