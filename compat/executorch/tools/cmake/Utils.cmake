# Functions of ExecuTorch's file of this name that projects call.
include_guard(GLOBAL)

# Links a library whole, so that the static objects that register its kernels or backends are kept.
function(executorch_target_link_options_shared_lib target_name)
  if(APPLE)
    executorch_macos_kernel_link_options(${target_name})
  elseif(MSVC)
    executorch_msvc_kernel_link_options(${target_name})
  else()
    executorch_kernel_link_options(${target_name})
  endif()
endfunction()
function(executorch_kernel_link_options target_name)
  target_link_options(
    ${target_name} INTERFACE
    "SHELL:LINKER:--whole-archive $<TARGET_FILE:${target_name}> LINKER:--no-whole-archive")
endfunction()
function(executorch_macos_kernel_link_options target_name)
  target_link_options(
    ${target_name} INTERFACE "SHELL:LINKER:-force_load,$<TARGET_FILE:${target_name}>")
endfunction()
function(executorch_msvc_kernel_link_options target_name)
  target_link_options(
    ${target_name} INTERFACE "SHELL:LINKER:/WHOLEARCHIVE:$<TARGET_FILE:${target_name}>")
endfunction()
# Names that older projects use.
function(target_link_options_shared_lib target_name)
  executorch_target_link_options_shared_lib(${target_name})
endfunction()
function(kernel_link_options target_name)
  executorch_kernel_link_options(${target_name})
endfunction()

# Links the archive of another target whole into this one.
function(executorch_target_whole_archive target_name archive_target)
  set(archive "$<TARGET_FILE:${archive_target}>")
  if(APPLE)
    target_link_options(${target_name} PRIVATE "SHELL:LINKER:-force_load,${archive}")
  elseif(MSVC)
    target_link_options(${target_name} PRIVATE "SHELL:LINKER:/WHOLEARCHIVE:${archive}")
  else()
    target_link_options(
      ${target_name} PRIVATE "SHELL:LINKER:--whole-archive ${archive} LINKER:--no-whole-archive")
  endif()
  add_dependencies(${target_name} ${archive_target})
endfunction()

function(target_link_options_gc_sections target_name)
  if(APPLE)
    target_link_options(${target_name} PRIVATE "LINKER:-dead_strip")
  elseif(WIN32)
    target_link_options(${target_name} PRIVATE "LINKER:/OPT:REF")
  else()
    target_link_options(${target_name} PRIVATE "LINKER:--gc-sections")
  endif()
endfunction()

# PYTHON_EXECUTABLE, unless it is set.
function(resolve_python_executable)
  if(NOT PYTHON_EXECUTABLE)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(PYTHON_EXECUTABLE "${Python3_EXECUTABLE}" PARENT_SCOPE)
  endif()
endfunction()

# The folder of the PyTorch that PYTHON_EXECUTABLE imports.
function(get_torch_base_path out_variable)
  resolve_python_executable()
  execute_process(
    COMMAND "${PYTHON_EXECUTABLE}" -c
            "from importlib.util import find_spec as f; print(f('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE folder RESULT_VARIABLE result ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PYTHON_EXECUTABLE} has no PyTorch: set -D PYTHON_EXECUTABLE to the Python of "
                        "an environment that has")
  endif()
  set(${out_variable} "${folder}" PARENT_SCOPE)
endfunction()
function(add_torch_to_cmake_prefix_path)
  get_torch_base_path(folder)
  set(CMAKE_PREFIX_PATH "${CMAKE_PREFIX_PATH};${folder}" PARENT_SCOPE)
endfunction()
function(find_package_torch_headers)
  get_torch_base_path(folder)
  set(TORCH_INCLUDE_DIRS "${folder}/include;${folder}/include/torch/csrc/api/include" PARENT_SCOPE)
endfunction()
macro(find_package_torch)
  if(NOT TARGET torch)
    add_torch_to_cmake_prefix_path()
    find_package(Torch CONFIG REQUIRED)
  endif()
endmacro()

# The sources of executor_runner, as `_executor_runner__srcs`, from EXECUTORCH_ROOT on.
function(executorch_load_build_variables)
  get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.." ABSOLUTE)
  file(GLOB sources RELATIVE "${root}" CONFIGURE_DEPENDS "${root}/src/runner/*.cpp")
  set(_executor_runner__srcs ${sources} PARENT_SCOPE)
endfunction()
