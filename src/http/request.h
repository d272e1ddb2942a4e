// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 requests as bytes (RFC 9112), as a server reads them: the head alone. A request
// with a body is refused.
//
// Everything has a limit and lines end with CR LF; other input gets a status that says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace cairn::http {

inline constexpr size_t kRequestHeadMax = 8192;
inline constexpr size_t kTargetMax = 1024;
inline constexpr size_t kFieldsMax = 64;

enum class Status : uint16_t {
  kOk = 200,
  kBadRequest = 400,
  kUnauthorized = 401,
  kForbidden = 403,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kRequestTimeout = 408,
  kContentTooLarge = 413,
  kUriTooLong = 414,
  kTooManyRequests = 429,
  kHeadTooLarge = 431,
  kNotImplemented = 501,
  kUnavailable = 503,
  kVersionNotSupported = 505,
};
// "Not Found": what follows the number in a response.
std::string_view reason(Status status);

struct RequestHead {
  size_t size = 0;  // of the head itself, with the empty line
  std::string method;
  std::string path;           // from its first slash, as it was sent; "*" for the server as a whole
  std::string query;          // what follows the question mark
  std::string host;           // that the client meant, with its port
  std::string authorization;  // what it shows; empty: nothing
  bool keep_alive = true;
  bool has_body = false;
};

// None: more bytes are needed. A Status: it is no such head, or one that is too long; nothing that
// follows on the connection can be understood.
using RequestParsed = std::expected<std::optional<RequestHead>, Status>;
RequestParsed parse_request(Bytes bytes);

}  // namespace cairn::http
