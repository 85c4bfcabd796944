# Installs `build` under `work`, builds `source` against that, and runs it on `file`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/build)
run(${CMAKE_COMMAND} --install ${build} --component runtime --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator} -D CMAKE_MAKE_PROGRAM=${make}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${work}/prefix
    -D CMAKE_TOOLCHAIN_FILE=${toolchain})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${emulator} ${work}/build/consumer ${file})
