// SPDX-License-Identifier: Apache-2.0
// run_forked: a function in a child process, so that a failed CHECK ends the child and not the
// test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cairn::sim {

struct ForkedResult {
  bool has_ended_well = false;  // false: a signal, a failed CHECK, or the time limit
  std::string answer;           // what the function returned
  std::string errors;           // what it wrote to its standard error
};

// Calls `function` in a child and waits for it. The child has this process's memory, and nothing
// it changes comes back but the answer. Only where there are no threads.
ForkedResult run_forked(const std::function<std::string()>& function, uint32_t limit_s = 600);

}  // namespace cairn::sim
