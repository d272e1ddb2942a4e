# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: what most sources include is parsed once instead of once for each of them,
# and its templates are instantiated once. That takes time off each of them.
#
# CMake's own target_precompile_headers() names headers and result by absolute paths, and ccache
# would then share nothing between two checkouts. Here compilers are given paths relative to the
# build folder, in which ninja runs them, and ccache goes by a checksum of the headers' text that
# lies beside the result.
#
# Off for arm64, so that a source that forgets an #include does not build there.
if(CMAKE_CROSSCOMPILING OR NOT CMAKE_GENERATOR STREQUAL "Ninja")
  option(CAIRN_PRECOMPILE "parse common headers once" OFF)
else()
  option(CAIRN_PRECOMPILE "parse common headers once" ON)
endif()

# cairn_precompile(NAME HEADER [FLAGS...]): the target cairn_precompiled_NAME makes NAME.pch from
# cmake/precompiled/HEADER, with the flags of this folder and FLAGS.
function(cairn_precompile name header)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  # Compilers refuse a result that was made under other macros than the source that reads it.
  set(definitions)
  foreach(library IN ITEMS fmt::fmt GTest::gtest)
    if(TARGET ${library} AND NOT (library STREQUAL GTest::gtest AND NOT header STREQUAL tests.h))
      get_target_property(macros ${library} INTERFACE_COMPILE_DEFINITIONS)
      get_target_property(more ${library} INTERFACE_COMPILE_OPTIONS)
      if(macros)
        list(TRANSFORM macros PREPEND -D)
        list(APPEND definitions ${macros})
      endif()
      if(more)
        list(APPEND definitions ${more})
      endif()
    endif()
  endforeach()
  file(RELATIVE_PATH sources ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/src)
  set(command ${CMAKE_CXX_COMPILER} ${flags} ${definitions} -std=c++${CMAKE_CXX_STANDARD} ${options}
      ${ARGN} -I${sources} -x c++-header)
  set(input precompiled/${header})
  set(output precompiled/${name}.pch)
  foreach(each IN ITEMS code.h json.h tests.h)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/precompiled/${each} precompiled/${each} COPYONLY)
  endforeach()
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/${output}
    COMMAND ${command} -Xclang -fno-pch-timestamp -fpch-instantiate-templates -MD -MF ${output}.d
            -MT ${output} -o ${output} ${input}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output}.sum -P
            ${PROJECT_SOURCE_DIR}/cmake/CairnTextSum.cmake -- ${command} -E -P ${input}
    DEPENDS ${PROJECT_BINARY_DIR}/${input} ${PROJECT_SOURCE_DIR}/cmake/CairnTextSum.cmake
    DEPFILE ${PROJECT_BINARY_DIR}/${output}.d
    BYPRODUCTS ${PROJECT_BINARY_DIR}/${output}.sum
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    COMMENT "Precompiling headers for ${name}"
    VERBATIM)
  add_custom_target(cairn_precompiled_${name} DEPENDS ${PROJECT_BINARY_DIR}/${output})
endfunction()

# cairn_use_precompiled(NAME TARGET...)
function(cairn_use_precompiled name)
  foreach(target IN LISTS ARGN)
    add_dependencies(${target} cairn_precompiled_${name})
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include-pch precompiled/${name}.pch>")
  endforeach()
endfunction()

# cairn_precompile_folder(FOLDER): every library and program of a folder and those below it, but for
# libraries that others load, which are compiled otherwise. Libraries of tests take those of tests;
# those whose sources write and read JSON (CAIRN_JSON_TARGETS) take that as well.
function(cairn_precompile_folder folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(NOT type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$" OR target MATCHES "^cairn_precompiled_")
      continue()
    endif()
    if(folder MATCHES "/fuzz$")
      # What the fuzzer does not look into is compiled otherwise.
      get_target_property(options ${target} COMPILE_OPTIONS)
      if(options MATCHES "fuzzer-no-link")
        cairn_use_precompiled(fuzz ${target})
      endif()
    elseif(libraries MATCHES "GTest::")
      cairn_use_precompiled(tests ${target})
    elseif(target IN_LIST CAIRN_JSON_TARGETS)
      cairn_use_precompiled(json ${target})
    else()
      cairn_use_precompiled(code ${target})
    endif()
  endforeach()
  foreach(below IN LISTS folders)
    cairn_precompile_folder(${below})
  endforeach()
endfunction()
