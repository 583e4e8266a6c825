// Tests tables, CSV and JSON lines of the benchmarks, and errors that all ranks share.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "common/ranks.hpp"
#include "common/report.hpp"
#include "common/scheduling.hpp"
#include "common/table.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

// There is one rank without MPI only where no launcher started the tests.
class Output : public testing::Test {
 protected:
  void SetUp() override {
    if (started_by_launcher()) GTEST_SKIP() << "started by an MPI launcher";
  }
  std::string path(const std::string& file) const {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return testing::TempDir() + "ropewalk-bench-" + test->name() + "-" + file;
  }
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(TableText, AlignsColumns) {
  TextTable table({"name", "MB/s"}, 1);
  table.add({"a", "1.0"});
  table.add({"longer", "12345.0"});
  table.add({"short"});
  EXPECT_EQ(table.text(),
            "name       MB/s\n"
            "a           1.0\n"
            "longer  12345.0\n"
            "short\n");
}

TEST(Version, IsShort) {
  EXPECT_EQ(short_version("MPICH Version:      5.0.2\nMPICH Release date: x"), "MPICH 5.0.2");
  EXPECT_EQ(short_version("Open MPI v5.0.11, package: Open MPI x"), "Open MPI v5.0.11");
  EXPECT_EQ(short_version("Intel(R) MPI Library 2021.19 for Linux* OS\n"),
            "Intel(R) MPI Library 2021.19 for Linux* OS");
}

TEST(Csv, UnitesKeysAndQuotes) {
  const std::vector<Json> rows = {
      {{"bench", "comms"}, {"time_us", {{"median", 1.5}, {"n", 3}}}, {"note", "a,\"b\""}},
      {{"bench", "pages"}, {"verified", true}}};
  EXPECT_EQ(csv(rows),
            "bench,time_us.median,time_us.n,note,verified\n"
            "comms,1.5,3,\"a,\"\"b\"\"\",\n"
            "pages,,,,true\n");
}

TEST_F(Output, TheEndComparesTheTimeWithTheAnnouncedOne) {
  const Ranks ranks(Need::if_run, false);
  testing::internal::CaptureStdout();
  {
    Report report(ranks, {"program", "program", "", "", "never"}, {{"bench", "machine"}});
    report.announce("about 2 min 5 s", 125);
    report.summary("done");
  }
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.find("# time: about 2 min 5 s\n# took "), 0U) << text;
  EXPECT_NE(text.find(" s; announced: about 2 min 5 s\nsummary: done\n"), std::string::npos)
      << text;
}

TEST_F(Output, FilesHoldMachineFirstThenRows) {
  const Ranks ranks(Need::if_run, false);
  const std::string json = path("rows.json");
  const std::string table = path("rows.csv");
  testing::internal::CaptureStdout();
  {
    Report report(ranks, {"program", "program", json, table, "never"}, {{"bench", "machine"}});
    report.row({{"bench", "x"}, {"time_us", to_json(summarize({2, 1, 3}))}});
    report.summary("done");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "summary: done\n");
  const auto lines = lines_of(json);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(Json::parse(lines[0])["bench"], "machine");
  EXPECT_EQ(Json::parse(lines[1])["time_us"]["median"], 2.0);
  EXPECT_EQ(Json::parse(lines[1])["time_us"]["n"], 3);
  EXPECT_EQ(lines_of(table).size(), 2U);
  std::filesystem::remove(json);
  std::filesystem::remove(table);
}

TEST_F(Output, UnwritableFileIsNamed) {
  const Ranks ranks(Need::if_run, false);
  try {
    Report report(ranks, {"program", "program", "/proc/no/such/file.json", "", "never"}, Json());
    FAIL() << "opened a file that cannot be";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    EXPECT_EQ(std::string(error.what()).rfind("--json: cannot write", 0), 0U) << error.what();
  }
}

TEST_F(Output, ProgressOnlyWhereWanted) {
  const Ranks ranks(Need::if_run, false);
  for (const char* when : {"never", "always"}) {
    testing::internal::CaptureStderr();
    {
      Report report(ranks, {"program", "program", "", "", when}, Json());
      report.progress("comms", 0.5);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("50 % comms") != std::string::npos, std::string(when) == "always") << said;
  }
}

TEST_F(Output, OneRankAloneIsARankWithoutMpi) {
  const Ranks ranks(Need::if_run, false);
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_EQ(ranks.library(), "none");
  EXPECT_DOUBLE_EQ(ranks.max(3), 3);
  EXPECT_EQ(ranks.gather(std::vector<double>{1, 2}).at(0).at(1), 2);
  EXPECT_THROW(ranks.communicator(), Error);
}

TEST_F(Output, JointErrorsKeepTheirCode) {
  const Ranks ranks(Need::if_run, false);
  EXPECT_NO_THROW(ranks.collectively([] {}));
  try {
    ranks.collectively([] { throw Error(ErrorCode::memory, "pages: none"); });
    FAIL();
  } catch (const CollectiveError& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_STREQ(error.what(), "pages: none");
  }
  EXPECT_THROW(ranks.collectively([] { throw std::runtime_error("x"); }), CollectiveError);
}

}  // namespace
}  // namespace ropewalk::bench
