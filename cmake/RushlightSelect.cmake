# A runtime with only the code that given programs use: docs/selective-build.md.
#
#   find_package(rushlight REQUIRED)   # or add_subdirectory, FetchContent, or include this file
#   rushlight_add_library(my_runtime PROGRAMS model.pte)
#   target_link_libraries(app PRIVATE my_runtime)
#
# The programs are read when CMake configures, by Python with the package rushlight (without torch),
# and again whenever they change.
include_guard(GLOBAL)

# rushlight_add_library(NAME PROGRAMS FILE... [ISA NAME] [EMBED] [NO_MODULE] [C])
#
# NAME is a static library, with a header NAME.h, that runs these programs. ISA names the one
# instruction set that it has loops for; all by default. EMBED puts the programs into the library.
# NO_MODULE leaves the class Module out, for systems without files. C adds the C interface of modules,
# rushlight.h.
function(rushlight_add_library name)
  set(RUSHLIGHT_ROOT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..")
  cmake_parse_arguments(PARSE_ARGV 1 arg "EMBED;NO_MODULE;C" "ISA" "PROGRAMS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES OR NOT arg_PROGRAMS)
    message(FATAL_ERROR "rushlight_add_library(${name}): it takes PROGRAMS FILE... [ISA NAME] [EMBED] "
            "[NO_MODULE] [C], and was given ${ARGN}")
  endif()
  if(NOT arg_ISA)
    set(arg_ISA all)
  endif()
  set(selection "${CMAKE_CURRENT_BINARY_DIR}/${name}.selection")
  rushlight_read_programs(${name} "${selection}")
  include("${selection}/sources.cmake")
  include("${RUSHLIGHT_ROOT}/cmake/RushlightTargets.cmake")
  rushlight_link_headers("${selection}/include" "${RUSHLIGHT_ROOT}/cpp")

  list(TRANSFORM RUSHLIGHT_SELECTED_SOURCES PREPEND "${RUSHLIGHT_ROOT}/cpp/")
  list(TRANSFORM RUSHLIGHT_SELECTED_LOOPS PREPEND "${RUSHLIGHT_ROOT}/cpp/")
  file(GLOB generated "${selection}/*.cpp")
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)  # as in CMakeLists.txt
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  add_library(${name}_headers INTERFACE)
  target_include_directories(${name}_headers INTERFACE "${selection}" "${selection}/include")
  target_compile_features(${name}_headers INTERFACE cxx_std_17)
  target_compile_definitions(${name}_headers INTERFACE RUSHLIGHT_SELECTION=1)
  if(NOT MSVC)
    target_compile_options(${name}_headers INTERFACE -Wall -Wextra -fno-exceptions -fno-rtti
      -ffunction-sections -fdata-sections -fno-unwind-tables -fno-asynchronous-unwind-tables)
  endif()
  if(avx2 IN_LIST rushlight_isas)
    target_compile_definitions(${name}_headers INTERFACE RUSHLIGHT_X86_ISAS=1)
  elseif(neon IN_LIST rushlight_isas)
    target_compile_definitions(${name}_headers INTERFACE RUSHLIGHT_ARM_ISAS=1)
  endif()
  add_library(${name} STATIC ${generated} ${RUSHLIGHT_SELECTED_SOURCES})
  rushlight_check_isas(${name} "${arg_ISA}")
  if(RUSHLIGHT_SELECTED_ISAS)
    set(rushlight_isas ${RUSHLIGHT_SELECTED_ISAS})
    set(rushlight_dot_isas ${RUSHLIGHT_SELECTED_DOT_ISAS})
  endif()
  set(rushlight_loops_headers ${name}_headers)
  # GCC's vectors as at -O3, without its copies of loops that are unrolled by hand already.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(rushlight_loops_level -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  endif()
  rushlight_configure_selected(${name} "${selection}")
  if(RUSHLIGHT_SELECTED_LOOPS)
    rushlight_add_loops(${name} ${RUSHLIGHT_SELECTED_LOOPS})
  endif()
  if(NOT arg_NO_MODULE)
    rushlight_link_module(${name})
  endif()
  if(arg_C)
    rushlight_configure_c(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUSHLIGHT_SELECTION "${selection}"
                        RUSHLIGHT_HEADERS "${RUSHLIGHT_SELECTED_HEADERS}"
                        RUSHLIGHT_BACKENDS "${RUSHLIGHT_SELECTED_BACKENDS}"
                        RUSHLIGHT_ISAS "${rushlight_isas};${rushlight_dot_isas}"
                        RUSHLIGHT_C "${arg_C}")
endfunction()

# The C interface turns memory that ends into errors by exceptions, which nothing else has.
function(rushlight_configure_c name)
  set(RUSHLIGHT_ROOT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..")
  target_include_directories(${name}_headers INTERFACE "${RUSHLIGHT_ROOT}/cpp/abi")
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${RUSHLIGHT_ROOT}/cpp/c_api>
                             $<BUILD_INTERFACE:${RUSHLIGHT_ROOT}/cpp/abi>)
  foreach(source IN LISTS RUSHLIGHT_SELECTED_SOURCES)
    if(source MATCHES "/cpp/(c_api|llm)/")
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS
                   RUSHLIGHT_VERSION="${RUSHLIGHT_SELECTED_VERSION}")
      if(NOT MSVC)
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS -fexceptions -funwind-tables)
      endif()
    endif()
  endforeach()
