# SPDX-License-Identifier: Apache-2.0
# Which compiler builds Cairn, and with which flags.

option(CAIRN_TESTS "build the tests" ON)
option(CAIRN_FUZZ "build the libFuzzer targets even without the tests" OFF)
set(CAIRN_SANITIZE "" CACHE STRING "sanitizers, as in -fsanitize=")

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR
    "Cairn is built with clang 19 or newer; this is ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER}).\n"
    "g++ 12 miscompiles common co_await forms (ARCHITECTURE.md, 'Compiler').\n"
    "Next: run ./cairn, which installs clang-19 and selects it; or 'apt-get install clang-19 "
    "lld-19' and configure an empty build folder with -DCMAKE_C_COMPILER=clang-19 "
    "-DCMAKE_CXX_COMPILER=clang++-19.")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers (CairnPrecompiled.cmake) are known by the checksum beside them, and no
  # source changes what they mean. Checkouts share what they compile: paths are relative to the
  # build folder.
  set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# CHECK stays on in release; -O2 with frame pointers so that profiles have stacks.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
add_compile_options(-Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers)
add_compile_options(-ffile-compilation-dir=.)  # what is compiled says nothing of where
add_link_options(-fuse-ld=lld)

# Models compute with doubles, and a seed must give the same run on every machine: no a * b + c in
# one rounding. Plain x86-64 has no instruction for it, so nothing changes there.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  add_compile_options(-ffp-contract=off)
endif()

if(CAIRN_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")
  add_compile_options(-fsanitize=${CAIRN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CAIRN_SANITIZE})
endif()
