// SPDX-License-Identifier: Apache-2.0
#include "door/resp/reply_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr size_t kFormatBytes = 4;  // "txt:"

std::unexpected<Error> broken(const char* what) { return fail(Errc::kCorrupt, what); }

}  // namespace

Result<bool> ReplyDecoder::take(std::string_view& bytes, Value& into) {
  for (;;) {
    Result<bool> whole = in_bulk_ ? take_bulk(bytes) : take_line(bytes);
    if (!whole || !*whole) return whole;
    if (!in_bulk_) {
      whole = understand();
      line_.clear();
      if (!whole) return whole;
      if (!*whole) continue;
    }
    in_bulk_ = false;
    if (close_value(into)) return true;
  }
}

Result<bool> ReplyDecoder::take_line(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const size_t more = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line_.size() + more > kLineBytesMax)
    return fail(Errc::kLimit, "a line of a reply is too long");
  line_ += bytes.substr(0, more);
  bytes.remove_prefix(more);
  if (end == std::string_view::npos) return false;
  if (!line_.ends_with(kLineEnd)) return broken("a line of a reply does not end as it should");
  line_.resize(line_.size() - kLineEnd.size());
  if (line_.empty()) return broken("a reply is an empty line");
  bytes_ += line_.size() + sizeof(Value);
  if (bytes_ > bytes_max_) return fail(Errc::kLimit, "a reply is too long");
  return true;
}

Result<bool> ReplyDecoder::take_bulk(std::string_view& bytes) {
  const size_t more = std::min<size_t>(bulk_left_, bytes.size());
  value_.text += bytes.substr(0, more);
  bytes.remove_prefix(more);
  bulk_left_ -= more;
  if (bulk_left_ > 0) return false;
  if (!value_.text.ends_with(kLineEnd)) return broken("a bulk does not end as it should");
  value_.text.resize(value_.text.size() - kLineEnd.size());
  if (value_.marker == Marker::kVerbatim) {
    if (value_.text.size() < kFormatBytes) return broken("a verbatim text has no format");
    value_.text.erase(0, kFormatBytes);
  }
  return true;
}

Result<bool> ReplyDecoder::understand() {
  const auto marker = static_cast<Marker>(line_.front());
  const std::string_view text = std::string_view(line_).substr(1);
  value_ = {.marker = marker, .text = {}, .integer = 0, .items = {}};
  switch (marker) {
    case Marker::kStatus:
    case Marker::kError:
    case Marker::kReal:
    case Marker::kBigNumber:
      value_.text = text;
      return true;
    case Marker::kInteger: {
      const std::optional<int64_t> number = parse_integer(text);
      if (!number) return broken("an integer is no number");
      value_.integer = *number;
      return true;
    }
    case Marker::kNull:
      return true;
    case Marker::kBoolean:
      if (text != "t" && text != "f") return broken("a boolean is neither true nor false");
      value_.integer = text == "t" ? 1 : 0;
      return true;
    case Marker::kBulk:
    case Marker::kVerbatim:
    case Marker::kArray:
    case Marker::kMap:
    case Marker::kSet:
    case Marker::kPush:
      return understand_size(marker, text);
    case Marker::kAttribute:
      break;
  }
  return broken("a reply of no type that is known");
}

Result<bool> ReplyDecoder::understand_size(Marker marker, std::string_view text) {
  const std::optional<int64_t> size = parse_integer(text);
  if (!size || *size < -1) return broken("a size is no number");
  const bool is_text = marker == Marker::kBulk || marker == Marker::kVerbatim;
  if (*size == -1) {
    if (!is_text && marker != Marker::kArray) return broken("a size is no number");
    value_.marker = Marker::kNull;
    return true;
  }
  if (!is_text) return open_aggregate(marker, *size);
  if (static_cast<uint64_t>(*size) > bytes_max_ - bytes_) {
    return fail(Errc::kLimit, "a reply is too long");
  }
  bytes_ += static_cast<uint64_t>(*size);
  bulk_left_ = static_cast<uint64_t>(*size) + kLineEnd.size();
  in_bulk_ = true;
  return false;
}

Result<bool> ReplyDecoder::open_aggregate(Marker marker, int64_t count) {
  if (count == 0) return true;
  if (open_.size() == kDepthMax) return fail(Errc::kLimit, "a reply is too deep");
  const uint64_t items =
      marker == Marker::kMap ? 2 * static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  open_.push_back({.value = std::move(value_), .missing = items});
  return false;
}

bool ReplyDecoder::close_value(Value& into) {
  while (!open_.empty()) {
    Open& outer = open_.back();
    outer.value.items.push_back(std::move(value_));
    if (--outer.missing > 0) return false;
    value_ = std::move(outer.value);
    open_.pop_back();
  }
  into = std::move(value_);
  value_ = {};
  bytes_ = 0;
  return true;
}

}  // namespace cairn::door::resp
