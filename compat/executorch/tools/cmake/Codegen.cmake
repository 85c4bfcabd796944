# Functions of ExecuTorch's file of this name: libraries of kernels that YAML files name.
#
#   gen_selected_ops(LIB_NAME own_ops_lib OPS_SCHEMA_YAML "${CMAKE_CURRENT_LIST_DIR}/custom_ops.yaml")
#   generate_bindings_for_kernels(
#     LIB_NAME own_ops_lib CUSTOM_OPS_YAML "${CMAKE_CURRENT_LIST_DIR}/custom_ops.yaml")
#   gen_operators_lib(LIB_NAME own_ops_lib KERNEL_LIBS own_kernels DEPS executorch)
#
# The C++ is made by rushlight.kernel_codegen, which PYTHON_EXECUTABLE must import, with PyTorch, in the
# folder LIB_NAME of the project's build folder.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/Utils.cmake")

# PYTHON_EXECUTABLE, or an error if it does not import what writes the C++.
macro(executorch_find_codegen)
  resolve_python_executable()
  if(NOT executorch_codegen_of STREQUAL PYTHON_EXECUTABLE)
    execute_process(COMMAND "${PYTHON_EXECUTABLE}" -c "import torchgen, rushlight.kernel_codegen"
                    RESULT_VARIABLE executorch_result ERROR_VARIABLE executorch_reason)
    if(NOT executorch_result EQUAL 0)
      message(FATAL_ERROR "${PYTHON_EXECUTABLE} does not import rushlight and PyTorch, which write the C++ "
                          "of YAML files: set -D PYTHON_EXECUTABLE to the Python of an environment "
                          "that has both.\n${executorch_reason}")
    endif()
    set(executorch_codegen_of "${PYTHON_EXECUTABLE}" CACHE INTERNAL "a Python that writes C++ of YAML")
  endif()
endmacro()

# Writes selected_operators.yaml: the operators of OPS_SCHEMA_YAML, of ROOT_OPS (names with commas
# between), of OPS_FROM_MODEL (a program), or all with INCLUDE_ALL_OPS. With DTYPE_SELECTIVE_BUILD also
# selected_op_variants.h: their dtypes in the program.
function(gen_selected_ops)
  cmake_parse_arguments(
    GEN "" ""
    "LIB_NAME;OPS_SCHEMA_YAML;ROOT_OPS;INCLUDE_ALL_OPS;OPS_FROM_MODEL;DTYPE_SELECTIVE_BUILD" ${ARGN})
  executorch_find_codegen()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${GEN_LIB_NAME}")
  set(selected "${folder}/selected_operators.yaml")
  file(MAKE_DIRECTORY "${folder}")
  set(options "--output_path=${selected}")
  if(GEN_OPS_SCHEMA_YAML)
    list(APPEND options "--ops_schema_yaml_path=${GEN_OPS_SCHEMA_YAML}")
  endif()
  if(GEN_ROOT_OPS)
    list(JOIN GEN_ROOT_OPS "," names)
    list(APPEND options "--root_ops=${names}")
  endif()
  if(GEN_INCLUDE_ALL_OPS)
    list(APPEND options --include_all_operators)
  endif()
  if(GEN_OPS_FROM_MODEL)
    list(APPEND options "--model_file_path=${GEN_OPS_FROM_MODEL}")
  endif()
  add_custom_command(
    OUTPUT "${selected}" COMMENT "Selecting operators for ${GEN_LIB_NAME}"
    COMMAND "${PYTHON_EXECUTABLE}" -m rushlight.kernel_codegen.tools.gen_oplist ${options}
    DEPENDS ${GEN_OPS_SCHEMA_YAML} ${GEN_OPS_FROM_MODEL} VERBATIM)
  if(GEN_DTYPE_SELECTIVE_BUILD)
    if(NOT GEN_OPS_FROM_MODEL)
      message(FATAL_ERROR "${GEN_LIB_NAME}: DTYPE_SELECTIVE_BUILD takes the dtypes of a program: name it "
                          "by OPS_FROM_MODEL")
    endif()
    add_custom_command(
      OUTPUT "${folder}/selected_op_variants.h" COMMENT "Selecting dtypes for ${GEN_LIB_NAME}"
      COMMAND "${PYTHON_EXECUTABLE}" -m rushlight.kernel_codegen.tools.gen_selected_op_variants
              "--yaml-file=${selected}" "--output-dir=${folder}"
      DEPENDS "${selected}" VERBATIM)
  endif()
endfunction()

