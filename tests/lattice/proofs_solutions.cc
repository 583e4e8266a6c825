// Solutions of M x = b put into the reference's M.
#include "lattice/proof_tools.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"

namespace ropewalk::lattice::test {
namespace {

// Gathers a spinor of the whole lattice from the parts of the ranks.
Numbers gathered(const Lattice& lattice, const Numbers& part) {
  const std::size_t each = part.size() / lattice.local_sites();
  Numbers out(lattice.global_sites() * each);
  for (std::size_t k = 0; k < part.size(); ++k) {
    Extents x = reference::site(lattice.local(), k / each);
    for (std::size_t d = 0; d < dimensions; ++d) x[d] += lattice.origin()[d];
    out[reference::index(lattice.global(), x) * each + k % each] = part[k];
  }
  lattice.sum(reinterpret_cast<double*>(out.data()), 2 * out.size());
  return out;
}

// Checks |b - M x| <= tolerance |b| with the reference's M, and what the solution says of itself.
template <class Reference>
void require_solved(const Lattice& lattice, const Numbers& x, const Numbers& b, double tolerance,
                    const Solution& solution, const std::string& what, Reference m) {
  const double error = reference::distance(m(gathered(lattice, x)), b);
  if (!(error <= tolerance)) {
    throw std::runtime_error(what + ": residual " + std::to_string(error / tolerance) +
                             " times the tolerance");
  }
  const auto steps = static_cast<std::size_t>(solution.iterations);
  if (solution.history.size() != steps || !(solution.residual <= 1.01 * tolerance)) {
    throw std::runtime_error(what + ": history or residual do not fit");
  }
}

template <class Real, class Operator, class Reference>
void prove_solution(Operator& op, const Numbers& b, double tolerance, const std::string& what,
                    Reference m) {
  const Lattice& lattice = op.lattice();
  const SpinorField<Real> source = imported(op.field(), local_part(lattice, b));
  for (const bool red_black : {false, true}) {
    SpinorField<Real> x = op.field();
    SolverOptions options;
    options.tolerance = tolerance;
    options.red_black = red_black;
    const Solution solution = solve(op, x, source, options);
    require_solved(lattice, exported(x), b, 2 * tolerance, solution,
                   what + (red_black ? ", red-black" : ", whole"), m);
    const Solution again = solve(op, x, source, options);  // from the solution
    if (again.iterations > 2) throw std::runtime_error(what + ": forgets its first guess");
  }
}

template <template <class> class Operator, class Reference, class... Arguments>
void prove_kind(const GaugeField<double>& gauge, const Numbers& b, const std::string& what,
                Reference m, const Arguments&... arguments) {
  Operator<double> op(gauge, arguments...);
  Operator<float> single(as<float>(gauge), arguments...);
  prove_solution<double>(op, b, 1e-9, what + " in double", m);
  prove_solution<float>(single, b, 1e-5, what + " in single", m);
  SpinorField<double> x = op.field();
  SolverOptions options;
  options.tolerance = 1e-11;
  const Solution mixed =
      solve_mixed(op, single, x, imported(op.field(), local_part(op.lattice(), b)), options);
  require_solved(op.lattice(), exported(x), b, 2e-11, mixed, what + ", mixed", m);
}

}  // namespace

void prove_solutions(const Whole& whole, const Lattice& lattice, const How& how) {
  const GaugeField<double> gauge = random_gauge(lattice, gauge_seed);
  const auto wilson = [&](const Numbers& x) {
    return reference::wilson(whole.field, x, Whole::mass);
  };
  prove_kind<WilsonOperator>(gauge, whole.psi, where(lattice, how, "Wilson"), wilson, Whole::mass,
                             how.options);
  const auto clover = [&](const Numbers& x) {
    return add(reference::hop(whole.field, x), 1, reference::apply_term(whole.term, x));
  };
  prove_kind<CloverOperator>(gauge, whole.psi, where(lattice, how, "clover"), clover, Whole::mass,
                             Whole::csw, how.options);
  const auto walls = [&](const Numbers& x) {
    return reference::domain_wall(whole.field, x, whole.wall);
  };
  const DomainWall wall{whole.wall.ls, whole.wall.mass, whole.wall.height};
  for (const Vectors vectors : {Vectors::space, Vectors::fifth}) {
    prove_kind<DomainWallOperator>(gauge, whole.psi5, where(lattice, how, name(vectors)), walls,
                                   wall, vectors, how.options);
  }
}

}  // namespace ropewalk::lattice::test
