// SPDX-License-Identifier: Apache-2.0
// Any bytes as messages and records of chains, and as views: what is understood has one form only,
// so that encoding it again gives the same bytes; and what is understood can be used.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "kv/chain/command.h"
#include "kv/chain/message_format.h"
#include "kv/ring/plan.h"
#include "kv/ring/view_format.h"

namespace cairn::kv {
namespace {

template <class T>
void check_again(const Result<T>& message, Bytes body) {
  if (message) CHECK(encode(*message) == as_text(body));
}

void check_view(Bytes body) {
  // With the head that it would have: else the checksum keeps everything out.
  std::string bytes = "CKVR";
  bytes += {'\x01', '\x02', '\0', '\0'};
  const auto size = static_cast<uint32_t>(body.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  const uint32_t sum = crc32c(body, crc32c(as_bytes(bytes)));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  bytes += as_text(body);
  const Result<ring::View> view = ring::decode_view(as_bytes(bytes));
  if (!view) return;
  CHECK(ring::encode(*view) == bytes);
  const std::optional<ring::View> next = ring::next_view(*view, {}, {});
  if (next) CHECK(ring::decode_view(as_bytes(ring::encode(*next))).has_value());
}

void check_record(Bytes body) {
  if (const Result<uint64_t> id = chain::decode_member_id(body)) {
    CHECK(*id != 0 && chain::encode_member_id(*id) == as_text(body));
  }
  const Result<chain::Record> record = chain::decode_record(body);
  if (!record) return;
  CHECK(chain::encode_record(*record) == as_text(body));
  const chain::Decision decision = chain::decide(
      *record, {.kind = chain::Command::Kind::kAdd, .amount = 1}, {1, 2}, 0, UINT64_MAX, 0);
  if (decision.kind == chain::Decision::Kind::kChanged) {
    CHECK(chain::decode_record(as_bytes(chain::encode_record(decision.record))).has_value());
  }
}

}  // namespace
}  // namespace cairn::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  using namespace cairn::kv;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const Bytes body = bytes.subspan(1);
  switch (data[0] % 14) {
    case 0:
      check_again(chain::decode_get_request(body), body);
      break;
    case 1:
      check_again(chain::decode_get_reply(body), body);
      break;
    case 2:
      check_again(chain::decode_write_request(body), body);
      break;
    case 3:
      check_again(chain::decode_write_reply(body), body);
      break;
    case 4:
      check_again(chain::decode_forward_request(body), body);
      break;
    case 5:
      check_again(chain::decode_copy_request(body), body);
      break;
    case 6:
      check_again(chain::decode_pass_reply(body), body);
      break;
    case 7:
      check_record(body);
      break;
    case 8:
      check_again(ring::decode_node(body), body);
      break;
    case 9:
      check_view(body);
      break;
    case 10:
      check_again(chain::decode_fetch_request(body), body);
      break;
    case 11:
      check_again(chain::decode_fetch_reply(body), body);
      break;
    case 12:
      check_again(chain::decode_names_request(body), body);
      break;
    default:
      check_again(chain::decode_names_reply(body), body);
      break;
  }
  return 0;
}