# Writes the C++ that registers what was selected and FUNCTIONS_YAML or CUSTOM_OPS_YAML have kernels
# for. The caller gets the names of the files as gen_command_sources.
function(generate_bindings_for_kernels)
  cmake_parse_arguments(
    GEN "ADD_EXCEPTION_BOUNDARY" "LIB_NAME;FUNCTIONS_YAML;CUSTOM_OPS_YAML;DTYPE_SELECTIVE_BUILD" ""
    ${ARGN})
  executorch_find_codegen()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${GEN_LIB_NAME}")
  set(selected "${folder}/selected_operators.yaml")
  set(options "--install-dir=${folder}" "--op-selection-yaml-path=${selected}")
  set(files RegisterCodegenUnboxedKernelsEverything.cpp Functions.h NativeFunctions.h)
  if(GEN_FUNCTIONS_YAML)
    list(APPEND options "--functions-yaml-path=${GEN_FUNCTIONS_YAML}")
  endif()
  if(GEN_CUSTOM_OPS_YAML)
    list(APPEND options "--custom-ops-yaml-path=${GEN_CUSTOM_OPS_YAML}")
    list(APPEND files RegisterCPUCustomOps.cpp RegisterSchema.cpp CustomOpsNativeFunctions.h)
  endif()
  if(GEN_ADD_EXCEPTION_BOUNDARY)
    list(APPEND options --add-exception-boundary)
  endif()
  list(TRANSFORM files PREPEND "${folder}/")
  set(variants "")
  if(GEN_DTYPE_SELECTIVE_BUILD)
    set(variants "${folder}/selected_op_variants.h")
  endif()
  add_custom_command(
    OUTPUT ${files} COMMENT "Writing C++ of kernels for ${GEN_LIB_NAME}"
    COMMAND "${PYTHON_EXECUTABLE}" -m rushlight.kernel_codegen.gen ${options}
    DEPENDS "${selected}" ${variants} ${GEN_FUNCTIONS_YAML} ${GEN_CUSTOM_OPS_YAML} VERBATIM)
  set(gen_command_sources ${files} PARENT_SCOPE)
endfunction()

# A shared library for torch.ops.load_library: the operators of CUSTOM_OPS_YAML, with KERNEL_SOURCES
# compiled over PyTorch's tensors (USE_ATEN_LIB).
function(gen_custom_ops_aot_lib)
  cmake_parse_arguments(GEN "" "LIB_NAME" "KERNEL_SOURCES" ${ARGN})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${GEN_LIB_NAME}")
  find_package_torch()
  add_library(
    ${GEN_LIB_NAME} SHARED
    "${folder}/RegisterCPUCustomOps.cpp" "${folder}/RegisterSchema.cpp"
    "${folder}/CustomOpsNativeFunctions.h" ${GEN_KERNEL_SOURCES})
  target_compile_features(${GEN_LIB_NAME} PRIVATE cxx_std_20)
  target_compile_definitions(${GEN_LIB_NAME} PRIVATE USE_ATEN_LIB=1)
  if(NOT MSVC)
    target_compile_options(${GEN_LIB_NAME} PRIVATE -frtti -fexceptions)
  endif()
  target_include_directories(${GEN_LIB_NAME} BEFORE PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${GEN_LIB_NAME} PRIVATE torch executorch_core)
endfunction()

# A library that registers, when it is linked, the kernels of KERNEL_LIBS in the runtime. Kernels of
# `portable_kernels` are in the runtime already. With DTYPE_SELECTIVE_BUILD, KERNEL_LIBS are compiled
# for the selected dtypes.
function(gen_operators_lib)
  cmake_parse_arguments(GEN "" "" "LIB_NAME;KERNEL_LIBS;DEPS;DTYPE_SELECTIVE_BUILD" ${ARGN})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${GEN_LIB_NAME}")
  set(headers "${folder}/Functions.h" "${folder}/NativeFunctions.h")
  if(GEN_DTYPE_SELECTIVE_BUILD)
    list(APPEND headers "${folder}/selected_op_variants.h")
    add_custom_target(${GEN_LIB_NAME}_variants DEPENDS "${folder}/selected_op_variants.h")
    foreach(library IN LISTS GEN_KERNEL_LIBS)
      target_include_directories(${library} PRIVATE "${folder}")
      target_compile_definitions(${library} PRIVATE EXECUTORCH_SELECTIVE_BUILD_DTYPE=1)
      add_dependencies(${library} ${GEN_LIB_NAME}_variants)
    endforeach()
  endif()
  add_library(
    ${GEN_LIB_NAME} STATIC "${folder}/RegisterCodegenUnboxedKernelsEverything.cpp" ${headers})
  target_link_libraries(${GEN_LIB_NAME} PRIVATE executorch ${GEN_DEPS} PUBLIC ${GEN_KERNEL_LIBS})
  set_target_properties(${GEN_LIB_NAME} PROPERTIES PUBLIC_HEADER "${headers}")
  executorch_target_link_options_shared_lib(${GEN_LIB_NAME})
endfunction()

# Writes OUTPUT_DIR/merged.yaml: the entries of FUNCTIONS_YAML, and those of FALLBACK_YAML for operators
# that it has none for.
function(merge_yaml)
  cmake_parse_arguments(GEN "" "FUNCTIONS_YAML;FALLBACK_YAML;OUTPUT_DIR" "" ${ARGN})
  executorch_find_codegen()
  file(MAKE_DIRECTORY "${GEN_OUTPUT_DIR}")
  add_custom_command(
    OUTPUT "${GEN_OUTPUT_DIR}/merged.yaml" COMMENT "Merging ${GEN_FUNCTIONS_YAML} and its fallback"
    COMMAND "${PYTHON_EXECUTABLE}" -m rushlight.kernel_codegen.tools.merge_yaml
            "--functions_yaml_path=${GEN_FUNCTIONS_YAML}"
            "--fallback_yaml_path=${GEN_FALLBACK_YAML}" "--output_dir=${GEN_OUTPUT_DIR}"
    DEPENDS "${GEN_FUNCTIONS_YAML}" "${GEN_FALLBACK_YAML}" VERBATIM)
endfunction()
