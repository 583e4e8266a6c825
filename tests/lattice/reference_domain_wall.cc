// This is the domain-wall operator of the reference, applied and as a dense matrix.
#include "lattice/reference.hpp"

namespace ropewalk::reference {
namespace {

// Element (s, r) of the step in s for one chirality: for `plus`, s is reached from s-1.
double s_element(const DomainWall& wall, int s, int r, bool plus) {
  const int from = plus ? s - 1 : s + 1;
  if (from == r) return -1.0;
  const int wrapped = (from + wall.ls) % wall.ls;
  return from != wrapped && wrapped == r ? wall.mass : 0.0;
}

bool upper(std::size_t spin) { return spin < 2; }  // gamma5 = +1

// Returns psi of one s, as a 4-d field.
Vector slice(const Vector& psi, int s, int ls) {
  Vector out;
  const auto block = spinor_numbers * static_cast<std::size_t>(ls);
  for (std::size_t first = 0; first < psi.size(); first += block) {
    for (std::size_t k = 0; k < spinor_numbers; ++k) {
      out.push_back(psi[first + static_cast<std::size_t>(s) * spinor_numbers + k]);
    }
  }
  return out;
}

struct Index {  // of an element of a 5-d spinor
  std::size_t site;
  int s;
  std::size_t spin;
  std::size_t colour;
};

Index decompose(std::size_t k, int ls) {
  const std::size_t within = k / spinor_numbers;
  const auto length = static_cast<std::size_t>(ls);
  return {within / length, static_cast<int>(within % length), k % spinor_numbers / 3, k % 3};
}

// <row| D_h |column> of the 4-d hop, summed over all links that join the two sites.
Complex hop_element(const Background& field, const Index& row, const Index& column) {
  Complex out = 0;
  const Site x = site(field.extents, row.site);
  for (int mu = 0; mu < 4; ++mu) {
    const auto d = static_cast<std::size_t>(mu);
    Site above = x;
    ++above[d];
    Site below = x;
    --below[d];
    const Complex g = gamma(mu)[row.spin][column.spin];
    const double one = row.spin == column.spin ? 1.0 : 0.0;
    if (index(field.extents, above) == column.site) {
      const double edge = above[d] == field.extents[d] ? field.boundary[d] : 1.0;
      const Complex u = link(field.extents, field.gauge, x, mu)[row.colour][column.colour];
      out -= 0.5 * edge * (one - g) * u;
    }
    if (index(field.extents, below) == column.site) {
      const double edge = below[d] < 0 ? field.boundary[d] : 1.0;
      const Complex u = link(field.extents, field.gauge, below, mu)[column.colour][row.colour];
      out -= 0.5 * edge * (one + g) * std::conj(u);
    }
  }
  return out;
}

}  // namespace

Vector domain_wall_hop(const Background& field, const Vector& psi, int ls, bool dagger) {
  Vector out(psi.size());
  for (int s = 0; s < ls; ++s) {
    const Vector result = hop(field, slice(psi, s, ls), dagger);
    for (std::size_t k = 0; k < result.size(); ++k) {
      const std::size_t n = k / spinor_numbers;
      const auto length = static_cast<std::size_t>(ls);
      out[(n * length + static_cast<std::size_t>(s)) * spinor_numbers + k % spinor_numbers] =
          result[k];
    }
  }
  return out;
}

Vector domain_wall_diagonal(const Vector& psi, const DomainWall& wall, bool dagger) {
  Vector out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    const Index to = decompose(k, wall.ls);
    out[k] = (5.0 - wall.height) * psi[k];
    for (int r = 0; r < wall.ls; ++r) {
      const bool plus = upper(to.spin);
      const double element =
          dagger ? s_element(wall, r, to.s, plus) : s_element(wall, to.s, r, plus);
      const std::size_t here = k - static_cast<std::size_t>(to.s) * spinor_numbers;
      out[k] += element * psi[here + static_cast<std::size_t>(r) * spinor_numbers];
    }
  }
  return out;
}

Vector domain_wall(const Background& field, const Vector& psi, const DomainWall& wall,
                   bool dagger) {
  Vector out = domain_wall_hop(field, psi, wall.ls, dagger);
  const Vector local = domain_wall_diagonal(psi, wall, dagger);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] += local[k];
  return out;
}

Vector domain_wall_matrix(const Background& field, const DomainWall& wall) {
  const std::size_t size =
      volume(field.extents) * static_cast<std::size_t>(wall.ls) * spinor_numbers;
  Vector out(size * size);
  for (std::size_t k = 0; k < size * size; ++k) {
    const Index row = decompose(k / size, wall.ls);
    const Index column = decompose(k % size, wall.ls);
    if (row.s == column.s) out[k] += hop_element(field, row, column);
    if (row.site != column.site || row.spin != column.spin || row.colour != column.colour) continue;
    const double chirality = gamma(4)[row.spin][row.spin].real();
    out[k] += 0.5 * (1 + chirality) * s_element(wall, row.s, column.s, true);
    out[k] += 0.5 * (1 - chirality) * s_element(wall, row.s, column.s, false);
    if (row.s == column.s) out[k] += 5.0 - wall.height;
  }
  return out;
}

Vector apply_matrix(const Vector& matrix, const Vector& psi) {
  Vector out(psi.size());
  for (std::size_t row = 0; row < psi.size(); ++row) {
    for (std::size_t c = 0; c < psi.size(); ++c) out[row] += matrix[row * psi.size() + c] * psi[c];
  }
  return out;
}

Vector gamma5_reflected(const Vector& psi, int ls) {
  Vector out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    const Index from = decompose(k, ls);
    const int mirrored = ls - 1 - from.s;
    const std::size_t first = k - static_cast<std::size_t>(from.s) * spinor_numbers;
    out[first + static_cast<std::size_t>(mirrored) * spinor_numbers] =
        upper(from.spin) ? psi[k] : -psi[k];
  }
  return out;
}

}  // namespace ropewalk::reference
