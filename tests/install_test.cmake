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
foreach(file LICENSE LICENSE.third-party README.md docs/tutorial.md)
  if(NOT EXISTS ${prefix}/share/doc/anneal/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# Without C++20's library one line says what is missing.
file(WRITE ${prefix}/old.cc "#include <anneal/anneal.h>\n")
execute_process(COMMAND ${COMPILER} -std=c++17 -E -I ${prefix}/include ${prefix}/old.cc
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE error)
string(REGEX MATCHALL "error:[^\n]*" errors "${error}")
list(LENGTH errors count)
if(status EQUAL 0 OR NOT count EQUAL 1 OR NOT error MATCHES "anneal needs C\\+\\+20 with")
  message(FATAL_ERROR "an old compiler hears ${count} errors:\n${error}")
endif()

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${prefix}/examples
    -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${prefix}/examples)
run(${prefix}/examples/spirals)
file(REMOVE_RECURSE ${prefix})
