// Tests NERSC files: what is written comes back, on any grid of ranks and in every format; what is
// wrong is told to every rank.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "lattice/support.hpp"
#include "ropewalk/lattice/nersc.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;

constexpr Extents global{4, 2, 2, 4};
constexpr std::uint64_t seed = 11;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "nersc-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void with_grid(const Extents& grid, const std::function<void(const Lattice&)>& body) {
  run_ranks(ranks_of(grid), [&](int) { body(Lattice(global, Communicator::world(), grid)); });
}

struct Case {
  NerscData data;
  NerscFloat floating_point;
  double tolerance;
};
const std::vector<Case> cases{{NerscData::three_rows, NerscFloat::ieee64big, 0},
                              {NerscData::three_rows, NerscFloat::ieee64little, 0},
                              {NerscData::three_rows, NerscFloat::ieee32big, 1e-7},
                              {NerscData::two_rows, NerscFloat::ieee64big, 1e-14},
                              {NerscData::two_rows, NerscFloat::ieee64, 1e-14},
                              {NerscData::two_rows, NerscFloat::ieee32little, 1e-7},
                              {NerscData::two_rows, NerscFloat::ieee32, 1e-7}};

TEST(Nersc, WrittenOnOneGridReadOnAnother) {
  const Folder folder;
  const std::string path = folder.file("u");
  for (const Case& one : cases) {
    with_grid({2, 1, 1, 2}, [&](const Lattice& lattice) {
      NerscOptions options;
      options.data = one.data;
      options.floating_point = one.floating_point;
      options.sequence_number = 42;
      write_nersc(random_gauge(lattice, seed), path, options);
    });
    for (const Extents& grid : {Extents{1, 1, 1, 1}, Extents{1, 2, 1, 1}, Extents{2, 1, 2, 2}}) {
      with_grid(grid, [&](const Lattice& lattice) {
        NerscHeader header;
        const Numbers read = plain(read_nersc(lattice, path, &header));
        EXPECT_LE(reference::distance(read, plain(random_gauge(lattice, seed))), one.tolerance);
        EXPECT_EQ(header.fields.at("SEQUENCE_NUMBER"), "42");
        EXPECT_EQ(header.dimensions, global);
      });
    }
    EXPECT_EQ(folder.files(), 1U);
  }
}

TEST(Nersc, TheSameBytesFromEveryGrid) {
  const Folder folder;
  const Extents alone{1, 1, 1, 1};
  const auto payload = [&](const Extents& grid) {
    const std::string path = folder.file("u");
    with_grid(grid,
              [&](const Lattice& lattice) { write_nersc(random_gauge(lattice, seed), path); });
    return contents(path).substr(read_nersc_header(path).bytes);
  };
  const std::string expected = payload(alone);
  EXPECT_EQ(payload({1, 1, 2, 1}), expected);
  EXPECT_EQ(payload({2, 2, 1, 4}), expected);
}

// 2.4 MB: read and written in pieces.
TEST(Nersc, LargerThanAPiece) {
  const Folder folder;
  const Lattice lattice({8, 8, 8, 8});
  const GaugeField<double> gauge = tepid_gauge(lattice, seed, 0.2);
  NerscOptions options;
  options.data = NerscData::three_rows;
  options.floating_point = NerscFloat::ieee64big;
  write_nersc(gauge, folder.file("u"), options);
  EXPECT_EQ(plain(read_nersc(lattice, folder.file("u"))), plain(gauge));
}

TEST(Nersc, ByteOrderThatIsNotStated) {
  const Folder folder;
  const std::string path = folder.file("u");
  const Lattice lattice(global);
  const GaugeField<double> gauge = random_gauge(lattice, seed);
  write_nersc(gauge, path);
  std::string bytes = contents(path);
  bytes.replace(bytes.find("IEEE64BIG"), 9, "IEEE64");
  put(path, bytes);
  NerscHeader header;
  EXPECT_EQ(plain(read_nersc(lattice, path, &header)), plain(gauge));
  EXPECT_EQ(header.floating_point, NerscFloat::ieee64big);
}

