# SPDX-License-Identifier: Apache-2.0
# Builds for arm64 on another machine, with clang and the sysroot that tools/arm64_sysroot made;
# tests run under qemu's user emulation.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triple aarch64-linux-gnu)

if(NOT CAIRN_SYSROOT)
  set(CAIRN_SYSROOT ${CMAKE_BINARY_DIR}/sysroot)
endif()
# The compiler tests are projects of their own, in folders of their own.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CAIRN_SYSROOT)
if(CAIRN_SYSROOT MATCHES " ")
  message(FATAL_ERROR
    "pkg-config cannot read libraries from a path with a space in it: ${CAIRN_SYSROOT}.\n"
    "Next: set CAIRN_BUILD_DIR to a folder without one.")
endif()
if(NOT EXISTS ${CAIRN_SYSROOT}/.complete)
  message(FATAL_ERROR
    "There are no arm64 libraries in ${CAIRN_SYSROOT}.\n"
    "Next: run './cairn test --preset arm64', which fetches them; or "
    "'tools/arm64_sysroot ${CAIRN_SYSROOT}' and configure again.")
endif()

foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${triple})
endforeach()
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_SYSROOT ${CAIRN_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
# Debian's ld knows its own machine alone; the compiler tests come before CairnCompiler.cmake.
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld)
endforeach()

# Libraries come from the sysroot alone, programs from this machine alone.
set(CMAKE_FIND_ROOT_PATH ${CAIRN_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CAIRN_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CAIRN_SYSROOT}/usr/lib/${triple}/pkgconfig:${CAIRN_SYSROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CAIRN_SYSROOT})
