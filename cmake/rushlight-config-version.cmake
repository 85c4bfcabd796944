# The version of this package, for find_package(): it serves those who ask for the same major and
# minor number, or leave the minor one open, and for no later patch.
set(rushlight_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/..")
include("${CMAKE_CURRENT_LIST_DIR}/rushlight-installed.cmake" OPTIONAL)
file(STRINGS "${rushlight_SOURCE_DIR}/pyproject.toml" PACKAGE_VERSION REGEX "^version = ")
string(REGEX REPLACE "^version = \"([0-9.]+).*" "\\1" PACKAGE_VERSION "${PACKAGE_VERSION}")
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" numbers "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION
   AND PACKAGE_FIND_VERSION_MAJOR EQUAL CMAKE_MATCH_1
   AND (PACKAGE_FIND_VERSION_MINOR EQUAL CMAKE_MATCH_2 OR PACKAGE_FIND_VERSION_COUNT LESS 2))
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
