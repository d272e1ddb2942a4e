// SPDX-License-Identifier: Apache-2.0
#include "http/request.h"

#include <algorithm>

#include "http/field_text.h"

namespace cairn::http {

namespace {

constexpr size_t kMethodMax = 32;
constexpr std::string_view kEnd = "\r\n";
// The longest first line there can be: METHOD TARGET HTTP/1.1
constexpr size_t kFirstLineMax = kMethodMax + 1 + kTargetMax + 9;

using Read = std::expected<void, Status>;
Read refuse(Status status) { return std::unexpected(status); }

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// What the lines of one head say so far.
class RequestReader {
 public:
  explicit RequestReader(RequestHead& head) : head_(head) {}

  // "GET /metrics?name=x HTTP/1.1"
  Read first_line(std::string_view line) {
    const size_t space = line.find(' ');
    const size_t last = line.rfind(' ');
    if (space == line.npos || space == last) return refuse(Status::kBadRequest);
    const std::string_view method = line.substr(0, space);
    const std::string_view version = line.substr(last + 1);
    if (!is_token(method) || !version.starts_with("HTTP/")) return refuse(Status::kBadRequest);
    if (method.size() > kMethodMax) return refuse(Status::kNotImplemented);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
      return refuse(Status::kVersionNotSupported);
    }
    is_1_1_ = version == "HTTP/1.1";
    head_.keep_alive = is_1_1_;
    head_.method = method;
    return target(line.substr(space + 1, last - space - 1));
  }

  Read field(std::string_view line) {
    if (++fields_ > kFieldsMax) return refuse(Status::kHeadTooLarge);
    const size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon)) || !is_printable(line)) {
      return refuse(Status::kBadRequest);
    }
    return known_field(line.substr(0, colon), trim(line.substr(colon + 1)));
  }

  // A request without a host is for nobody (RFC 9112, 3.2); one with two ends may be two requests.
  [[nodiscard]] Read finish() const {
    if (hosts_ > 1 || (is_1_1_ && hosts_ == 0)) return refuse(Status::kBadRequest);
    if (is_encoded_ && length_) return refuse(Status::kBadRequest);
    head_.has_body = is_encoded_ || length_.value_or(0) > 0;
    return {};
  }

 private:
  Read target(std::string_view text) {
    if (text.size() > kTargetMax) return refuse(Status::kUriTooLong);
    if (!is_visible(text)) return refuse(Status::kBadRequest);
    // To a proxy a client names the host here too; a server takes that as well.
    constexpr std::string_view kScheme = "http://";
    if (text.size() > kScheme.size() && same_word(text.substr(0, kScheme.size()), kScheme)) {
      const size_t slash = text.find('/', kScheme.size());
      text = slash == text.npos ? "/" : text.substr(slash);
    }
    if (!text.starts_with('/') && text != "*") return refuse(Status::kBadRequest);
    text = text.substr(0, text.find('#'));
    const size_t question = text.find('?');
    head_.path = text.substr(0, question);
    if (question != text.npos) head_.query = text.substr(question + 1);
    return {};
  }

  Read known_field(std::string_view name, std::string_view value) {
    if (same_word(name, "host")) {
      ++hosts_;
      head_.host = value;
    } else if (same_word(name, "authorization")) {
      // Of two only one would be judged.
      if (has_authorization_) return refuse(Status::kBadRequest);
      has_authorization_ = true;
      head_.authorization = value;
    } else if (same_word(name, "content-length")) {
      uint64_t length = 0;
      if (!read_number(value, length) || (length_ && *length_ != length)) {
        return refuse(Status::kBadRequest);
      }
      length_ = length;
    } else if (same_word(name, "transfer-encoding")) {
      is_encoded_ = true;
    } else if (same_word(name, "connection")) {
      if (same_word(value, "close")) head_.keep_alive = false;
      if (same_word(value, "keep-alive")) head_.keep_alive = true;
    }
    return {};
  }

  RequestHead& head_;
  bool is_1_1_ = true;
  bool is_encoded_ = false;
  size_t fields_ = 0;
  size_t hosts_ = 0;
  bool has_authorization_ = false;
  std::optional<uint64_t> length_;
};

// A head that is not all there may be too long already.
RequestParsed judge_part(std::string_view text, size_t all) {
  if (text.find(kEnd) == text.npos && text.size() > kFirstLineMax + 1) {
    return std::unexpected(Status::kUriTooLong);
  }
  if (all >= kRequestHeadMax) return std::unexpected(Status::kHeadTooLarge);
  return std::nullopt;
}

}  // namespace

std::string_view reason(Status status) {
  switch (status) {
    case Status::kOk:
      return "OK";
    case Status::kBadRequest:
      return "Bad Request";
    case Status::kUnauthorized:
      return "Unauthorized";
    case Status::kForbidden:
      return "Forbidden";
    case Status::kNotFound:
      return "Not Found";
    case Status::kMethodNotAllowed:
      return "Method Not Allowed";
    case Status::kRequestTimeout:
      return "Request Timeout";
    case Status::kContentTooLarge:
      return "Content Too Large";
    case Status::kUriTooLong:
      return "URI Too Long";
    case Status::kTooManyRequests:
      return "Too Many Requests";
    case Status::kHeadTooLarge:
      return "Request Header Fields Too Large";
    case Status::kNotImplemented:
      return "Not Implemented";
    case Status::kUnavailable:
      return "Service Unavailable";
    case Status::kVersionNotSupported:
      return "HTTP Version Not Supported";
  }
  return "";
}

RequestParsed parse_request(Bytes bytes) {
  std::string_view text = as_text(bytes.first(std::min(bytes.size(), kRequestHeadMax)));
  // Some clients send the end of a line too many after a request (RFC 9112, 2.2).
  const size_t skipped = text.starts_with(kEnd) ? kEnd.size() : 0;
  text.remove_prefix(skipped);
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos) return judge_part(text, bytes.size());
  RequestHead head{.size = skipped + end + 4};
  text = text.substr(0, end);
  RequestReader reader(head);
  for (bool is_first = true;; is_first = false) {
    const size_t length = std::min(text.find(kEnd), text.size());
    if (is_first && length > kFirstLineMax) return std::unexpected(Status::kUriTooLong);
    const std::string_view line = text.substr(0, length);
    const Read read = is_first ? reader.first_line(line) : reader.field(line);
    if (!read) return std::unexpected(read.error());
    if (length == text.size()) break;
    text.remove_prefix(length + kEnd.size());
  }
  if (const Read done = reader.finish(); !done) return std::unexpected(done.error());
  return head;
}

}  // namespace cairn::http
