# 64-bit ARM: see debian-cross.cmake.
#
#   cmake -B build/aarch64 -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux.cmake \
#     -D RUSHLIGHT_BUILD_TESTS=ON
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