endfunction()

# Writes the selection for the arguments of rushlight_add_library.
macro(rushlight_read_programs name selection)
  find_package(Python3 COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    message(FATAL_ERROR "rushlight_add_library(${name}): programs are read by Python 3.10 or later, "
            "and there is none; install it, or set Python3_EXECUTABLE")
  endif()
  set(programs "")
  foreach(program IN LISTS arg_PROGRAMS)
    get_filename_component(program "${program}" ABSOLUTE)
    list(APPEND programs "${program}")
  endforeach()
  set(options --isa "${arg_ISA}")
  if(arg_EMBED)
    list(APPEND options --embed)
  endif()
  if(arg_NO_MODULE)
    list(APPEND options --no-module)
  endif()
  if(arg_C)
    list(APPEND options --c)
  endif()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -m rushlight.selective --name ${name} --folder "${selection}"
            --root "${RUSHLIGHT_ROOT}" ${options} ${programs}
    RESULT_VARIABLE result ERROR_VARIABLE error OUTPUT_VARIABLE error)
  if(error MATCHES "No module named")
    message(FATAL_ERROR "rushlight_add_library(${name}): ${Python3_EXECUTABLE} has no package "
            "rushlight; install it there (pip install rushlight), or set Python3_EXECUTABLE\n${error}")
  elseif(NOT result EQUAL 0)
    message(FATAL_ERROR "rushlight_add_library(${name}): ${error}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${programs})
endmacro()

# The instruction set must be one that this processor's loops are compiled for.
function(rushlight_check_isas name isa)
  if(NOT isa STREQUAL "all" AND NOT isa IN_LIST rushlight_isas
     AND NOT isa IN_LIST rushlight_dot_isas)
    list(JOIN rushlight_isas ", " isas)
    list(JOIN rushlight_dot_isas ", " dot_isas)
    message(FATAL_ERROR "rushlight_add_library(${name}): ISA ${isa} is none that loops are compiled "
            "for on ${CMAKE_SYSTEM_PROCESSOR}: all, ${isas}, ${dot_isas}")
  endif()
endfunction()

# What is not a loop is compiled for size, unless somebody debugs.
function(rushlight_configure_selected name selection)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${name}_headers>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${selection}>
    $<BUILD_INTERFACE:${selection}/include> $<INSTALL_INTERFACE:include>)
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_compile_definitions(${name} PRIVATE RUSHLIGHT_HAS_PORTABLE_KERNELS=1)
  foreach(part TRACING FAILURE_REPORTS)
    if(DEFINED RUSHLIGHT_${part} AND NOT RUSHLIGHT_${part})
      target_compile_definitions(${name} PUBLIC RUSHLIGHT_NO_${part}=1)
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(MSVC)
    return()
  endif()
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Os>)
  # What runs once for each tile of a product is a loop, too.
  set_property(SOURCE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../cpp/kernels/portable/linalg/gemm.cpp"
               APPEND PROPERTY COMPILE_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O2>)
endfunction()

function(rushlight_link_module name)
  if(RUSHLIGHT_THREADS OR NOT DEFINED RUSHLIGHT_THREADS)
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads REQUIRED)
    target_link_libraries(${name} PUBLIC Threads::Threads)
  else()
    target_compile_definitions(${name} PRIVATE RUSHLIGHT_NO_THREADS=1)
  endif()
  target_link_libraries(${name} PUBLIC ${CMAKE_DL_LIBS})
