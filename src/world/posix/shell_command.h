// SPDX-License-Identifier: Apache-2.0
// ShellCommand: a command of the user's in a process of its own, which nobody waits for.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace cairn::posix {

// Run by /bin/sh in a process group of its own. It reads `input` to its end, which lies in memory:
// one that does not read holds nobody up. What it prints goes to this process's stderr. It has no
// other descriptors, and none of this process's signals blocked or ignored.
class ShellCommand {
 public:
  ShellCommand() = default;
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;
  // One that runs is killed.
  ~ShellCommand();

  // kInvalid: one runs; else what the kernel says.
  Result<void> start(const std::string& command, std::string_view input);
  bool is_started() const { return child_ > 0; }
  // The exit status of the one that was started, 128 and more by a signal; it is forgotten then.
  // None: it runs.
  std::optional<int> ended();
  // It and all of its group.
  void kill();

 private:
  pid_t child_ = 0;
};

}  // namespace cairn::posix