// Every rank must throw the same text: with these words, and with a remedy.
void expect_error(const std::vector<std::string>& words, ErrorCode code,
                  const std::function<void(const Lattice&)>& body) {
  const Extents grid{2, 1, 1, 2};
  std::vector<std::string> texts(4);
  with_grid(grid, [&](const Lattice& lattice) {
    try {
      body(lattice);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      texts[static_cast<std::size_t>(lattice.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    EXPECT_NE(text.find("; "), std::string::npos) << "no remedy in: " << text;
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
    }
  }
}

struct Damage {
  std::vector<std::string> words;  // of the error
  std::function<void(std::string&)> change;
};

std::function<void(std::string&)> replaced(const std::string& from, const std::string& to) {
  return [=](std::string& bytes) {
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const std::size_t end = bytes.find('\n', at);
    bytes.replace(at, end - at, to);
  };
}

const std::vector<Damage> damages{
    {{"BEGIN_HEADER"}, [](std::string& b) { b = "lime"; }},
    {{"BEGIN_HEADER"}, [](std::string& b) { b.clear(); }},
    {{"END_HEADER"}, [](std::string& b) { b.resize(200); }},
    {{"END_HEADER", "65536"}, replaced("END_HEADER", std::string(70000, 'x'))},
    {{"bytes", "cut short"}, [](std::string& b) { b.pop_back(); }},
    {{"bytes", "after the links"}, [](std::string& b) { b += "more"; }},
    {{"no CHECKSUM", "DATATYPE"}, replaced("CHECKSUM =", "REMARK = none")},
    {{"CHECKSUM", "xyz"}, replaced("CHECKSUM =", "CHECKSUM = xyz")},
    {{"CHECKSUM", "damaged"}, [](std::string& b) { b.back() = static_cast<char>(b.back() ^ 1); }},
    {{"DATATYPE is 4D_SU2_GAUGE", "4D_SU3_GAUGE, 4D_SU3_GAUGE_3x3"},
     replaced("DATATYPE =", "DATATYPE = 4D_SU2_GAUGE")},
    {{"FLOATING_POINT is IEEE16", "IEEE32BIG", "IEEE64LITTLE"},
     replaced("FLOATING_POINT =", "FLOATING_POINT = IEEE16")},
    {{"DIMENSION_2 is two"}, replaced("DIMENSION_2 =", "DIMENSION_2 = two")},
    {{"DIMENSION_3 is -2"}, replaced("DIMENSION_3 =", "DIMENSION_3 = -2")},
    {{"4.2.2.8", "4.2.2.4"}, replaced("DIMENSION_4 =", "DIMENSION_4 = 8")},
    {{"PLAQUETTE is 0.5"}, replaced("PLAQUETTE =", "PLAQUETTE = 0.5")},
    {{"PLAQUETTE is nan"}, replaced("PLAQUETTE =", "PLAQUETTE = nan")},
    {{"LINK_TRACE is 0.25"}, replaced("LINK_TRACE =", "LINK_TRACE = 0.25")},
    {{"LINK_TRACE", "a number"}, replaced("LINK_TRACE =", "LINK_TRACE = one")},
};

TEST(Nersc, WrongFiles) {
  const Folder folder;
  const std::string good = folder.file("good");
  write_nersc(random_gauge(Lattice(global), seed), good);
  const std::string path = folder.file("bad");
  for (const Damage& damage : damages) {
    std::string bytes = contents(good);
    damage.change(bytes);
    put(path, bytes);
    std::vector<std::string> words = damage.words;
    words.push_back(path);
    expect_error(words, ErrorCode::argument,
                 [&](const Lattice& lattice) { read_nersc(lattice, path); });
  }
}

TEST(Nersc, NoFileAndNoPlace) {
  const Folder folder;
  const std::string missing = folder.file("missing");
  expect_error({missing, "No such file"}, ErrorCode::system,
               [&](const Lattice& lattice) { read_nersc(lattice, missing); });
  expect_error({"no regular file"}, ErrorCode::argument,
               [&](const Lattice& lattice) { read_nersc(lattice, folder.file(".")); });
  const std::string below = folder.file("no/such/folder");
  expect_error({below, "cannot be written"}, ErrorCode::system,
               [&](const Lattice& lattice) { write_nersc(GaugeField<double>(lattice), below); });
}

TEST(Nersc, WhatWasThereStaysAfterAnError) {
  const Folder folder;
  const std::string path = folder.file("u");
  put(path, "precious");
  expect_error({"SU(3)", "reunitarise"}, ErrorCode::argument, [&](const Lattice& lattice) {
    GaugeField<double> gauge(lattice);
    if (lattice.rank() == 2) *gauge.link(3, 1) = 1.5;
    NerscOptions options;
    options.data = NerscData::two_rows;
    write_nersc(gauge, path, options);
  });
  expect_error({"ENSEMBLE_ID", "line"}, ErrorCode::argument, [&](const Lattice& lattice) {
    NerscOptions options;
    options.ensemble_id = "two\nlines";
    write_nersc(GaugeField<double>(lattice), path, options);
  });
  EXPECT_EQ(contents(path), "precious");
  const std::string folder_as_file = folder.file("folder");
  std::filesystem::create_directory(folder_as_file);
  expect_error({folder_as_file, "take the name"}, ErrorCode::system, [&](const Lattice& lattice) {
    write_nersc(GaugeField<double>(lattice), folder_as_file);
  });
  EXPECT_EQ(folder.files(), 2U);  // and nothing half-written
}

}  // namespace
}  // namespace ropewalk::lattice::test
