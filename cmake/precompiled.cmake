# Precompiled headers: a third of the build's time is reading the same headers of others.
#
# Three sets, each compiled once and shared by all targets that name it. Every source still includes
# what it uses: with -DROPEWALK_PRECOMPILE=OFF nothing is put before it, as in one of CI's builds.
option(ROPEWALK_PRECOMPILE "Precompile the headers of the C++ library and of others"
       ${PROJECT_IS_TOP_LEVEL})
if(CMAKE_CROSSCOMPILING OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ROPEWALK_PRECOMPILE OFF)
endif()

set(precompiled_std algorithm array atomic cstdint cstring functional memory mutex optional span
    string utility vector)
set(precompiled_bench ${precompiled_std} CLI/CLI.hpp fmt/format.h nlohmann/json.hpp)
set(precompiled_tests ${precompiled_std} gtest/gtest.h random stdexcept thread)

# ropewalk_precompiled(TARGET std|bench|tests [library...]): TARGET's C++ sources begin with the
# headers of that set, which need the libraries named. Sources with machine options of their own
# must set SKIP_PRECOMPILE_HEADERS.
function(ropewalk_precompiled target set)
  if(NOT ROPEWALK_PRECOMPILE)
    return()
  endif()
  # Programs and libraries differ in an option that what is precompiled must share.
  get_target_property(kind ${target} TYPE)
  set(owner ropewalk-precompiled-${set})
  if(kind STREQUAL EXECUTABLE)
    string(APPEND owner -programs)
  endif()
  if(NOT TARGET ${owner})
    file(WRITE ${PROJECT_BINARY_DIR}/precompiled/${set}.cc "")
    add_library(${owner} OBJECT ${PROJECT_BINARY_DIR}/precompiled/${set}.cc)
    target_link_libraries(${owner} PRIVATE ropewalk-options ${ARGN})
    if(kind STREQUAL EXECUTABLE)
      set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${owner} PRIVATE -fPIE)
    endif()
    list(TRANSFORM precompiled_${set} REPLACE "(.+)" "<\\1>")
    target_precompile_headers(${owner} PRIVATE ${precompiled_${set}})
    # ccache keeps what is compiled after such headers only with this.
    target_compile_options(${owner} PRIVATE -fpch-preprocess)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  # GCC 12 forgets that a precompiled header is a system header, and gives false alarms for it.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess
                         -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow>)
endfunction()
