// SPDX-License-Identifier: Apache-2.0
#include "meta/wire_format.h"

#include <iterator>
#include <utility>

#include "base/field_coder.h"

namespace cairn::meta {

namespace {

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
  void operator()(WatchRequest& v) {
    (*this)(v.range);
    field(coder, v.from);
  }
  void operator()(WatchPush& v) { fields(coder, v.changes, v.position); }
};

template <class Coder, class T>
void visit(Coder& coder, T& value) {
  Layout<Coder>{coder}(value);
}

template <class Variant>
std::string encode_variant(const Variant& variant) {
  Encoder body;
  Variant copy = variant;
  std::visit([&](auto& value) { visit(body, value); }, copy);
  return std::move(body.out);
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
    case Call::kWatch:
      return 6;
  }
  return std::variant_size_v<Answer>;
}

}  // namespace

std::string encode(const Request& request) { return encode_variant(request); }
std::string encode(const Answer& answer) { return encode_variant(answer); }

Result<Request> decode_request(Call call, Bytes body) {
  return decode<Request>(static_cast<size_t>(call) - 1, body);
}

Result<Answer> decode_answer(Call call, Bytes body) {
  return decode<Answer>(answer_index(call), body);
}

}  // namespace cairn::meta
