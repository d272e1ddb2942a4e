// SPDX-License-Identifier: Apache-2.0
// Lines: a byte source as lines of text, in one buffer.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "trace/byte_source.h"

namespace cairn::trace {

class Lines {
 public:
  static constexpr size_t kLineMax = 64UL << 10;

  explicit Lines(std::unique_ptr<ByteSource> source);

  // The next line without its end, valid until the next call; nothing after the last. A line longer
  // than kLineMax is a Mistake.
  Outcome<std::optional<std::string_view>> next();
  // Of the line that next() gave last, from 1.
  uint64_t number() const { return number_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> buffer_;
  size_t taken_ = 0;
  size_t filled_ = 0;
  bool ended_ = false;
  uint64_t number_ = 0;
};

}  // namespace cairn::trace
