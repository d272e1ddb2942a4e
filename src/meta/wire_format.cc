// SPDX-License-Identifier: Apache-2.0
#include "meta/wire_format.h"

#include <iterator>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/field_coder.h"

namespace cairn::meta {

namespace {

constexpr uint32_t kMagic = 0x54454d43;  // "CMET"
constexpr uint8_t kVersion = 1;
constexpr size_t kChecksumAt = 12;

// Fields are named once, in visit() below, and written or read by one of these.
struct Encoder : FieldWriter {
  static constexpr bool kReads = false;
};
struct Decoder : FieldReader {
  static constexpr bool kReads = true;
  using FieldReader::FieldReader;
};

template <class Coder, class T>
void visit(Coder& coder, T& value);

// A number in a wider type of its own, or in one that has fewer values.
template <class Wire, class Coder, class T, class From, class To>
void convert(Coder& coder, T& value, From from, To to) {
  if constexpr (Coder::kReads) {
    Wire wire = 0;
    coder.number(wire);
    if (!to(wire, value)) coder.spoil();
  } else {
    coder.number(static_cast<Wire>(from(value)));
  }
}

template <class Coder, class Tag>
void field(Coder& coder, Id<Tag>& value) {
  convert<uint64_t>(
      coder, value, [](const Id<Tag>& id) { return id.value(); },
      [](uint64_t wire, Id<Tag>& id) { return id = Id<Tag>(wire), true; });
}
template <class Coder>
void field(Coder& coder, std::string& value) {
  coder.text(value);
}
template <class Coder>
void field(Coder& coder, bool& value) {
  convert<uint8_t>(
      coder, value, [](bool is) { return is ? 1 : 0; },
      [](uint8_t wire, bool& is) { return is = wire == 1, wire <= 1; });
}
template <class Coder>
void field(Coder& coder, size_t& value) {
  convert<uint64_t>(
      coder, value, [](size_t size) { return size; },
      [](uint64_t wire, size_t& size) { return size = wire, true; });
}
template <class Coder>
void field(Coder& coder, Duration& value) {
  convert<uint64_t>(
      coder, value, [](Duration time) { return time.ns; },
      [](uint64_t wire, Duration& time) { return time.ns = static_cast<int64_t>(wire), true; });
}
template <class Coder>
void field(Coder& coder, Precondition::Kind& value) {
  using Kind = Precondition::Kind;
  convert<uint8_t>(
      coder, value, [](Kind kind) { return static_cast<uint8_t>(kind); },
      [](uint8_t wire, Kind& kind) {
        kind = static_cast<Kind>(wire);
        return wire <= static_cast<uint8_t>(Kind::kValue);
      });
}
template <class Coder, class T>
void field(Coder& coder, std::optional<T>& value) {
  bool is_there = value.has_value();
  field(coder, is_there);
  if constexpr (Coder::kReads) {
    if (is_there) value.emplace();
  }
  if (value) visit(coder, *value);
}
template <class Coder, class T>
void field(Coder& coder, std::vector<T>& value) {
  auto count = static_cast<uint32_t>(value.size());
  coder.number(count);
  if constexpr (Coder::kReads) {
    // Element by element: a count that is not true ends with the bytes.
    for (uint32_t i = 0; i < count && coder.is_good(); ++i) visit(coder, value.emplace_back());
  } else {
    for (T& element : value) visit(coder, element);
  }
}

template <class Coder, class... Fields>
void fields(Coder& coder, Fields&... each) {
  (field(coder, each), ...);
}

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(std::monostate&) {}
  void operator()(std::string& v) { field(coder, v); }
  void operator()(size_t& v) { field(coder, v); }
  void operator()(Duration& v) { field(coder, v); }
  void operator()(std::optional<Entry>& v) { field(coder, v); }
  void operator()(Entry& v) { fields(coder, v.key, v.value, v.created, v.modified, v.lease); }
  void operator()(Range& v) { fields(coder, v.first, v.end); }
  void operator()(Precondition& v) { fields(coder, v.kind, v.key, v.revision, v.value); }
  void operator()(Write& v) { fields(coder, v.key, v.value, v.lease); }
  void operator()(Batch& v) { fields(coder, v.preconditions, v.writes); }
  void operator()(Committed& v) { fields(coder, v.revision, v.failed); }
  void operator()(ListOptions& v) {
    (*this)(v.range);
    fields(coder, v.limit, v.at);
  }
  void operator()(Page& v) { fields(coder, v.entries, v.revision, v.more); }
  void operator()(Event& v) {
    (*this)(v.entry);
    field(coder, v.removed);
  }
  void operator()(Change& v) { fields(coder, v.revision, v.events); }
  void operator()(Lease& v) { fields(coder, v.id, v.ttl); }
  void operator()(GetRequest& v) { field(coder, v.key); }
  void operator()(GrantRequest& v) { field(coder, v.ttl); }
  void operator()(KeepAliveRequest& v) { field(coder, v.lease); }
  void operator()(RevokeRequest& v) { field(coder, v.lease); }
  void operator()(CompactRequest& v) { field(coder, v.upto); }
  void operator()(PollRequest& v) {
    (*this)(v.range);
    field(coder, v.from);
  }
  void operator()(PollAnswer& v) { fields(coder, v.changes, v.position); }
};

template <class Coder, class T>
void visit(Coder& coder, T& value) {
  Layout<Coder>{coder}(value);
}

std::string frame(Call call, uint8_t refusal, bool is_answer, const std::string& body) {
  std::string head(kFrameHeadSize, '\0');
  const MutableBytes bytes = std::as_writable_bytes(std::span(head));
  store(bytes, kMagic);
  store(bytes.subspan(4), kVersion);
  store(bytes.subspan(5), static_cast<uint8_t>(call));
  store(bytes.subspan(6), refusal);
  store(bytes.subspan(7), static_cast<uint8_t>(is_answer ? 1 : 0));
  store(bytes.subspan(8), static_cast<uint32_t>(body.size()));
  store(bytes.subspan(kChecksumAt), crc32c(as_bytes(body), crc32c(bytes.first(kChecksumAt))));
  return head + body;
}

template <class Variant, size_t index>
Result<Variant> decode_as(Bytes body) {
  Variant value(std::in_place_index<index>);
  Decoder decoder(body);
  visit(decoder, std::get<index>(value));
  if (!decoder.is_over()) return fail(Errc::kCorrupt, "a metadata message makes no sense");
  return value;
}

template <class Variant, size_t... index>
Result<Variant> decode_at(size_t wanted, Bytes body, std::index_sequence<index...>) {
  constexpr Result<Variant> (*kDecoders[])(Bytes) = {&decode_as<Variant, index>...};
  if (wanted >= std::size(kDecoders)) {
    return fail(Errc::kCorrupt, "a metadata message of an unknown kind");
  }
  return kDecoders[wanted](body);
}

template <class Variant>
Result<Variant> decode(size_t index, Bytes body) {
  return decode_at<Variant>(index, body, std::make_index_sequence<std::variant_size_v<Variant>>());
}

size_t answer_index(Call call) {
  switch (call) {
    case Call::kGet:
      return 0;
    case Call::kList:
      return 1;
    case Call::kCommit:
      return 2;
    case Call::kGrant:
      return 3;
    case Call::kKeepAlive:
      return 4;
    case Call::kRevoke:
    case Call::kCompact:
      return 5;
    case Call::kPoll:
      return 6;
  }
  return std::variant_size_v<Answer>;
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

std::string encode(const Request& request) {
  Encoder body;
  Request copy = request;
  std::visit([&](auto& value) { visit(body, value); }, copy);
  return frame(call_of(request), 0, false, body.out);
}

std::string encode(Call call, const Answer& answer) {
  Encoder body;
  Answer copy = answer;
  std::visit([&](auto& value) { visit(body, value); }, copy);
  return frame(call, 0, true, body.out);
}

std::string encode_refusal(Call call, Errc refusal) {
  return frame(call, static_cast<uint8_t>(refusal), true, {});
}

Result<FrameHead> decode_head(Bytes head) {
  if (head.size() != kFrameHeadSize || load<uint32_t>(head) != kMagic) {
    return fail(Errc::kCorrupt, "the other side does not speak the metadata protocol");
  }
  if (load<uint8_t>(head.subspan(4)) != kVersion) {
    return fail(Errc::kUnsupported, "the other side speaks another version of the protocol",
                load<uint8_t>(head.subspan(4)));
  }
  const auto call = load<uint8_t>(head.subspan(5));
  const auto refusal = load<uint8_t>(head.subspan(6));
  const auto direction = load<uint8_t>(head.subspan(7));
  FrameHead found{.call = static_cast<Call>(call),
                  .is_answer = direction == 1,
                  .length = load<uint32_t>(head.subspan(8)),
                  .checksum = load<uint32_t>(head.subspan(kChecksumAt))};
  if (refusal != 0) found.refusal = static_cast<Errc>(refusal);
  const bool refuses_oddly = refusal != 0 && (direction == 0 || found.length != 0);
  if (call == 0 || call > kLastCall || refusal > static_cast<uint8_t>(Errc::kCancelled) ||
      direction > 1 || refuses_oddly || found.length > kFrameBodyMax) {
    return fail(Errc::kCorrupt, "the head of a metadata message makes no sense");
  }
  return found;
}

Result<void> check_body(Bytes head, Bytes body) {
  if (crc32c(body, crc32c(head.first(kChecksumAt))) != load<uint32_t>(head.subspan(kChecksumAt))) {
    return fail(Errc::kCorrupt, "a metadata message arrived damaged");
  }
  return {};
}

Result<Request> decode_request(Call call, Bytes body) {
  return decode<Request>(static_cast<size_t>(call) - 1, body);
}

Result<Answer> decode_answer(Call call, Bytes body) {
  return decode<Answer>(answer_index(call), body);
}

}  // namespace cairn::meta
