# What is installed, in a prefix or in a wheel: libraries, headers, the CMake package, files for
# pkg-config, and the sources, for those who compile the runtime themselves (rushlight-config.cmake).

# A wheel has no symbolic links: there the shared library is one file, with its SONAME as its name,
# and a linker script stands in for the name that linkers look for.
function(rushlight_install_c_library)
  if(NOT is_wheel)
    install(TARGETS rushlight_c EXPORT rushlight
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
            NAMELINK_COMPONENT runtime)
    return()
  endif()
  set_property(TARGET rushlight_c PROPERTY VERSION)
  get_target_property(version rushlight_c SOVERSION)
  install(TARGETS rushlight_c EXPORT rushlight
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    file(WRITE "${PROJECT_BINARY_DIR}/librushlight.so.script" "INPUT(librushlight.so.${version})\n")
    install(FILES "${PROJECT_BINARY_DIR}/librushlight.so.script" RENAME librushlight.so
            DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  endif()
endfunction()

# One file for pkg-config: name, description, what it requires, how it is linked.
function(rushlight_install_pc name description requires libs)
  file(RELATIVE_PATH include "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
       "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  configure_file(cmake/rushlight.pc.in "${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc"
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
endfunction()

# Archives are named by their paths: `-lrushlight` is the shared library of the C interface.
function(rushlight_install_pkgconfig)
  set(system ${CMAKE_DL_LIBS})
  list(TRANSFORM system PREPEND "-l")
  if(RUSHLIGHT_THREADS)
    list(APPEND system -pthread)
  endif()
  set(kernels "")
  if(TARGET rushlight_kernels_portable)
    set(kernels rushlight_kernels_portable)
  endif()
  set(module rushlight_module ${kernels} rushlight_core)
  set(desktop rushlight rushlight_backend_cpu rushlight_backend_xnnpack rushlight_engine ${kernels}
      rushlight_core)
  set(llm rushlight_llm)
  set(cflags " -fvisibility-inlines-hidden")
  foreach(list module desktop llm)
    list(TRANSFORM ${list} PREPEND "\${libdir}/${CMAKE_STATIC_LIBRARY_PREFIX}")
    list(TRANSFORM ${list} APPEND "${CMAKE_STATIC_LIBRARY_SUFFIX}")
    list(JOIN ${list} " " ${list})
  endforeach()
  list(JOIN system " " system)
  rushlight_install_pc(rushlight "runs .pte programs; C++, with all backends" ""
                       "${desktop} ${system}")
  rushlight_install_pc(rushlight-module "runs .pte programs; C++, portable kernels alone" ""
                       "${module} ${system}")
  rushlight_install_pc(rushlight-llm "runs language models; C++" rushlight "${llm}")
  if(TARGET rushlight_c)
    set(cflags "")
    rushlight_install_pc(rushlight-c "runs .pte programs; C, shared library" ""
                         "-L\${libdir} -lrushlight")
  endif()
endfunction()

# All of it, as component "runtime".
function(rushlight_install)
  set(libraries core engine module backend_cpu backend_demo backend_xnnpack llm)
  if(TARGET rushlight_kernels_portable)
    list(APPEND libraries kernels_portable)
  endif()
  if(TARGET rushlight_c)
    list(APPEND libraries c_static)
    set_target_properties(rushlight_c PROPERTIES EXPORT_NAME c)
    rushlight_install_c_library()
  endif()
  foreach(library IN LISTS libraries)
    set_target_properties(rushlight_${library} PROPERTIES EXPORT_NAME ${library})
  endforeach()
  list(TRANSFORM libraries PREPEND rushlight_)
  install(TARGETS rushlight ${libraries} EXPORT rushlight
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  if(TARGET rushlight_runner)
    install(TARGETS rushlight_runner RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
  # C headers lie flat, those of C++ in rushlight/.
  file(GLOB c_headers CONFIGURE_DEPENDS cpp/abi/*.h)
  install(FILES ${c_headers} cpp/c_api/rushlight.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT runtime)
  install(DIRECTORY cpp/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rushlight COMPONENT runtime
          FILES_MATCHING PATTERN "*.h" REGEX "/cpp/runner$" EXCLUDE)

  set(sources "${CMAKE_INSTALL_DATADIR}/rushlight")
  install(DIRECTORY cpp cmake DESTINATION ${sources} COMPONENT runtime
          FILES_MATCHING PATTERN "*.h" PATTERN "*.cpp" PATTERN "*.map" PATTERN "*.cmake"
                         PATTERN "*.in" PATTERN "CMakeLists.txt")
  install(FILES CMakeLists.txt pyproject.toml LICENSE DESTINATION ${sources} COMPONENT runtime)

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/rushlight")
  install(EXPORT rushlight NAMESPACE rushlight:: FILE rushlight-targets.cmake
          DESTINATION ${package} COMPONENT runtime)
  file(RELATIVE_PATH sources "${CMAKE_INSTALL_FULL_LIBDIR}/cmake/rushlight"
       "${CMAKE_INSTALL_FULL_DATADIR}/rushlight")
  configure_file(cmake/rushlight-installed.cmake.in
                 "${PROJECT_BINARY_DIR}/rushlight-installed.cmake" @ONLY)
  install(FILES cmake/rushlight-config.cmake cmake/rushlight-config-version.cmake
                "${PROJECT_BINARY_DIR}/rushlight-installed.cmake"
          DESTINATION ${package} COMPONENT runtime)
  rushlight_install_pkgconfig()
endfunction()
