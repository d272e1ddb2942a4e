# SPDX-License-Identifier: Apache-2.0
# Run by every build (cmake -P): writes build_info.cc, and touches it only when something in it has
# changed, so that a new commit costs one file and one link.
#   INPUT, OUTPUT, SOURCE_DIR, VERSION, COMPILER, BUILD_TYPE
cmake_minimum_required(VERSION 3.25)

function(git output)
  execute_process(COMMAND git -C ${SOURCE_DIR} ${ARGN} OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(text unknown)
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

set(COMMIT unknown)
git(top rev-parse --show-toplevel)
file(REAL_PATH ${SOURCE_DIR} here)
if(top STREQUAL here)  # a copy without .git may lie inside somebody else's repository
  git(COMMIT rev-parse HEAD)
  git(changed diff --quiet HEAD --)
  if(changed AND NOT COMMIT STREQUAL unknown)
    string(APPEND COMMIT "-dirty")
  endif()
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
