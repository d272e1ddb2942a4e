// SPDX-License-Identifier: Apache-2.0
#include "rack/record_format.h"

#include <algorithm>
#include <span>

#include "base/crc32c.h"
#include "base/field_coder.h"
#include "nvme/format/nqn.h"

namespace cairn::rack {

namespace {

constexpr uint32_t kMagic = 0x4b415243;  // "CRAK"
constexpr uint8_t kVersion = 1;
constexpr size_t kHeadSize = 16;
constexpr size_t kChecksumAt = 12;
constexpr size_t kConnectMax = 1024;

enum class Kind : uint8_t { kOffer = 1, kDrive = 2, kRequest = 3 };

// Fields are named once, in layout() below, and written or read by one of these.
class Encoder : public FieldWriter {
 public:
  void flag(const bool& value) { number(static_cast<uint8_t>(value ? 1 : 0)); }
  void id(const ContractId& value) { number(value); }
  template <class T>
  void word(const T& value, uint8_t, uint8_t) {
    number(static_cast<uint8_t>(value));
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, size_t, const Each& each) {
    number(static_cast<uint32_t>(values.size()));
    for (const T& value : values) each(*this, value);
  }
};

class Decoder : public FieldReader {
 public:
  using FieldReader::FieldReader;
  void flag(bool& value) {
    uint8_t wire = 0;
    number(wire);
    if (wire > 1) spoil();
    value = wire == 1;
  }
  void id(ContractId& value) { number(value); }
  template <class T>
  void word(T& value, uint8_t first, uint8_t last) {
    uint8_t wire = 0;
    number(wire);
    if (wire < first || wire > last) return spoil();
    value = static_cast<T>(wire);
  }
  template <class T, class Each>
  void list(std::vector<T>& values, size_t max, const Each& each) {
    uint32_t count = 0;
    number(count);
    if (count > max) return spoil();
    for (uint32_t i = 0; i < count && is_good(); ++i) each(*this, values.emplace_back());
  }
};

template <class Coder, class A>
void amount(Coder& coder, A& value) {
  coder.number(value.bytes);
  coder.number(value.iops);
  coder.number(value.bandwidth);
}

template <class Coder, class P>
void place(Coder& coder, P& value) {
  coder.text(value.address);
  coder.text(value.nqn);
  coder.flag(value.tls);
}

template <class Coder, class T>
void offer_layout(Coder& coder, T& value) {
  coder.text(value.box);
  coder.text(value.shelf);
  place(coder, value.place);
  amount(coder, value.spare);
  coder.number(value.expires_ms);
}

template <class Coder, class T>
void leg_layout(Coder& coder, T& value) {
  coder.id(value.id);
  coder.text(value.box);
  coder.text(value.shelf);
  place(coder, value.place);
  amount(coder, value.amount);
  coder.number(value.nsid);
}

template <class Coder, class T>
void drive_layout(Coder& coder, T& value) {
  coder.text(value.name);
  coder.word(value.raid, 0, 1);
  coder.number(value.bytes);
  coder.text(value.owner);
  coder.text(value.connect);
  coder.flag(value.is_leaving);
  coder.list(value.legs, kLegsMax, [](auto& inner, auto& leg) { leg_layout(inner, leg); });
}

template <class Coder, class T>
void request_layout(Coder& coder, T& value) {
  coder.word(value.verb, 1, 4);
  coder.id(value.id);
  coder.text(value.drive);
  coder.text(value.shelf);
  amount(coder, value.amount);
}

std::string framed(Kind kind, const std::string& body) {
  std::string head(kHeadSize, '\0');
  const MutableBytes bytes = std::as_writable_bytes(std::span(head));
  store(bytes, kMagic);
  store(bytes.subspan(4), static_cast<uint8_t>(kind));
  store(bytes.subspan(5), kVersion);
  store(bytes.subspan(8), static_cast<uint32_t>(body.size()));
  store(bytes.subspan(kChecksumAt), crc32c(as_bytes(body), crc32c(bytes.first(kChecksumAt))));
  return head + body;
}

// The body, and what follows it.
struct Unframed {
  Bytes body;
  Bytes rest;
};
Result<Unframed> unframed(Kind kind, Bytes bytes) {
  if (bytes.size() < kHeadSize || load<uint32_t>(bytes) != kMagic ||
      load<uint8_t>(bytes.subspan(4)) != static_cast<uint8_t>(kind)) {
    return fail(Errc::kCorrupt, "this is no record of a rack");
  }
  if (load<uint8_t>(bytes.subspan(5)) != kVersion) {
    return fail(Errc::kUnsupported, "a rack's record of another version",
                load<uint8_t>(bytes.subspan(5)));
  }
  const auto length = load<uint32_t>(bytes.subspan(8));
  const Bytes behind = bytes.subspan(kHeadSize);
  if (length > behind.size() || load<uint16_t>(bytes.subspan(6)) != 0 ||
      crc32c(behind.first(length), crc32c(bytes.first(kChecksumAt))) !=
          load<uint32_t>(bytes.subspan(kChecksumAt))) {
    return fail(Errc::kCorrupt, "a rack's record is damaged");
  }
  return Unframed{.body = behind.first(length), .rest = behind.subspan(length)};
}

std::unexpected<Error> senseless() {
  return fail(Errc::kCorrupt, "a rack's record makes no sense");
}

bool is_owner(std::string_view nqn) { return !nqn.empty() && nqn.size() <= nvme::kNqnMax; }

bool is_sound(const Offer& offer) {
  return check_box_name(offer.box) && check_shelf_name(offer.shelf) && check_place(offer.place) &&
         offer.spare.bytes <= kBytesMax && offer.spare.bytes % kUnit == 0;
}

bool is_sound(const Leg& leg) {
  return check_box_name(leg.box) && check_shelf_name(leg.shelf) && check_place(leg.place) &&
         check_amount(leg.amount) && leg.nsid != 0;
}

bool is_sound(const DriveRecord& drive) {
  return check_drive_name(drive.name) && is_owner(drive.owner) &&
         drive.connect.size() <= kConnectMax && drive.bytes > 0 && drive.bytes <= kBytesMax &&
         std::ranges::all_of(drive.legs, [](const Leg& leg) { return is_sound(leg); });
}

bool is_sound(const SpaceRequest& request) {
  if (request.verb != SpaceRequest::Verb::kReserve) {
    return request.drive.empty() && request.shelf.empty() && request.amount == Amount{};
  }
  return check_drive_name(request.drive) && check_shelf_name(request.shelf) &&
         check_amount(request.amount);
}

}  // namespace

std::string encode(const Offer& offer) {
  Encoder body;
  offer_layout(body, offer);
  return framed(Kind::kOffer, body.out);
}

std::string encode(const DriveRecord& drive) {
  Encoder body;
  drive_layout(body, drive);
  return framed(Kind::kDrive, body.out);
}

std::string encode(const SpaceRequest& request) {
  Encoder body;
  request_layout(body, request);
  std::string out = framed(Kind::kRequest, body.out);
  out.resize(align_up(out.size(), 4));
  return out;
}

Result<Offer> decode_offer(Bytes bytes) {
  const Result<Unframed> frame = unframed(Kind::kOffer, bytes);
  if (!frame) return fail(frame.error());
  Offer offer;
  Decoder decoder(frame->body);
  offer_layout(decoder, offer);
  if (!decoder.is_over() || !frame->rest.empty() || !is_sound(offer)) return senseless();
  return offer;
}

Result<DriveRecord> decode_drive(Bytes bytes) {
  const Result<Unframed> frame = unframed(Kind::kDrive, bytes);
  if (!frame) return fail(frame.error());
  DriveRecord drive;
  Decoder decoder(frame->body);
  drive_layout(decoder, drive);
  if (!decoder.is_over() || !frame->rest.empty() || !is_sound(drive)) return senseless();
  return drive;
}

Result<SpaceRequest> decode_request(Bytes bytes) {
  const Result<Unframed> frame = unframed(Kind::kRequest, bytes);
  if (!frame) return fail(frame.error());
  SpaceRequest request;
  Decoder decoder(frame->body);
  request_layout(decoder, request);
  const bool is_filled_up =
      frame->rest.size() ==
          align_up(bytes.size() - frame->rest.size(), 4) - (bytes.size() - frame->rest.size()) &&
      std::ranges::all_of(frame->rest, [](std::byte byte) { return byte == std::byte{0}; });
  if (!decoder.is_over() || !is_filled_up || !is_sound(request)) return senseless();
  return request;
}

}  // namespace cairn::rack
