// SPDX-License-Identifier: Apache-2.0
// Any bytes from an HTTP server: a head is the same however it arrives, its numbers make sense, and
// a chunked body gives the same data in pieces of any size. Any bytes from a client: a request is
// the same however it arrives, and within its limits. Any text as a place: no crash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "http/request.h"
#include "http/response.h"
#include "rest/endpoint.h"
#include "rest/object_label_format.h"

namespace cairn::http {
namespace {

struct Chunks {
  std::string data;
  bool is_over = false;
  bool is_wrong = false;
  friend bool operator==(const Chunks&, const Chunks&) = default;
};

Chunks read_chunks(Bytes bytes, size_t step) {
  ChunkedBody body;
  Chunks all;
  while (!bytes.empty() && !body.is_over()) {
    Bytes piece = bytes.first(std::min(step, bytes.size()));
    const size_t given = piece.size();
    while (!piece.empty() && !body.is_over()) {
      const Result<Bytes> found = body.take(piece);
      if (!found) {
        all.is_wrong = true;
        return all;
      }
      all.data += as_text(*found);
    }
    bytes = bytes.subspan(given - piece.size());
  }
  all.is_over = body.is_over();
  return all;
}

void check_head(Bytes bytes) {
  const auto head = parse_head(bytes);
  if (!head || !*head) return;
  const ResponseHead& told = **head;
  CHECK(told.size >= 4 && told.size <= bytes.size() && told.size <= kHeadMax);
  CHECK(told.status >= 100 && told.status < 1000);
  CHECK(!told.is_chunked || !told.length);
  CHECK(told.etag.size() <= kEtagMax);
  CHECK(!told.range || told.range->first <= told.range->last);
  const auto alone = parse_head(bytes.first(told.size));
  CHECK(alone && *alone && (*alone)->size == told.size);
  const auto shorter = parse_head(bytes.first(told.size - 1));
  CHECK(shorter && !*shorter);
  if (told.is_chunked) {
    const Bytes body = bytes.subspan(told.size);
    const Chunks whole = read_chunks(body, std::max<size_t>(body.size(), 1));
    CHECK(whole == read_chunks(body, 1) && whole == read_chunks(body, 7));
  }
}

// What a server does that reads until there is a request, or never will be.
void check_request(Bytes bytes) {
  const RequestParsed whole = parse_request(bytes);
  if (!whole) {
    CHECK(!reason(whole.error()).empty() && static_cast<int>(whole.error()) >= 400);
    return;
  }
  if (!*whole) {
    CHECK(bytes.size() < kRequestHeadMax);
    return;
  }
  const RequestHead& told = **whole;
  CHECK(told.size >= 4 && told.size <= bytes.size() && told.size <= kRequestHeadMax);
  CHECK(!told.method.empty() && told.path.size() + told.query.size() <= kTargetMax);
  CHECK(told.path.starts_with('/') || told.path == "*");
  for (size_t size = 0; size < told.size; size += 1 + told.size / 64) {
    const RequestParsed part = parse_request(bytes.first(size));
    CHECK(part && !*part);
  }
  const RequestParsed alone = parse_request(bytes.first(told.size));
  CHECK(alone && *alone && (*alone)->path == told.path && (*alone)->has_body == told.has_body);
}

}  // namespace
}  // namespace cairn::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  http::check_head(bytes);
  http::check_request(bytes);
  if (const auto label = rest::ObjectLabel::decode(bytes)) {
    CHECK(rest::check_shape(label->blocks, label->block_size, label->object_size));
  }
  if (const auto place = rest::Endpoint::parse(as_text(bytes))) {
    CHECK(place->path.starts_with('/') && !place->path.ends_with('/'));
  } else {
    CHECK(!place.error().empty());
  }
  return 0;
}