endfunction()

# Installs a library of rushlight_add_library with its headers, its sizes and a package for
# find_package(NAME), whose target is NAME::NAME.
function(rushlight_install_library name)
  set(RUSHLIGHT_ROOT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..")
  get_target_property(selection ${name} RUSHLIGHT_SELECTION)
  get_target_property(headers ${name} RUSHLIGHT_HEADERS)
  set(package "lib/cmake/${name}")
  install(TARGETS ${name} EXPORT ${name} ARCHIVE DESTINATION lib)
  install(EXPORT ${name} NAMESPACE ${name}:: DESTINATION ${package})
  install(FILES "${selection}/${name}.h" DESTINATION include)
  get_target_property(has_c ${name} RUSHLIGHT_C)
  if(has_c)
    set(cpp "${RUSHLIGHT_ROOT}/cpp")
    install(FILES "${cpp}/c_api/rushlight.h" "${cpp}/abi/rl_backend_v1.h" "${cpp}/abi/rl_kernel_v1.h"
            "${cpp}/abi/rl_value_v1.h" DESTINATION include)
  endif()
  foreach(header IN LISTS headers)
    get_filename_component(folder "${header}" DIRECTORY)
    install(FILES "${RUSHLIGHT_ROOT}/cpp/${header}" DESTINATION "include/rushlight/${folder}")
  endforeach()
  get_target_property(linked ${name} INTERFACE_LINK_LIBRARIES)
  set(text "include(CMakeFindDependencyMacro)\n")
  if("Threads::Threads" IN_LIST linked)
    string(APPEND text "set(THREADS_PREFER_PTHREAD_FLAG ON)\nfind_dependency(Threads)\n")
  endif()
  string(APPEND text "include(\"\${CMAKE_CURRENT_LIST_DIR}/${name}.cmake\")\n")
  file(WRITE "${selection}/${name}-config.cmake" "${text}")
  install(FILES "${selection}/${name}-config.cmake" DESTINATION ${package})
endfunction()

# A library that is linked only to be measured: what a program takes from NAME that loads a method
# from memory and runs it. Its map of the linker is FILE.map.
function(rushlight_measure_library name file)
  set(RUSHLIGHT_ROOT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..")
  get_target_property(selection ${name} RUSHLIGHT_SELECTION)
  get_target_property(backends ${name} RUSHLIGHT_BACKENDS)
  set(set_backends "")
  if(backends)
    set(set_backends "options.backends = ${name}::backends();")
  endif()
  configure_file("${RUSHLIGHT_ROOT}/cmake/measured_use.cpp.in" "${selection}/measure/use.cpp" @ONLY)
  # Objects and not the library, of whose members the map would have the file names alone.
  set(objects $<TARGET_OBJECTS:${name}>)
  get_target_property(isas ${name} RUSHLIGHT_ISAS)
  foreach(isa IN LISTS isas)
    if(TARGET ${name}_${isa})
      list(APPEND objects $<TARGET_OBJECTS:${name}_${isa}>)
    endif()
  endforeach()
  set(link -nostdlib -Wl,--gc-sections -Wl,-s "-Wl,-Map=${file}.map")
  if(CMAKE_SYSTEM_NAME STREQUAL "Generic")
    add_executable(${name}_measured "${selection}/measure/use.cpp")
    target_link_options(${name}_measured PRIVATE ${link} -Wl,-e,run_model)
    target_link_libraries(${name}_measured PRIVATE ${objects} -lm -lc -lgcc)
  else()
    add_library(${name}_measured MODULE "${selection}/measure/use.cpp")
    target_link_options(${name}_measured PRIVATE ${link} -Wl,--exclude-libs,ALL)
    target_link_libraries(${name}_measured PRIVATE ${objects} -lgcc)
  endif()
  target_include_directories(${name}_measured PRIVATE
                             $<TARGET_PROPERTY:${name},INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(${name}_measured PRIVATE cxx_std_17)
  target_compile_definitions(${name}_measured PRIVATE
                             $<TARGET_PROPERTY:${name},INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(${name}_measured PRIVATE -fno-exceptions -fno-rtti -Os)
  set_target_properties(${name}_measured PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME "${file}"
                        LIBRARY_OUTPUT_DIRECTORY "" RUNTIME_OUTPUT_DIRECTORY "")
endfunction()
