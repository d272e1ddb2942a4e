// SPDX-License-Identifier: Apache-2.0
#include "http/response.h"

#include <algorithm>
#include <string_view>

#include "http/field_text.h"

namespace cairn::http {

namespace {

bool read_content_range(std::string_view text, ContentRange& range) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (text.size() < kUnit.size() || !same_word(text.substr(0, kUnit.size()), kUnit)) return false;
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) {
    return false;
  }
  const std::string_view total = text.substr(slash + 1);
  if (total != "*" && !read_number(total, range.total.emplace())) return false;
  return read_number(text.substr(kUnit.size(), dash - kUnit.size()), range.first) &&
         read_number(text.substr(dash + 1, slash - dash - 1), range.last) &&
         range.first <= range.last && (!range.total || range.last < *range.total);
}

// W/"..." or "...": what a condition may repeat.
bool is_etag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  return text.size() >= 2 && text.size() <= kEtagMax && text.front() == '"' && text.back() == '"' &&
         std::ranges::all_of(text.substr(1, text.size() - 2),
                             [](char c) { return static_cast<uint8_t>(c) > 0x20 && c != '"'; });
}

// What the fields of one head say so far.
class HeadReader {
 public:
  explicit HeadReader(ResponseHead& head) : head_(head) {}

  // "HTTP/1.1 206 Partial Content"
  Result<void> status_line(std::string_view line) {
    if (!line.starts_with("HTTP/")) return fail(Errc::kCorrupt, "the server does not speak HTTP");
    if (!line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.0 ")) {
      return fail(Errc::kUnsupported, "the server speaks another version of HTTP than 1.1");
    }
    head_.keep_alive = line[7] == '1';
    uint64_t status = 0;
    const bool is_right = line.size() >= 12 && read_number(line.substr(9, 3), status) &&
                          status >= 100 && (line.size() == 12 || line[12] == ' ');
    if (!is_right) return fail(Errc::kCorrupt, "an HTTP status line that makes no sense");
    head_.status = static_cast<uint16_t>(status);
    return {};
  }

  Result<void> field(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
        !is_printable(line)) {
      return fail(Errc::kCorrupt, "an HTTP field that makes no sense");
    }
    return known_field(line.substr(0, colon), trim(line.substr(colon + 1)));
  }

  // Two ways to end a body are two bodies: nobody knows which is meant.
  Result<void> finish() const {
    if (head_.is_chunked && head_.length) {
      return fail(Errc::kCorrupt, "an HTTP body with two lengths");
    }
    return {};
  }

 private:
  Result<void> known_field(std::string_view name, std::string_view value) {
    if (same_word(name, "content-length")) {
      uint64_t length = 0;
      if (!read_number(value, length) || (head_.length && *head_.length != length)) {
        return fail(Errc::kCorrupt, "an HTTP length that makes no sense");
      }
      head_.length = length;
    } else if (same_word(name, "transfer-encoding")) {
      if (!same_word(value, "chunked") || head_.is_chunked) {
        return fail(Errc::kUnsupported, "an HTTP transfer encoding other than chunked");
      }
      head_.is_chunked = true;
    } else if (same_word(name, "content-encoding")) {
      if (!same_word(value, "identity")) {
        return fail(Errc::kUnsupported, "the server encodes objects: switch compression off there");
      }
    } else if (same_word(name, "connection")) {
      if (same_word(value, "close")) head_.keep_alive = false;
      if (same_word(value, "keep-alive")) head_.keep_alive = true;
    } else if (same_word(name, "etag")) {
      if (is_etag(value)) head_.etag = value;
    } else if (same_word(name, "content-range") && head_.status == 206) {
      ContentRange range;
      if (head_.range || !read_content_range(value, range)) {
        return fail(Errc::kCorrupt, "an HTTP range that makes no sense");
      }
      head_.range = range;
    }
    return {};
  }

  ResponseHead& head_;
};

}  // namespace

Result<std::optional<ResponseHead>> parse_head(Bytes bytes) {
  std::string_view text = as_text(bytes.first(std::min(bytes.size(), kHeadMax)));
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() >= kHeadMax) return fail(Errc::kCorrupt, "an HTTP head without an end");
    return std::nullopt;
  }
  ResponseHead head{.size = end + 4};
  text = text.substr(0, end);
  HeadReader reader(head);
  for (bool is_first = true;; is_first = false) {
    const size_t length = std::min(text.find("\r\n"), text.size());
    const std::string_view line = text.substr(0, length);
    const Result<void> read = is_first ? reader.status_line(line) : reader.field(line);
    if (!read) return fail(read.error());
    if (length == text.size()) break;
    text.remove_prefix(length + 2);
  }
  if (const Result<void> done = reader.finish(); !done) return fail(done.error());
  return head;
}

Result<Bytes> ChunkedBody::take(Bytes& from) {
  while (!from.empty() && !is_over()) {
    if (state_ == State::kData) {
      const Bytes data = from.first(std::min<uint64_t>(left_, from.size()));
      from = from.subspan(data.size());
      left_ -= data.size();
      if (left_ == 0) state_ = State::kDataReturn;
      return data;
    }
    if (!step(std::to_integer<uint8_t>(from[0]))) {
      return fail(Errc::kCorrupt, "an HTTP chunk that makes no sense");
    }
    from = from.subspan(1);
  }
  return Bytes();
}

bool ChunkedBody::step_size(uint8_t byte) {
  const char c = lower(static_cast<char>(byte));
  const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  if (is_digit) {
    left_ = left_ * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    return count(15);
  }
  if (counted_ == 0) return false;
  if (c != '\r' && c != ';' && c != ' ' && c != '\t') return false;
  state_ = c == '\r' ? State::kSizeEnd : State::kExtension;
  counted_ = 0;
  return true;
}

bool ChunkedBody::step(uint8_t byte) {
  switch (state_) {
    case State::kSize:
      return step_size(byte);
    case State::kExtension:
      if (byte == '\r') state_ = State::kSizeEnd;
      return byte != '\n' && count(kChunkExtensionMax);
    case State::kSizeEnd:
      state_ = left_ == 0 ? State::kTrailer : State::kData;
      counted_ = 0;
      return byte == '\n';
    case State::kDataReturn:
      state_ = State::kDataEnd;
      return byte == '\r';
    case State::kDataEnd:
      state_ = State::kSize;
      return byte == '\n';
    case State::kTrailer:
      state_ = byte == '\r' ? State::kLastEnd : State::kTrailerLine;
      return byte != '\n' && count(kTrailersMax);
    case State::kTrailerLine:
      if (byte == '\r') state_ = State::kTrailerLineEnd;
      return byte != '\n' && count(kTrailersMax);
    case State::kTrailerLineEnd:
      state_ = State::kTrailer;
      return byte == '\n';
    case State::kLastEnd:
      state_ = State::kOver;
      return byte == '\n';
    case State::kData:
    case State::kOver:
      break;
  }
  return false;
}

}  // namespace cairn::http
