// That a call throws an Error, with a code and the beginning of its text.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk::test {

inline void expect_error(ErrorCode code, const std::string& begin,
                         const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error: " << begin;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()).substr(0, begin.size()), begin);
  }
}

}  // namespace ropewalk::test
