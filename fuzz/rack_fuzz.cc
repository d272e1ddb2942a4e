// SPDX-License-Identifier: Apache-2.0
// Any bytes as a rack's records: what is understood has one form only and keeps every limit, and a
// request of any kind leaves a ledger that has given no more than it has. The first byte says which
// record is meant; the checksum is made right, because a stranger can do that too.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "rack/choose.h"
#include "rack/ledger.h"
#include "rack/record_format.h"

namespace cairn::rack {
namespace {

constexpr size_t kHeadSize = 16;

// The record with the length and checksum it should have.
std::string made_right(Bytes body, uint8_t kind) {
  std::string bytes("CRAK");
  bytes += static_cast<char>(kind);
  bytes += std::string("\x01\0\0", 3);
  const auto length = static_cast<uint32_t>(body.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t checksum = crc32c(body, crc32c(as_bytes(bytes)));
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  CHECK(bytes.size() == kHeadSize);
  return bytes + std::string(as_text(body));
}

void check_offer(Bytes bytes) {
  const Result<Offer> offer = decode_offer(bytes);
  if (!offer) return;
  CHECK(encode(*offer) == as_text(bytes));
  const Offer offers[] = {*offer, *offer};
  const Wish wish{.raid = Raid::kMirror, .amount = {.bytes = kUnit}};
  CHECK(!choose(offers, wish).has_value());  // there is but one box
}

void check_drive(Bytes bytes) {
  const Result<DriveRecord> drive = decode_drive(bytes);
  if (!drive) return;
  CHECK(encode(*drive) == as_text(bytes));
  CHECK(drive->legs.size() <= kLegsMax);
}

void check_request(Bytes bytes) {
  const Result<SpaceRequest> request = decode_request(bytes);
  if (!request) return;
  CHECK(encode(*request) == as_text(bytes));
  const Shelf shelf{.name = request->shelf, .place = {.nqn = "n"}, .room = {.bytes = 4 * kUnit}};
  Ledger ledger({shelf}, {});
  const Result<Contract> draft = ledger.drafted({.host = "h", .nqn = "n"}, *request);
  if (!draft) return;
  ledger.add(*draft);
  CHECK(draft->amount.bytes + ledger.spare(shelf.name).bytes == shelf.room.bytes);
}

void check(Bytes bytes) {
  check_offer(bytes);
  check_drive(bytes);
  check_request(bytes);
}

}  // namespace
}  // namespace cairn::rack

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  rack::check(bytes);
  if (bytes.empty()) return 0;
  const auto kind = static_cast<uint8_t>(std::to_integer<uint8_t>(bytes[0]) % 3 + 1);
  std::string right = rack::made_right(bytes.subspan(1), kind);
  if (kind == 3) right.resize(align_up(right.size(), 4));
  rack::check(as_bytes(right));
  return 0;
}
