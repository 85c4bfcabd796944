# Arm Cortex-M55 without an operating system, with Debian's package gcc-arm-none-eabi. A selective
# build for it has no files and threads:
#
#   rushlight build model.pte -o app --target cortex-m55 --no-module
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR cortex-m55)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # there is nothing to link a program with
set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard -fno-threadsafe-statics")
