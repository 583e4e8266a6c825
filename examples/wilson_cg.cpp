// A quark propagator's column: M x = b with Wilson's operator on a gauge configuration from a file,
// or on random links that belong to the site, so that every grid of ranks has the same.
//
//   ropewalk run -n 4 -- build/release/examples/wilson_cg 8.8.8.16
//   ropewalk run -n 4 -- build/release/examples/wilson_cg configuration.nersc 0.05
#include <ropewalk/lattice/conjugate_gradient.hpp>
#include <ropewalk/lattice/gauge.hpp>
#include <ropewalk/lattice/nersc.hpp>
#include <ropewalk/process.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

using namespace ropewalk::lattice;

// "8.8.8.16", or the name of a file.
bool is_extents(const std::string& text, Extents& out) {
  char rest = 0;
  return std::sscanf(text.c_str(), "%d.%d.%d.%d%c", &out[0], &out[1], &out[2], &out[3], &rest) == 4;
}

int run(const std::string& what, double mass, ropewalk::Communicator world) {
  Extents extents{};
  const bool random = is_extents(what, extents);
  if (!random) extents = read_nersc_header(what).dimensions;
  const Lattice lattice(extents, world, choose_rank_grid(extents, world.size()));
  const GaugeField<double> gauge =
      random ? tepid_gauge(lattice, 1, 0.3) : read_nersc(lattice, what);
  const double mean = plaquette(gauge);

  OperatorOptions options;
  options.antiperiodic_time = true;
  WilsonOperator<double> m(gauge, mass, options);

  // The source is on one site: spin 0 and colour 0 at the origin.
  std::vector<std::complex<double>> plain(lattice.local_sites() * 12);
  if (lattice.rank() == 0) plain[0] = 1;
  SpinorField<double> b = m.field();
  b.import_from(plain.data());

  SpinorField<double> x = m.field();
  const Solution solution = solve(m, x, b);
  if (lattice.rank() == 0) {
    std::printf("wilson_cg: lattice %s over %s, plaquette %.8f, mass %g\n", text(extents).c_str(),
                text(lattice.rank_grid()).c_str(), mean, mass);
    std::printf("  %d iterations in %.2f s, |b - M x| / |b| = %.2e\n", solution.iterations,
                solution.seconds, solution.residual);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const ropewalk::Process process(ropewalk::ThreadLevel::single);
    return run(argc > 1 ? argv[1] : "8.8.8.8", argc > 2 ? std::atof(argv[2]) : 0.1,
               process.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wilson_cg: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
