// SPDX-License-Identifier: Apache-2.0
// ByteSource: bytes of a trace in order, pulled as they are needed, so that a trace of any size
// takes the memory of a few buffers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "trace/record.h"

namespace cairn::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least one byte and at most what `into` holds (which is not empty); 0 at the end.
  virtual Outcome<size_t> read(MutableBytes into) = 0;
};

// Text that is in memory already. Borrows nothing.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  Outcome<size_t> read(MutableBytes into) override;

 private:
  std::string text_;
  size_t taken_ = 0;
};

// The same bytes, unpacked if they are a gzip file (of one or several members).
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed);

}  // namespace cairn::trace
