# With ROPEWALK_UNITY the sources of a target are compiled in groups: half of the build's time is
# instantiating the same templates of the same headers, once in each source. The scripts build so.
# The build with Clang compiles each source of the libraries alone, and tells whether it includes
# what it uses.
#
# In a group all local names share a scope. A source whose local names another one of its target has
# as well is named by ropewalk_alone.
option(ROPEWALK_UNITY "Compile the sources of a target in groups" OFF)
if(ROPEWALK_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8) # larger groups are little faster, and one change costs more
endif()

# ropewalk_alone(source...): they are in no group.
function(ropewalk_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# ropewalk_own_definitions_first(): programs of this folder compile sources of the library again,
# changed. A group of the library's sources is one member of libropewalk.a, so what such a program
# needs of it brings the original along: the linker then takes the first definition.
macro(ropewalk_own_definitions_first)
  if(ROPEWALK_UNITY)
    add_link_options(-Wl,-z,muldefs)
  endif()
endmacro()
