// SPDX-License-Identifier: Apache-2.0
#include "nvme/reservation/reservation_state_format.h"

#include <algorithm>

#include "base/crc32c.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {

namespace {

constexpr size_t kChecksumEnd = offsetof(ReservationStateHead, checksum) + sizeof(Le32);

// Whether these could be the reservations of a namespace at all.
bool is_possible(const Reservations::Saved& saved) {
  if (saved.type > ReservationType::kExclusiveAccessAll) return false;
  std::vector<HostId> hosts;
  for (const Reservations::Registration& each : saved.registrations) {
    if (each.key == 0 || std::ranges::find(hosts, each.host) != hosts.end()) return false;
    hosts.push_back(each.host);
  }
  if (saved.type == ReservationType::kNone) return true;
  if (saved.type >= ReservationType::kWriteExclusiveAll) return !hosts.empty();
  return std::ranges::find(hosts, saved.holder) != hosts.end();
}

}  // namespace

std::vector<std::byte> encode_reservations(const Reservations::Saved& saved,
                                           const std::array<uint8_t, 16>& nguid) {
  const size_t count = saved.registrations.size();
  std::vector<std::byte> bytes(sizeof(ReservationStateHead) +
                               count * sizeof(ReservationStateEntry));
  ReservationStateHead head;
  head.magic = kReservationStateMagic;
  head.version = kReservationStateVersion;
  head.length = static_cast<uint32_t>(bytes.size());
  head.generation = saved.generation;
  head.entries = static_cast<uint32_t>(count);
  head.type = saved.type;
  head.persists = saved.persists ? 1 : 0;
  head.holder = saved.holder;
  head.nguid = nguid;
  store(bytes, head);
  MutableBytes rest = MutableBytes(bytes).subspan(sizeof head);
  for (const Reservations::Registration& each : saved.registrations) {
    store(rest, ReservationStateEntry{.host = each.host, .key = each.key});
    rest = rest.subspan(sizeof(ReservationStateEntry));
  }
  head.checksum = crc32c(Bytes(bytes).subspan(kChecksumEnd));
  store(bytes, head);
  return bytes;
}

Result<Reservations::Saved> decode_reservations(Bytes bytes, const std::array<uint8_t, 16>& nguid) {
  if (bytes.size() < sizeof(ReservationStateHead)) {
    return fail(Errc::kCorrupt, "stored reservations are too short");
  }
  const auto head = load<ReservationStateHead>(bytes);
  if (head.magic != kReservationStateMagic) {
    return fail(Errc::kCorrupt, "these are no stored reservations");
  }
  if (head.version != kReservationStateVersion) {
    return fail(Errc::kUnsupported, "stored reservations have another version",
                static_cast<int32_t>(head.version));
  }
  if (head.length != bytes.size() || head.entries > kRegistrantsMax ||
      bytes.size() != sizeof head + head.entries * sizeof(ReservationStateEntry)) {
    return fail(Errc::kCorrupt, "stored reservations have a wrong length");
  }
  if (head.checksum != crc32c(bytes.subspan(kChecksumEnd))) {
    return fail(Errc::kCorrupt, "stored reservations have a wrong checksum");
  }
  if (head.nguid != nguid) {
    return fail(Errc::kMismatch, "stored reservations are of another namespace");
  }
  Reservations::Saved saved{.persists = head.persists != 0,
                            .generation = head.generation,
                            .type = head.type,
                            .holder = head.holder,
                            .registrations = {}};
  Bytes rest = bytes.subspan(sizeof head);
  for (uint32_t i = 0; i < head.entries; ++i) {
    const auto entry = load<ReservationStateEntry>(rest);
    saved.registrations.push_back({.host = entry.host, .key = entry.key});
    rest = rest.subspan(sizeof entry);
  }
  if (!is_possible(saved)) return fail(Errc::kCorrupt, "stored reservations contradict themselves");
  return saved;
}

}  // namespace cairn::nvme
