// SPDX-License-Identifier: Apache-2.0
// BufferLines: a core's buffers with a line for each class of sizes of those who wait.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/buffer.h"
#include "env/env.h"
#include "stream/buffer_queue.h"
#include "task/cancel.h"

namespace cairn::stream {

// Who needs little never waits behind who needs much. The other way round holds too: small requests
// take large buffers only when theirs are out. Calls as those of BufferQueue.
class BufferLines {
 public:
  // Lines for `pool`, which outlives them.
  BufferLines(env::Env& env, BufferPool& pool)
      : lines_{{{env, pool}, {env, pool}, {env, pool}, {env, pool}, {env, pool}}} {}

  BufferQueue::Wait<Buffer> allocate(size_t size, Duration timeout, task::CancelToken token) {
    return line_of(size).allocate(size, timeout, token);
  }
  BufferQueue::Wait<BufferPair> allocate_pair(std::array<size_t, 2> sizes, Duration timeout,
                                              task::CancelToken token) {
    return line_of(std::max(sizes[0], sizes[1])).allocate_pair(sizes, timeout, token);
  }
  std::optional<Buffer> try_allocate(size_t size) { return line_of(size).try_allocate(size); }
  void released() {
    for (BufferQueue& line : lines_) line.released();
  }

 private:
  // What goes into each line but the last; the classes of a core's pool.
  static constexpr std::array<size_t, 4> kSizes = {4096, 16384, 65536, 262144};

  BufferQueue& line_of(size_t size) {
    size_t i = 0;
    while (i < kSizes.size() && size > kSizes[i]) ++i;
    return lines_[i];
  }

  std::array<BufferQueue, kSizes.size() + 1> lines_;
};

}  // namespace cairn::stream
