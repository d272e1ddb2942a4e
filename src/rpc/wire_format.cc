// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire_format.h"

#include <algorithm>
#include <span>

#include "base/crc32c.h"
#include "base/field_coder.h"

namespace cairn::rpc {

namespace {

constexpr uint32_t kMagic = 0x43505243;  // "CRPC"
constexpr size_t kBodyChecksumAt = 24;
constexpr size_t kChecksumAt = 28;

// Which fields a kind has; the others are 0.
struct KindFields {
  uint8_t status_max = 0;
  bool has_method = false;
  bool has_id = false;
  bool has_amount = false;
  bool has_body = false;
};

KindFields fields_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
    case FrameKind::kWelcome:
      return {.has_body = true};
    case FrameKind::kCall:
    case FrameKind::kSubscribe:
      return {.has_method = true, .has_id = true, .has_amount = true, .has_body = true};
    case FrameKind::kCancel:
      return {.has_id = true};
    case FrameKind::kReply:
      return {
          .status_max = static_cast<uint8_t>(Errc::kCancelled), .has_id = true, .has_body = true};
    case FrameKind::kPush:
      return {.has_id = true, .has_body = true};
    case FrameKind::kCredit:
      return {.has_id = true, .has_amount = true};
    case FrameKind::kGoodbye:
      return {.status_max = kLastGoodbyeReason, .has_amount = true};
    case FrameKind::kPing:
    case FrameKind::kPong:
      return {};
  }
  return {};
}

bool makes_sense(const FrameHead& head) {
  const KindFields has = fields_of(head.kind);
  if (head.status > has.status_max) return false;
  if (!has.has_method && head.method != 0) return false;
  if (has.has_id != (head.id != 0)) return false;
  if (!has.has_amount && head.amount != 0) return false;
  if (!has.has_body && head.body_size != 0) return false;
  if (head.kind == FrameKind::kGoodbye && head.status == 0) return false;
  if (head.kind == FrameKind::kCredit && head.amount == 0) return false;
  return head.kind != FrameKind::kReply || head.status == 0 || head.body_size == 0;
}

template <class Coder>
void visit(Coder& coder, Hello& hello) {
  coder.number(hello.protocol);
  coder.number(hello.service_version);
  coder.number(hello.push_window);
  coder.number(hello.message_max);
  coder.text(hello.service);
}
template <class Coder>
void visit(Coder& coder, Welcome& welcome) {
  coder.number(welcome.protocol);
  coder.number(welcome.service_version);
  coder.number(welcome.calls_max);
  coder.number(welcome.subscriptions_max);
  coder.number(welcome.call_bytes_max);
  coder.number(welcome.message_max);
}
static_assert(sizeof(Version) == 4);

template <class T>
std::string encode_as(T value) {
  FieldWriter writer;
  visit(writer, value);
  return std::move(writer.out);
}
template <class T>
Result<T> decode_as(Bytes body) {
  T value;
  FieldReader reader(body);
  visit(reader, value);
  if (!reader.is_over()) return fail(Errc::kCorrupt, "a greeting makes no sense");
  return value;
}

}  // namespace

bool looks_plain(Bytes bytes) {
  return bytes.size() >= sizeof(kMagic) && load<uint32_t>(bytes) == kMagic;
}

bool looks_encrypted(Bytes bytes) {
  // Types of records, and the major version that all have (RFC 8446, 5.1).
  constexpr std::byte kAlert{21};
  constexpr std::byte kHandshake{22};
  constexpr std::byte kMajor{3};
  return bytes.size() >= 2 && (bytes[0] == kAlert || bytes[0] == kHandshake) && bytes[1] == kMajor;
}

std::array<std::byte, kHeadSize> encode_head(FrameHead head, Bytes body) {
  std::array<std::byte, kHeadSize> bytes{};
  const MutableBytes to(bytes);
  store(to, kMagic);
  store(to.subspan(4), static_cast<uint8_t>(head.kind));
  store(to.subspan(5), head.status);
  store(to.subspan(6), head.method);
  store(to.subspan(8), head.id);
  store(to.subspan(16), head.amount);
  store(to.subspan(20), static_cast<uint32_t>(body.size()));
  store(to.subspan(kBodyChecksumAt), crc32c(body));
  store(to.subspan(kChecksumAt), crc32c(to.first(kChecksumAt)));
  return bytes;
}

Result<FrameHead> decode_head(Bytes head) {
  if (head.size() != kHeadSize || !looks_plain(head)) {
    return fail(Errc::kCorrupt, "the other side does not speak this protocol");
  }
  if (crc32c(head.first(kChecksumAt)) != load<uint32_t>(head.subspan(kChecksumAt))) {
    return fail(Errc::kCorrupt, "the head of a frame arrived damaged");
  }
  const auto kind = load<uint8_t>(head.subspan(4));
  const FrameHead found{.kind = static_cast<FrameKind>(kind),
                        .status = load<uint8_t>(head.subspan(5)),
                        .method = load<uint16_t>(head.subspan(6)),
                        .id = load<uint64_t>(head.subspan(8)),
                        .amount = load<uint32_t>(head.subspan(16)),
                        .body_size = load<uint32_t>(head.subspan(20)),
                        .body_checksum = load<uint32_t>(head.subspan(kBodyChecksumAt))};
  if (kind == 0 || kind > kLastFrameKind || !makes_sense(found)) {
    return fail(Errc::kCorrupt, "the head of a frame makes no sense");
  }
  return found;
}

Result<void> check_body(const FrameHead& head, Bytes body) {
  if (body.size() != head.body_size || crc32c(body) != head.body_checksum) {
    return fail(Errc::kCorrupt, "the body of a frame arrived damaged");
  }
  return {};
}

std::string encode(const Hello& hello) { return encode_as(hello); }
std::string encode(const Welcome& welcome) { return encode_as(welcome); }

Result<Hello> decode_hello(Bytes body) {
  Result<Hello> hello = decode_as<Hello>(body);
  if (hello && (hello->service.size() > kServiceNameMax || hello->push_window == 0)) {
    return fail(Errc::kCorrupt, "a greeting makes no sense");
  }
  return hello;
}

Result<Welcome> decode_welcome(Bytes body) {
  Result<Welcome> welcome = decode_as<Welcome>(body);
  if (welcome && (welcome->calls_max == 0 || welcome->call_bytes_max == 0)) {
    return fail(Errc::kCorrupt, "a greeting makes no sense");
  }
  return welcome;
}

uint32_t wire_timeout(Duration timeout) {
  const int64_t ms = timeout.ns / 1'000'000 + (timeout.ns % 1'000'000 > 0 ? 1 : 0);
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 1, UINT32_MAX));
}

}  // namespace cairn::rpc
