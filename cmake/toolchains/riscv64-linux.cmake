# 64-bit RISC-V: see debian-cross.cmake.
#
#   cmake -B build/riscv64 -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/riscv64-linux.cmake \
#     -D RUSHLIGHT_BUILD_TESTS=ON
set(CMAKE_SYSTEM_PROCESSOR riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
