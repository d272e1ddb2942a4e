// SPDX-License-Identifier: Apache-2.0
// Any bytes as requests and as replies of RESP: what comes out does not depend on the pieces they
// arrive in, memory is taken for bytes that have arrived, and what was understood as a request is
// the same once our client has said it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "door/resp/client.h"
#include "door/resp/glob.h"
#include "door/resp/number.h"
#include "door/resp/reply_decoder.h"
#include "door/resp/request_decoder.h"
#include "input.h"

namespace cairn::door::resp {
namespace {

// What a decoder may have besides a few times the bytes that it was given.
constexpr size_t kHeldBeside = 8192;

struct Requests {
  std::vector<std::vector<std::string>> all;
  std::string problem;
  friend bool operator==(const Requests&, const Requests&) = default;
};

Requests read_requests(std::string_view bytes, size_t step) {
  RequestDecoder decoder;
  Requests found;
  RequestArgs request;
  for (size_t given = 0; !bytes.empty();) {
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    given += piece.size();
    std::string_view left = piece;
    while (found.problem.empty()) {
      const Result<bool> whole = decoder.take(left, request);
      if (!whole) {
        found.problem = RequestDecoder::problem(whole.error());
        return found;
      }
      CHECK(decoder.held() <= 32 * given + kHeldBeside);
      if (!*whole) break;
      CHECK(!request.args.empty());
      found.all.emplace_back(request.args.begin(), request.args.end());
    }
    CHECK(left.empty());
  }
  return found;
}

void check_requests(std::string_view bytes, size_t step) {
  const Requests whole = read_requests(bytes, std::max<size_t>(bytes.size(), 1));
  CHECK(read_requests(bytes, step) == whole);
  std::string again;
  for (const std::vector<std::string>& args : whole.all) {
    again += encode_request(std::vector<std::string_view>(args.begin(), args.end()));
  }
  const Requests said = read_requests(again, std::max<size_t>(again.size(), 1));
  CHECK(said.all == whole.all && said.problem.empty());
}

struct Replies {
  std::vector<Value> all;
  bool is_wrong = false;
  friend bool operator==(const Replies&, const Replies&) = default;
};

Replies read_replies(std::string_view bytes, size_t step) {
  ReplyDecoder decoder(1 << 20);
  Replies found;
  Value value;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    for (;;) {
      const Result<bool> whole = decoder.take(piece, value);
      found.is_wrong = !whole;
      if (!whole) return found;
      if (!*whole) break;
      found.all.push_back(std::move(value));
    }
  }
  return found;
}

void check_replies(std::string_view bytes, size_t step) {
  CHECK(read_replies(bytes, std::max<size_t>(bytes.size(), 1)) == read_replies(bytes, step));
}

void check_words(std::string_view text) {
  if (const std::optional<int64_t> number = parse_integer(text)) {
    CHECK(std::to_string(*number) == text);
  }
  if (const std::optional<long double> real = parse_real(text)) {
    CHECK(parse_real(format_real(*real)).has_value());
  }
  const size_t half = std::min<size_t>(text.size() / 2, 64);
  (void)matches(text.substr(0, half), text.substr(half));
  CHECK(matches("*", text));
}

}  // namespace
}  // namespace cairn::door::resp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  fuzz::Input input(std::as_bytes(std::span(data, size)));
  const size_t step = 1 + input.value<uint8_t>() % 32;
  const std::string_view bytes = as_text(input.take(size));
  door::resp::check_requests(bytes, step);
  door::resp::check_replies(bytes, step);
  door::resp::check_words(bytes);
  return 0;
}
