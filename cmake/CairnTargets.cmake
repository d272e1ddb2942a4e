# SPDX-License-Identifier: Apache-2.0
# How a folder becomes a library and its *_test.cc files become tests.

# cairn_folder(PATH [DEPENDS lib...] [TEST_DEPENDS lib...] [WITHOUT file...])
#   NAME being the last part of PATH: library cairn_NAME from PATH/**/*.cc without tests, and the
#   test program NAME_test from PATH/**/*_test.cc, each of whose facts is a ctest test with the
#   label NAME. TEST_DEPENDS is what tests alone use, such as the worlds they run in; WITHOUT
#   names sources, relative to PATH, that belong to another library.
function(cairn_folder path)
  cmake_parse_arguments(ARG "" "" "DEPENDS;TEST_DEPENDS;WITHOUT" ${ARGN})
  get_filename_component(name ${path} NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${path}/*.cc)
  list(TRANSFORM ARG_WITHOUT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${path}/)
  list(REMOVE_ITEM sources ${ARG_WITHOUT} "")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(cairn_${name} STATIC ${sources})
    target_include_directories(cairn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(cairn_${name} PUBLIC ${ARG_DEPENDS})
  else()
    add_library(cairn_${name} INTERFACE)
    target_include_directories(cairn_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(cairn_${name} INTERFACE ${ARG_DEPENDS})
  endif()
  if(CAIRN_TESTS AND tests)
    cairn_test(${name}_test LABEL ${name} SOURCES ${tests}
               DEPENDS cairn_${name} ${ARG_TEST_DEPENDS})
  endif()
endfunction()

# cairn_test(PROGRAM LABEL label SOURCES file... DEPENDS lib...)
function(cairn_test program)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${program} ${ARG_SOURCES})
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})  # testing/
  target_link_libraries(${program} PRIVATE ${ARG_DEPENDS} GTest::gtest_main)
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
endfunction()
