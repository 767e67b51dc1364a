# Installs anneal to a fresh prefix, builds an example against what is there, and runs it.
# cmake -D BUILD=.. -D SOURCE=.. -D COMPILER=.. -P install_test.cmake
set(prefix ${BUILD}/install_test)
file(REMOVE_RECURSE ${prefix})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command} ended with ${status}:\n${output}")
  endif()
  message("${output}")
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${prefix}/examples -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${prefix}/examples)
run(${prefix}/examples/spirals)
file(REMOVE_RECURSE ${prefix})
