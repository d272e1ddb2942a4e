// SPDX-License-Identifier: Apache-2.0
// ReplyDecoder: a server's bytes, in pieces of any size, as replies. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "door/resp/wire_format.h"

namespace cairn::door::resp {

// A reply of either version. Nulls of the second version are kNull too; a map has its keys and
// values in turn.
struct Value {
  Marker marker = Marker::kNull;
  std::string text;     // kStatus, kError, kBulk, kReal, kBigNumber, kVerbatim (without its format)
  int64_t integer = 0;  // kInteger; kBoolean: 0 or 1
  std::vector<Value> items;

  bool is_error() const { return marker == Marker::kError; }
  friend bool operator==(const Value&, const Value&) = default;
};

// Memory is taken for what has arrived, whatever was announced.
class ReplyDecoder {
 public:
  static constexpr size_t kDepthMax = 32;

  // Takes from the front of `bytes`. True: `into` is the next reply. False: all bytes were taken,
  // and more are needed. kCorrupt: it is no RESP, which is final; kLimit: a reply of more than
  // `bytes_max`, likewise.
  Result<bool> take(std::string_view& bytes, Value& into);

  explicit ReplyDecoder(uint64_t bytes_max = 1 << 30) : bytes_max_(bytes_max) {}

 private:
  // An aggregate, and how many of its items are missing.
  struct Open {
    Value value;
    uint64_t missing = 0;
  };

  // False: bytes are missing.
  Result<bool> take_line(std::string_view& bytes);
  Result<bool> take_bulk(std::string_view& bytes);
  // What a whole line means. True: `value_` is whole.
  Result<bool> understand();
  Result<bool> understand_size(Marker marker, std::string_view text);
  Result<bool> open_aggregate(Marker marker, int64_t count);
  // Puts the whole value_ where it belongs. True: that was the last of the reply.
  bool close_value(Value& into);

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;  // of this reply so far
  std::string line_;
  bool in_bulk_ = false;
  uint64_t bulk_left_ = 0;  // with the line's end
  Value value_;
  std::vector<Open> open_;
};

}  // namespace cairn::door::resp
