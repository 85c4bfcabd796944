# Installs `build` under `work`, builds `source` with that, and runs it on `files`. Also configures
# `source` with all of `root` as a part of it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

function(configure folder)
  run(${CMAKE_COMMAND} -S ${source} -B ${work}/${folder} -G ${generator}
      -D CMAKE_MAKE_PROGRAM=${make} -D CMAKE_CXX_COMPILER=${compiler}
      -D CMAKE_TOOLCHAIN_FILE=${toolchain} ${ARGN})
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/build ${work}/part)
run(${CMAKE_COMMAND} --install ${build} --component runtime --prefix ${work}/prefix)
configure(build -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${emulator} ${work}/build/consumer with ${files})
run(${emulator} ${work}/build/consumer_small without ${files})
configure(part -D RUSHLIGHT_SOURCE=${root})
