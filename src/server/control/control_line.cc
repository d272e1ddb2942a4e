// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_line.h"

#include <array>
#include <span>

namespace cairn::server {

task::Task<Result<std::string>> LineReader::next(task::CancelToken token) {
  std::array<char, 4096> room;
  size_t searched = 0;
  for (;;) {
    const size_t end = have_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = have_.substr(0, end);
      have_.erase(0, end + 1);
      co_return line;
    }
    searched = have_.size();
    if (searched > line_max_) co_return fail(Errc::kLimit, "the line is too long");
    Result<size_t> got = co_await stream_.read(std::as_writable_bytes(std::span(room)), token);
    if (!got) co_return fail(got.error());
    if (*got == 0) co_return fail(Errc::kClosed, "no line follows");
    have_.append(room.data(), *got);
  }
}

}  // namespace cairn::server
