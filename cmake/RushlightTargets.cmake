# What the targets of the runtime have in common: flags, headers, loops.

# Sources include "rushlight/core/tensor.h": <build>/include/rushlight is a link to cpp/, or a copy
# where links cannot be made.
function(rushlight_link_headers include sources)
  file(MAKE_DIRECTORY "${include}")
  if(NOT EXISTS "${include}/rushlight")
    file(CREATE_LINK "${sources}" "${include}/rushlight" SYMBOLIC RESULT result)
    if(NOT result EQUAL 0)
      message(STATUS "No symbolic links here: headers are copied; configure again after a change")
    endif()
  endif()
  if(NOT IS_SYMLINK "${include}/rushlight")
    file(COPY "${sources}/" DESTINATION "${include}/rushlight"
         FILES_MATCHING PATTERN "*.h")
  endif()
endfunction()

function(rushlight_use_headers target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# For everything of the runtime: no exceptions, no RTTI, one section per function, all warnings.
function(rushlight_configure target)
  rushlight_use_headers(${target})
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections
      $<$<CONFIG:Release>:-O2>)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
  endif()
endfunction()

# The C interface (cpp/c_api): rushlight_c_static, and rushlight_c, which is librushlight.so with the
# ABI's major number in its name. The shared library exports rl_* alone, and has the C++ runtime inside
# of it if that can be linked so: only then does its allocator give the memory of C++ objects, too.
function(rushlight_add_c_api)
  set(folder "${PROJECT_SOURCE_DIR}/cpp/c_api")
  foreach(part MAJOR MINOR)
    file(STRINGS "${folder}/rushlight.h" line REGEX "^#define RL_ABI_${part} ")
    string(REGEX REPLACE "^#define RL_ABI_${part} ([0-9]+)u$" "\\1" ${part} "${line}")
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(rushlight_c_static STATIC ${sources})
  list(REMOVE_ITEM sources "${folder}/new_delete.cpp")
  include(CheckCXXSourceCompiles)
  set(runtime -static-libstdc++ -static-libgcc)
  set(CMAKE_REQUIRED_FLAGS "-fPIC -shared")
  set(CMAKE_REQUIRED_LINK_OPTIONS ${runtime})
  check_cxx_source_compiles("#include <string>\nint f() { return (int)std::string(9, 'a').size(); }"
                            RUSHLIGHT_HAS_STATIC_CXX_RUNTIME)
  if(RUSHLIGHT_HAS_STATIC_CXX_RUNTIME)
    list(APPEND sources "${folder}/new_delete.cpp")
  else()
    set(runtime "")
  endif()
  add_library(rushlight_c SHARED ${sources})
  foreach(library rushlight_c rushlight_c_static)
    rushlight_configure(${library})
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${folder}>
                               $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp/abi>)
    target_compile_definitions(${library} PRIVATE RUSHLIGHT_VERSION="${PROJECT_VERSION}")
    # Exceptions are for memory that ends alone (cpp/llm/memory/guard.h).
    if(NOT MSVC)
      target_compile_options(${library} PRIVATE -fexceptions)
    endif()
  endforeach()
  target_link_libraries(rushlight_c_static PUBLIC rushlight_llm)
  target_link_libraries(rushlight_c PRIVATE $<BUILD_INTERFACE:rushlight_llm>)
  target_compile_definitions(rushlight_c PRIVATE RL_BUILDING_SHARED=1)
  set_target_properties(rushlight_c PROPERTIES OUTPUT_NAME rushlight VERSION ${MAJOR}.${MINOR}
                        SOVERSION ${MAJOR} LINK_DEPENDS "${folder}/exports.map")
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(rushlight_c PRIVATE ${runtime} -Wl,--gc-sections
                        "-Wl,--version-script=${folder}/exports.map")
  endif()
  add_library(rushlight::c ALIAS rushlight_c)
  add_library(rushlight::c_static ALIAS rushlight_c_static)
endfunction()

# Instruction sets that loops files are compiled for besides the plain form.
set(rushlight_isas plain)
set(rushlight_dot_isas "")  # for files dot_*.cpp besides
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$" AND NOT MSVC)
  list(APPEND rushlight_isas avx2 avx512)
  list(APPEND rushlight_dot_isas avx512vnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$" AND NOT MSVC)
  list(APPEND rushlight_isas neon)
  list(APPEND rushlight_dot_isas neondot neoni8mm)
endif()
set(rushlight_flags_plain "")
# Every 64-bit ARM processor has NEON, and compilers use it for plain code, too; what is written for
# it is asked for. GCC's first scheduling loads ahead of tiles that leave no register for that.
set(rushlight_flags_neon -DRL_NEON=1 $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
set(rushlight_flags_avx2 -mavx2 -mfma -mf16c)
set(rushlight_flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
    -mprefer-vector-width=512)
set(rushlight_flags_avx512vnni ${rushlight_flags_avx512} -mavx512vnni)
set(rushlight_flags_neondot ${rushlight_flags_neon} -march=armv8.2-a+dotprod)
set(rushlight_flags_neoni8mm ${rushlight_flags_neon} -march=armv8.2-a+dotprod+i8mm)

# Adds loops files to a library, once per instruction set (see cpp/kernel/loops/dispatch.h). They
# are optimised for speed whatever the build's own level is, except when somebody debugs. Headers and
# definitions are those of rushlight_core, or of the target in rushlight_loops_headers, and the level is
# that in rushlight_loops_level if it is set.
function(rushlight_add_loops library)
  if(NOT rushlight_loops_headers)
    set(rushlight_loops_headers rushlight_core)
  endif()
  if(NOT rushlight_loops_level)
    set(rushlight_loops_level -O3)
  endif()
  set(dot_files ${ARGN})
  list(FILTER dot_files INCLUDE REGEX "/dot_[^/]*$")
  foreach(isa IN LISTS rushlight_isas rushlight_dot_isas)
    set(target ${library}_${isa})
    set(files ${ARGN})
    if(isa IN_LIST rushlight_dot_isas)
      set(files ${dot_files})
    endif()
    if(NOT files)
      continue()
    endif()
    add_library(${target} OBJECT ${files})
    target_link_libraries(${target} PRIVATE ${rushlight_loops_headers})
    target_compile_definitions(${target} PRIVATE RL_ISA=${isa})
    target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=fast
                           "$<$<NOT:$<CONFIG:Debug>>:${rushlight_loops_level}>" ${rushlight_flags_${isa}})
    if(NOT MSVC)  # what a program does not use is not linked
      target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
    endif()
    # UBSan checks the plain form alone: the source is the same, and wide forms compile in half the
    # time without it. AddressSanitizer checks them all.
    if(RUSHLIGHT_SANITIZE AND NOT RUSHLIGHT_SANITIZE STREQUAL "thread" AND NOT isa STREQUAL "plain")
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

if(RUSHLIGHT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(RUSHLIGHT_SANITIZE)
  # vptr needs RTTI, which the runtime is compiled without.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
