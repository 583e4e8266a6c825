# How the house is put together: one object library a room, joined to the library `ropewalk`.

# Warnings and sanitizers, for our own code only: never exported.
add_library(ropewalk-options INTERFACE)
target_compile_options(ropewalk-options INTERFACE -Wall -Wextra -Wshadow
                       $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(ROPEWALK_SANITIZE)
  target_compile_options(ropewalk-options INTERFACE -fsanitize=${ROPEWALK_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ropewalk-options INTERFACE -fsanitize=${ROPEWALK_SANITIZE})
endif()

# ropewalk_room(NAME source...): the room src/NAME as the object library ropewalk-NAME.
function(ropewalk_room name)
  add_library(ropewalk-${name} OBJECT ${ARGN})
  target_include_directories(ropewalk-${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(ropewalk-${name} PRIVATE $<BUILD_INTERFACE:ropewalk-options>
                        Threads::Threads)
  ropewalk_precompiled(ropewalk-${name} std)
  set_property(GLOBAL APPEND PROPERTY ROPEWALK_ROOMS ${name})
endfunction()
