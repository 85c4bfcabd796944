# Where CMake looks below a folder of CMAKE_PREFIX_PATH.
include("${CMAKE_CURRENT_LIST_DIR}/../../../share/cmake/executorch-config.cmake")
