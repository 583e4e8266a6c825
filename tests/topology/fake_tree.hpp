// A directory tree of small files, as sysfs and cgroupfs look, gone when the test ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ropewalk::topology {

class FakeTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rw-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text << '\n';
  }
  std::string root() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace ropewalk::topology
