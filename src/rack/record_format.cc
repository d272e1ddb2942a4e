// SPDX-License-Identifier: Apache-2.0
#include "rack/record_format.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/crc32c.h"
#include "base/message_coder.h"
#include "nvme/format/nqn.h"

namespace cairn::rack {

namespace {

constexpr uint32_t kMagic = 0x4b415243;  // "CRAK"
constexpr uint8_t kVersion = 1;
constexpr size_t kHeadSize = 16;
constexpr size_t kChecksumAt = 12;
constexpr size_t kConnectMax = 1024;

enum class Kind : uint8_t { kOffer = 1, kDrive = 2, kRequest = 3 };

// Fields are named once, and written or read by it.
template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(ContractId& v) { coder.number(v); }
  void operator()(Raid& v) { choice(coder, v, Raid::kStripe, Raid::kMirror); }
  void operator()(SpaceRequest::Verb& v) {
    choice(coder, v, SpaceRequest::Verb::kReserve, SpaceRequest::Verb::kForceRelease);
  }
  void operator()(Amount& v) { fields(coder, v.bytes, v.iops, v.bandwidth); }
  void operator()(Endpoint& v) { fields(coder, v.address, v.nqn, v.tls); }
  void operator()(Leg& v) { fields(coder, v.id, v.box, v.shelf, v.place, v.amount, v.nsid); }

  void operator()(Offer& v) { fields(coder, v.box, v.shelf, v.place, v.spare, v.expires_ms); }
  void operator()(DriveRecord& v) {
    fields(coder, v.name, v.raid, v.bytes, v.owner, v.connect, v.is_leaving, v.legs);
  }
  void operator()(SpaceRequest& v) { fields(coder, v.verb, v.id, v.drive, v.shelf, v.amount); }
};

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
         drive.legs.size() <= kLegsMax &&
         std::ranges::all_of(drive.legs, [](const Leg& leg) { return is_sound(leg); });
}

bool is_sound(const SpaceRequest& request) {
  if (request.verb != SpaceRequest::Verb::kReserve) {
    return request.drive.empty() && request.shelf.empty() && request.amount == Amount{};
  }
  return check_drive_name(request.drive) && check_shelf_name(request.shelf) &&
         check_amount(request.amount);
}

// A record with nothing behind it.
template <class T>
Result<T> decode_alone(Kind kind, Bytes bytes) {
  const Result<Unframed> frame = unframed(kind, bytes);
  if (!frame) return fail(frame.error());
  std::optional<T> record = decode_message<Layout, T>(frame->body);
  if (!record || !frame->rest.empty() || !is_sound(*record)) return senseless();
  return *std::move(record);
}

}  // namespace

std::string encode(const Offer& offer) {
  return framed(Kind::kOffer, encode_message<Layout>(offer));
}

std::string encode(const DriveRecord& drive) {
  return framed(Kind::kDrive, encode_message<Layout>(drive));
}

std::string encode(const SpaceRequest& request) {
  std::string out = framed(Kind::kRequest, encode_message<Layout>(request));
  out.resize(align_up(out.size(), 4));
  return out;
}

Result<Offer> decode_offer(Bytes bytes) { return decode_alone<Offer>(Kind::kOffer, bytes); }

Result<DriveRecord> decode_drive(Bytes bytes) {
  return decode_alone<DriveRecord>(Kind::kDrive, bytes);
}

Result<SpaceRequest> decode_request(Bytes bytes) {
  const Result<Unframed> frame = unframed(Kind::kRequest, bytes);
  if (!frame) return fail(frame.error());
  std::optional<SpaceRequest> request = decode_message<Layout, SpaceRequest>(frame->body);
  const size_t size = bytes.size() - frame->rest.size();
  const bool is_filled_up =
      frame->rest.size() == align_up(size, 4) - size &&
      std::ranges::all_of(frame->rest, [](std::byte byte) { return byte == std::byte{0}; });
  if (!request || !is_filled_up || !is_sound(*request)) return senseless();
  return *std::move(request);
}

}  // namespace cairn::rack
