# find_package(executorch COMPONENTS runtime kernels_optimized …): the names of the C++ SDK in
# ExecuTorch's wheel, over Rushlight.
#
#   find_package(executorch CONFIG REQUIRED COMPONENTS runtime kernels_optimized)
#   target_link_libraries(app PRIVATE executorch::runtime executorch::kernels_optimized)
#
# The headers' library is compiled as a part of the project that asks, the runtime is Rushlight's own
# package (../../CMakeLists.txt says where it is looked for). Beside the components there are
# EXECUTORCH_FOUND, EXECUTORCH_INCLUDE_DIRS, EXECUTORCH_COMPILE_DEFINITIONS, EXECUTORCH_CXX_STANDARD,
# EXECUTORCH_LIBRARIES, EXECUTORCH_QUANTIZED_KERNELS_LIBRARY, EXECUTORCH_RUNTIME_LIBRARY_DIR and
# EXECUTORCH_BUILD_VERSION. No library is loaded when a program starts, so that nothing is added to
# RPATH: EXECUTORCH_RUNTIME_LIBRARY_DIR is the folder of the archives.
cmake_minimum_required(VERSION 3.18...3.31)

get_filename_component(executorch_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(EXECUTORCH_BUILD_VERSION "1.5.1+rushlight")
set(EXECUTORCH_CXX_STANDARD 17)
set(EXECUTORCH_INCLUDE_DIRS
    "${executorch_root}/include"
    "${executorch_root}/include/executorch/runtime/core/portable_type/c10")
set(EXECUTORCH_COMPILE_DEFINITIONS
    C10_USING_CUSTOM_GENERATED_MACROS ET_EVENT_TRACER_ENABLED ET_USE_THREADPOOL)

if(NOT TARGET executorch::runtime)
  set(EXECUTORCH_ENABLE_EVENT_TRACER ON)  # as the wheel's libraries are built
  add_subdirectory("${executorch_root}" "${CMAKE_BINARY_DIR}/executorch-build" EXCLUDE_FROM_ALL)
  unset(EXECUTORCH_ENABLE_EVENT_TRACER)
endif()
set(EXECUTORCH_LIBRARIES executorch::runtime executorch::threadpool executorch::kernels_optimized
                         executorch::etdump executorch::backend_xnnpack)
set(EXECUTORCH_QUANTIZED_KERNELS_LIBRARY executorch::kernels_quantized)
get_property(EXECUTORCH_RUNTIME_LIBRARY_DIR TARGET executorch PROPERTY BINARY_DIR)
set(EXECUTORCH_FOUND ON)
set(executorch_FOUND TRUE)

# Components of wheels for other systems and devices.
set(executorch_absent_backend_coreml "programs for Core ML run by rushlight's Python runtime on macOS")
set(executorch_absent_backend_openvino "programs for OpenVINO run by rushlight's Python runtime")
set(executorch_absent_backend_qnn "there is no backend for Qualcomm's processors")
set(executorch_absent_backend_mlx "there is no backend for MLX")
set(executorch_absent_kernels_torchao "the kernels of quantised linear layers are in kernels_optimized")
set(executorch_absent_backend_cuda "there is no backend for CUDA")
set(executorch_absent_extension_cuda "there is no backend for CUDA")
foreach(component IN LISTS executorch_FIND_COMPONENTS)
  if(TARGET executorch::${component})
    set(executorch_${component}_FOUND TRUE)
    continue()
  endif()
  set(executorch_${component}_FOUND FALSE)
  if(executorch_FIND_REQUIRED_${component})
    set(executorch_FOUND FALSE)
    set(EXECUTORCH_FOUND OFF)
    set(reason "${executorch_absent_${component}}")
    if(NOT reason)
      set(reason "the components are runtime, threadpool, kernels_optimized, kernels_quantized, etdump \
and backend_xnnpack")
    endif()
    set(executorch_NOT_FOUND_MESSAGE "Rushlight has no component '${component}': ${reason}.")
  endif()
endforeach()
