# How the model tries every interleaving of what one header of preload/mpi does. The header is
# compiled as it is, against the model of shared memory in this folder.
ropewalk_own_definitions_first()

set(model ${PROJECT_SOURCE_DIR}/tests/model)
set(source ${PROJECT_SOURCE_DIR}/preload/mpi)
set(ground $<TARGET_OBJECTS:model-search> $<TARGET_OBJECTS:model-stubs>)

# ropewalk_header_modelled(target [FOLDER]): headers in the folder stand before those of preload/.
function(ropewalk_header_modelled target)
  target_include_directories(${target} BEFORE PRIVATE ${ARGN} ${model}/in_front ${source}
    ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE MODEL_SLOTS=2)
  target_link_libraries(${target} PRIVATE ropewalk-options)
endfunction()

# ropewalk_model_of_header(NAME HEADER): scenarios.cc and the model test of this folder, for the
# header. NAME is the folder's, and that of the scenarios' namespace.
function(ropewalk_model_of_header name header)
  add_library(${name}-model-scenarios OBJECT scenarios.cc)
  ropewalk_header_modelled(${name}-model-scenarios)
  add_library(${name}-model-mutant-program OBJECT ${model}/header_mutant_program.cc)
  ropewalk_header_modelled(${name}-model-mutant-program)
  target_compile_definitions(${name}-model-mutant-program PRIVATE
    MODEL_SCENARIOS="model/${name}/scenarios.hpp" MODEL_NAMESPACE=${name})
  ropewalk_unit_test(${name}_model ${name}_model_test.cc $<TARGET_OBJECTS:${name}-model-scenarios>
                     ${ground})
  set(model_name ${name} PARENT_SCOPE)
  set(model_header ${header} PARENT_SCOPE)
endfunction()

# ropewalk_header_mutant(NAME SCENARIO s [EXPECT text] FROM text TO text): the header with one text
# replaced (as mutate.cmake says) must show a violation in the scenario.
function(ropewalk_header_mutant name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCENARIO;EXPECT;FROM;TO" "")
  set(target ${model_name}-mutant-${name})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name})
  set(original ${source}/${model_header})
  set(mutant ${folder}/${model_header})
  add_custom_command(OUTPUT ${mutant}
    COMMAND ${CMAKE_COMMAND} -DIN=${original} -DOUT=${mutant} -DFROM=${arg_FROM} -DTO=${arg_TO}
            -P ${model}/mutate.cmake
    DEPENDS ${original} ${model}/mutate.cmake VERBATIM)
  add_library(${target}-code OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/scenarios.cc ${mutant})
  ropewalk_header_modelled(${target}-code ${folder})
  add_executable(${target} $<TARGET_OBJECTS:${target}-code> ${ground}
                 $<TARGET_OBJECTS:${model_name}-model-mutant-program>)
  target_link_libraries(${target} PRIVATE ropewalk ropewalk-options)
  add_dependencies(unit-tests ${target})
  add_test(NAME ${model_name}_model.mutant.${name} COMMAND ${target} ${arg_SCENARIO} ${arg_EXPECT})
  set_tests_properties(${model_name}_model.mutant.${name} PROPERTIES TIMEOUT 300 LABELS unit)
endfunction()
