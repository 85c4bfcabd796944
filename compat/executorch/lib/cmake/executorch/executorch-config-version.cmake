include("${CMAKE_CURRENT_LIST_DIR}/../../../share/cmake/executorch-config-version.cmake")
