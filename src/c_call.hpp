// The wall between C++ exceptions and the C interface: every rw_* function is one c_call.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "ropewalk/error.hpp"
#include "ropewalk/ropewalk.h"

namespace ropewalk {

// Keeps the text for rw_last_error of this thread; returns the code.
int record_error(ErrorCode, const char* text) noexcept;

// Runs `body` and turns what it throws into a code of the C interface.
template <class Body>
int c_call(Body&& body) noexcept {
  try {
    body();
    return RW_SUCCESS;
  } catch (const Error& error) {
    return record_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return record_error(ErrorCode::memory, "out of memory");
  } catch (const std::exception& error) {
    return record_error(ErrorCode::internal, error.what());
  } catch (...) {
    return record_error(ErrorCode::internal, "unknown exception");
  }
}

// The check every pointer argument of the C interface gets.
inline void require_argument(const void* pointer, const char* argument) {
  if (pointer == nullptr) {
    throw Error(ErrorCode::argument, std::string(argument) + ": NULL; pass a valid pointer");
  }
}

}  // namespace ropewalk
