# SPDX-License-Identifier: Apache-2.0
# Run by every build (cmake -P): writes build_info.cc, and touches it only when something in it has
# changed, so that a new commit costs one file and one link.
#   INPUT, OUTPUT, SOURCE_DIR, VERSION, COMPILER, BUILD_TYPE
set(COMMIT unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT ${head})
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} diff --quiet HEAD --
                    ERROR_QUIET RESULT_VARIABLE changed)
    if(changed)
      string(APPEND COMMIT "-dirty")
    endif()
  endif()
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
