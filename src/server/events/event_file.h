// SPDX-License-Identifier: Apache-2.0
// EventFile: events in a file of a state folder, a line each.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "server/events/event_log.h"
#include "world/posix/fd.h"

namespace cairn::server {

// A line is handed to the kernel when it is appended: it is there after the process was killed, and
// may be gone, or torn, after the machine lost its power. Both calls take as long as a write to the
// page cache, and replace() as long as the disk.
class EventFile final : public EventKeeper {
 public:
  // Of a file that is longer than this the end is read.
  EventFile(std::string path, size_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}

  // Empty when there is no such file, or something else is in its place.
  std::string found() override;
  Attempt<void> append(std::string_view line) override;
  Attempt<void> replace(std::string_view lines) override;

 private:
  Attempt<void> open();

  const std::string path_;
  const size_t bytes_max_;
  posix::Fd file_;
};

}  // namespace cairn::server
