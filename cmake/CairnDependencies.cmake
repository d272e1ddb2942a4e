# SPDX-License-Identifier: Apache-2.0
# Everything from outside. Debian names are in packages.txt.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ROCKSDB REQUIRED IMPORTED_TARGET rocksdb)
# Spreads `cairn plan snis` over machines; everything else works without it.
pkg_check_modules(MPI QUIET IMPORTED_TARGET ompi-c)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(CAIRN_TESTS OR CAIRN_FUZZ)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
