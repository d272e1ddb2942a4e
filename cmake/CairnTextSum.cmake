# SPDX-License-Identifier: Apache-2.0
# Run as cmake -DOUTPUT=file -P CairnTextSum.cmake -- COMMAND...: writes a checksum of what a
# command prints.
cmake_minimum_required(VERSION 3.25)

set(command)
set(found FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(found)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(found TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(SHA256 sum "${text}")
file(WRITE ${OUTPUT} "${sum}\n")
