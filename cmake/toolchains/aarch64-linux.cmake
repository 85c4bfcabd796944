# 64-bit ARM Linux, from another machine: Debian's g++-aarch64-linux-gnu, and qemu-user to run tests.
#
#   cmake -B build/aarch64 -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux.cmake \
#     -D RUSHLIGHT_BUILD_TESTS=ON
#
# The environment variable QEMU_CPU (cortex-a72, say) tells QEMU which processor to be.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
