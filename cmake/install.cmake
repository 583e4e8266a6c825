# `cmake --install` installs headers, both libraries, the CMake package, pkg-config's file. All of
# it is in the component "development"; programs and the Python package have their own.
include(CMakePackageConfigHelpers)

set_target_properties(ropewalk PROPERTIES EXPORT_NAME ropewalk-static)
set_target_properties(ropewalk-shared PROPERTIES EXPORT_NAME ropewalk)
set(ROPEWALK_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ropewalk)

if(DEFINED SKBUILD)
  # A wheel holds no symbolic links, so the library bears its soname, and a linker script stands for
  # the link that -lropewalk needs. The static library, ten times as large, is left out.
  get_target_property(soversion ropewalk-shared SOVERSION)
  set_target_properties(ropewalk-shared PROPERTIES VERSION ${soversion})
  file(WRITE ${PROJECT_BINARY_DIR}/linker-script/libropewalk.so
       "INPUT(-l:libropewalk.so.${soversion})\n")
  install(FILES ${PROJECT_BINARY_DIR}/linker-script/libropewalk.so
          DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  set(libraries ropewalk-shared)
  set(link_kind NAMELINK_SKIP)
else()
  set(libraries ropewalk ropewalk-shared)
endif()
install(TARGETS ${libraries} EXPORT ropewalk-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development ${link_kind}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
get_property(preloads GLOBAL PROPERTY ROPEWALK_PRELOADS)
if(preloads)
  install(TARGETS ${preloads} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
install(DIRECTORY include/ropewalk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT ropewalk-targets NAMESPACE ropewalk:: DESTINATION ${ROPEWALK_CMAKE_DIR}
        COMPONENT development)

configure_package_config_file(packaging/ropewalk-config.cmake.in
                              ${PROJECT_BINARY_DIR}/ropewalk-config.cmake
                              INSTALL_DESTINATION ${ROPEWALK_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ropewalk-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ropewalk-config.cmake
              ${PROJECT_BINARY_DIR}/ropewalk-config-version.cmake
        DESTINATION ${ROPEWALK_CMAKE_DIR} COMPONENT development)

# The file finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH ROPEWALK_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
     ${CMAKE_INSTALL_PREFIX})
configure_file(packaging/ropewalk.pc.in ${PROJECT_BINARY_DIR}/ropewalk.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ropewalk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/ropewalk COMPONENT development)
