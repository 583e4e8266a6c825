# Installs the build tree BUILD below WORK, moves it, and builds and runs the project CONSUMER
# against it. It is moved first because an installed tree must not remember where it was made.
set(prefix ${WORK}/moved)
file(REMOVE_RECURSE ${WORK})

# check(COMMAND...): runs it and stops with its output when it fails; the output goes to `output`.
function(check)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " line "${ARGN}")
    message(FATAL_ERROR "${line}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# expect_version(PROGRAM): the program must run and print the version of this tree.
function(expect_version program)
  check(${program})
  if(NOT output STREQUAL "${VERSION}\n")
    message(FATAL_ERROR "${program} printed '${output}', expected '${VERSION}'")
  endif()
endfunction()

check(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/made --component development)
file(RENAME ${WORK}/made ${prefix})

check(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
      -DCMAKE_MAKE_PROGRAM=${MAKE} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC}
      -DCMAKE_PREFIX_PATH=${prefix})
check(${CMAKE_COMMAND} --build ${WORK}/build)
foreach(program shared static from-c)
  expect_version(${WORK}/build/${program})
endforeach()

if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${prefix}/*/ropewalk.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  check(${PKG_CONFIG} --cflags --libs ropewalk)
  separate_arguments(flags UNIX_COMMAND "${output}")
  get_filename_component(libraries ${folder} DIRECTORY)
  check(${CC} ${CONSUMER}/consumer.c -o ${WORK}/pkg-config-c ${flags} -Wl,-rpath,${libraries})
  expect_version(${WORK}/pkg-config-c)
endif()
