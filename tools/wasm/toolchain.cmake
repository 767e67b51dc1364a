# C++20 to WebAssembly with Debian's packages alone: clang-19, lld-19, wasi-libc and libc++ for
# wasm32. Such a program has one thread and no operating system to speak of; node runs it.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_AR llvm-ar-19 CACHE STRING "")
set(CMAKE_RANLIB llvm-ranlib-19 CACHE STRING "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(CMAKE_CXX_FLAGS_INIT -fwasm-exceptions)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fwasm-exceptions -Wl,-z,stack-size=8388608")
set(CMAKE_EXECUTABLE_SUFFIX_CXX .wasm)
# The second option is for node 18; later ones do without.
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-warnings --experimental-wasi-unstable-preview1
    ${CMAKE_CURRENT_LIST_DIR}/run.mjs)

# What Debian's libc++abi for wasm32, built without exceptions, lacks.
set(ANNEAL_PLATFORM_SOURCES ${CMAKE_CURRENT_LIST_DIR}/libcxxabi.cc)
