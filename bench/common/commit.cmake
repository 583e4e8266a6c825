# Writes the commit of the sources into HEADER, at build time and only when it changed, so that the
# provenance in benchmark results is never that of an older configure. Variables: SOURCE, HEADER.
set(commit "unknown")
find_program(GIT_EXECUTABLE git)
if(GIT_EXECUTABLE)
  execute_process(COMMAND ${GIT_EXECUTABLE} --no-optional-locks -C ${SOURCE}
                          describe --always --dirty --abbrev=10
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT [[// Made at build time by commit.cmake.
#pragma once
#define ROPEWALK_COMMIT "@commit@"
]] @ONLY)
