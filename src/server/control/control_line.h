// SPDX-License-Identifier: Apache-2.0
// LineReader: lines of bounded length from a stream.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "env/stream.h"
#include "task/task.h"

namespace cairn::server {

class LineReader {
 public:
  // The stream outlives it.
  LineReader(env::Stream& stream, size_t line_max) : stream_(stream), line_max_(line_max) {}
  // The next line without its end. kClosed: there is none; kLimit: it is too long, and nothing
  // after it can be read. Else as Stream::read.
  task::Task<Result<std::string>> next(task::CancelToken token);

 private:
  env::Stream& stream_;
  size_t line_max_;
  std::string have_;  // received and not yet given
};

}  // namespace cairn::server
