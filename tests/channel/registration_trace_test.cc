// The text of a registration trace, and what is said where it cannot be written.
#include "channel/registration_trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ropewalk/error.hpp"

namespace ropewalk::channel {
namespace {

TEST(RegistrationTrace, HasALineForEachRequest) {
  char folder[] = "/tmp/ropewalk-trace-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/trace";
  {
    RegistrationTrace trace(file);
    trace.add(71, 0x7f00'1234'5000, 65536);
    trace.add(72, 0x1000, 1);
  }
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  unlink(file.c_str());
  rmdir(folder);
  EXPECT_EQ(text.str(), "# process address bytes\n71 7f0012345000 65536\n72 1000 1\n");
}

TEST(RegistrationTrace, AFileThatCannotBeWrittenIsAnErrorThatNamesTheVariable) {
  try {
    const RegistrationTrace trace("/nonexistent/trace");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    const std::string text = error.what();
    EXPECT_NE(text.find("ROPEWALK_REGISTRATION_TRACE"), text.npos) << text;
    EXPECT_NE(text.find("/nonexistent/trace"), text.npos) << text;
  }
}

}  // namespace
}  // namespace ropewalk::channel
