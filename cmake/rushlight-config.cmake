# find_package(rushlight): rushlight::rushlight, rushlight::module, rushlight::core, rushlight::llm,
# rushlight::c and rushlight::c_static, which CMakeLists.txt describes.
#
# They are the libraries that were installed beside this file. With RUSHLIGHT_FROM_SOURCES, and in a
# checkout, they are compiled as a part of the project that asks, by its compiler and for its
# processor, with the options of CMakeLists.txt. The sources are in rushlight_SOURCE_DIR.
set(rushlight_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/..")
include("${CMAKE_CURRENT_LIST_DIR}/rushlight-installed.cmake" OPTIONAL
        RESULT_VARIABLE rushlight_INSTALLED)
get_filename_component(rushlight_SOURCE_DIR "${rushlight_SOURCE_DIR}" ABSOLUTE)

if(RUSHLIGHT_FROM_SOURCES OR NOT rushlight_INSTALLED)
  if(NOT TARGET rushlight::core)
    add_subdirectory("${rushlight_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/rushlight-build"
                     EXCLUDE_FROM_ALL)
  endif()
elseif(NOT rushlight_SYSTEM STREQUAL "${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}")
  set(rushlight_FOUND FALSE)
  string(CONCAT rushlight_NOT_FOUND_MESSAGE
         "These libraries are for ${rushlight_SYSTEM}, and the build is for ${CMAKE_SYSTEM_NAME} on "
         "${CMAKE_SYSTEM_PROCESSOR}. Set RUSHLIGHT_FROM_SOURCES=ON to compile them for it.")
  return()
else()
  if(rushlight_THREADS)
    include(CMakeFindDependencyMacro)
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_dependency(Threads)
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/rushlight-targets.cmake")
endif()

include("${rushlight_SOURCE_DIR}/cmake/RushlightSelect.cmake")  # rushlight_add_library

foreach(component IN LISTS rushlight_FIND_COMPONENTS)
  if(TARGET rushlight::${component})
    set(rushlight_${component}_FOUND TRUE)
  elseif(rushlight_FIND_REQUIRED_${component})
    set(rushlight_FOUND FALSE)
    set(rushlight_NOT_FOUND_MESSAGE "There is no target rushlight::${component}.")
  endif()
endforeach()
