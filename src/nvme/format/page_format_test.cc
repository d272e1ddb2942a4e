// SPDX-License-Identifier: Apache-2.0
// Identify structures, log pages, features and events: golden bytes at the places hosts read.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/discovery_format.h"
#include "nvme/format/event_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/reservation_format.h"
#include "nvme/format/status_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

// `count` bytes of a layout from `offset` on.
template <class Layout>
HexBytes part(const Layout& layout, size_t offset, size_t count) {
  return wire(bytes_of(layout).subspan(offset, count));
}

template <class Layout>
void expect_zeroes_by_default() {
  EXPECT_EQ(wire(Layout{}), HexBytes(sizeof(Layout)));
}

TEST(Identify, StructuresStartAsZeroes) {
  expect_zeroes_by_default<IdentifyController>();
  expect_zeroes_by_default<IdentifyControllerNvm>();
  expect_zeroes_by_default<IdentifyNamespace>();
  expect_zeroes_by_default<IdentifyNamespaceNvm>();
  expect_zeroes_by_default<IdentifyNamespaceIndependent>();
  expect_zeroes_by_default<NamespaceList>();
  expect_zeroes_by_default<HealthPage>();
  expect_zeroes_by_default<CommandEffectsPage>();
}

TEST(Identify, ControllerFieldsAreWhereHostsReadThem) {
  IdentifyController id;
  id.serial_number.set_padded("S1");
  id.model_number.set_padded("Cairn");
  id.firmware_revision.set_padded("0.1");
  id.multipath = Cmic::kControllers | Cmic::kAna;
  id.transfer_max = 8;
  id.controller_id = 0x1122;
  id.version = 0x00020000;
  id.events = EventMask::kNamespaceAttributes | EventMask::kAna;
  id.attributes = Ctratt::kHostId128 | Ctratt::kTrafficKeepAlive;
  id.controller_type = ControllerType::kIo;
  id.keep_alive_100ms = 10;
  id.submission_entry = 0x66;
  id.completion_entry = 0x44;
  id.commands_max = 128;
  id.namespaces = 1024;
  id.nvm_commands = Oncs::kCompare | Oncs::kDatasetManagement | Oncs::kCopy;
  id.write_cache = Vwc::kPresent | Vwc::kFlushAll;
  id.sgl = Sgls::kByteAligned | Sgls::kOffset;
  id.subsystem_nqn.set("nqn.2026-11.io.cairn:s");
  id.command_capsule = (64 + 8192) / 16;
  id.response_capsule = 1;
  id.sgl_descriptors_max = 1;

  EXPECT_EQ(part(id, 4, 20), hex("5331 20*18"));
  EXPECT_EQ(part(id, 24, 40), hex("436169726e 20*35"));
  EXPECT_EQ(part(id, 64, 8), hex("302e31 20*5"));
  EXPECT_EQ(part(id, 76, 8), hex("0a 08 2211 00000200"));
  EXPECT_EQ(part(id, 92, 8), hex("00090000 41000000"));
  EXPECT_EQ(part(id, 111, 1), hex("01"));
  EXPECT_EQ(part(id, 320, 2), hex("0a00"));
  EXPECT_EQ(part(id, 512, 10), hex("66 44 8000 00040000 0501"));
  EXPECT_EQ(part(id, 525, 1), hex("07"));
  EXPECT_EQ(part(id, 536, 4), hex("01001000"));
  EXPECT_EQ(part(id, 768, 4), hex("6e716e2e"));
  EXPECT_EQ(part(id, 1792, 12), hex("04020000 01000000 0000 00 01"));
}

TEST(Identify, NamespaceFieldsAreWhereHostsReadThem) {
  IdentifyNamespace id;
  id.size = 0x200000;
  id.capacity = 0x200000;
  id.used = 0x1000;
  id.features = Nsfeat::kThin | Nsfeat::kAtomic | Nsfeat::kOptimal;
  id.multipath = Nmic::kShared;
  id.deallocate = Dlfeat::kReadsZeroes | Dlfeat::kWriteZeroesDeallocates;
  id.atomic_write_power_fail = 7;
  id.ana_group = 1;
  id.nguid.fill(0x5a);
  id.lba_formats[0].block_shift = 9;
  EXPECT_EQ(part(id, 0, 25), hex("0000200000000000 0000200000000000 0010000000000000 13"));
  EXPECT_EQ(part(id, 30, 8), hex("01 00 00 09 0000 0700"));
  EXPECT_EQ(part(id, 92, 4), hex("01000000"));
  EXPECT_EQ(part(id, 104, 24), hex("5a*16 00*8"));
  EXPECT_EQ(part(id, 128, 8), hex("0000 09 00 00000000"));
}

TEST(Identify, FormatIndexIsInTwoPieces) {
  IdentifyNamespace id;
  id.format = 0x12;
  EXPECT_EQ(format_index(id), 2);
  id.format = 0x73;
  EXPECT_EQ(format_index(id), 0x33);
}

std::vector<NamespaceDescriptor> descriptors(Bytes page) {
  std::vector<NamespaceDescriptor> all;
  NamespaceDescriptorReader reader(page);
  while (const std::optional<NamespaceDescriptor> next = reader.next()) all.push_back(*next);
  return all;
}

TEST(Identify, DescriptorsAreWrittenAndReadBack) {
  std::array<std::byte, kIdentifySize> page{};
  NamespaceDescriptorWriter writer(page);
  const auto nguid = hex("aa*16");
  const auto uuid = hex("bb*16");
  writer.add(NamespaceIdType::kNguid, nguid);
  writer.add(NamespaceIdType::kUuid, uuid);
  writer.add(NamespaceIdType::kCsi, hex("00"));
  EXPECT_EQ(wire(Bytes(page).first(50)),
            hex("02 10 0000 aa*16 | 03 10 0000 bb*16 | 04 01 0000 00 00*5"));

  const auto read = descriptors(page);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(wire(read[0].id), nguid);
  EXPECT_EQ(wire(read[1].id), uuid);
  EXPECT_EQ(read[2].type, NamespaceIdType::kCsi);
}

TEST(Identify, DescriptorsThatDoNotFitEndTheList) {
  EXPECT_TRUE(descriptors(hex("02 10 0000 aa*15")).empty());
  EXPECT_TRUE(descriptors(hex("02 10 00")).empty());
  const auto unknown = hex("09 02 0000 cccc | 04 01 0000 00");
  const auto read = descriptors(unknown);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].id.size(), 2u);
  EXPECT_EQ(read[1].type, NamespaceIdType::kCsi);
}

TEST(Log, HealthPage) {
  HealthPage page;
  page.critical_warning = CriticalWarning::kReadOnly;
  page.temperature_kelvin = 310;
  page.spare_percent = 100;
  page.data_units_read.low = 0x0102;
  page.error_log_entries.low = 3;
  EXPECT_EQ(part(page, 0, 7), hex("08 3601 64 00 00 00"));
  EXPECT_EQ(part(page, 32, 16), hex("0201 00*14"));
  EXPECT_EQ(part(page, 176, 16), hex("03 00*15"));
}

TEST(Log, ErrorEntry) {
  ErrorEntry entry{.error_count = 1, .sqid = 2, .cid = 3, .lba = 4, .nsid = 5, .transport = 3};
  entry.status = final_status(StatusCode::kLbaOutOfRange).to_wire();
  EXPECT_EQ(wire(entry),
            hex("01 00*7 0200 0300 0081 0000 04 00*7 05000000 00 03 0000 00*8 0000 00*22"));
}

TEST(Log, FirmwareAndReservationPages) {
  FirmwarePage firmware;
  firmware.active = 1;
  firmware.revisions[0].set_padded("0.1");
  EXPECT_EQ(part(firmware, 0, 24), hex("01 00*7 302e31 20*5 00*8"));
  const ReservationNoticePage notice{
      .count = 9, .type = ReservationNotice::kReservationPreempted, .available = 1, .nsid = 2};
  EXPECT_EQ(wire(notice), hex("09 00*7 03 01 0000 02000000 00*48"));
}

TEST(Log, AnaPageOfOneGroup) {
  const AnaHeader header{.change_count = 6, .groups = 1};
  AnaGroup group{.group_id = 1, .namespaces = 2, .change_count = 6};
  group.set_state(AnaState::kInaccessible);
  EXPECT_EQ(wire(header), hex("06 00*7 0100 00*6"));
  EXPECT_EQ(wire(group), hex("01000000 02000000 06 00*7 03 00*15"));
  group.state_bits = 0xff;
  EXPECT_EQ(group.state(), AnaState::kChange);
}

TEST(Log, DiscoveryEntryOfATcpPort) {
  DiscoveryEntry entry;
  entry.requirements =
      TransportRequirements::kSecureNotRequired | TransportRequirements::kNoFlowControl;
  entry.port_id = 1;
  entry.controller_id = 0xffff;
  entry.admin_queue_size_max = kAdminQueueSizeMin;
  entry.service.set_padded("4420");
  entry.subsystem_nqn.set("nqn.2026-11.io.cairn:s");
  entry.address.set_padded("127.0.0.1");
  EXPECT_EQ(part(entry, 0, 12), hex("03 01 02 06 0100 ffff 2000 0000"));
  EXPECT_EQ(part(entry, 32, 32), hex("34343230 20*28"));
  EXPECT_EQ(part(entry, 256, 4), hex("6e716e2e"));
  EXPECT_EQ(part(entry, 512, 256), hex("3132372e302e302e31 20*247"));
  EXPECT_EQ(part(entry, 768, 256), hex("00*256"));
  const DiscoveryHeader header{.generation = 3, .records = 2};
  EXPECT_EQ(part(header, 0, 24), hex("03 00*7 02 00*7 0000 00*6"));
}

TEST(Reservation, ReportOfOneHolder) {
  const ReservationStatusExtended head{.status = {.generation = 4,
                                                  .type = ReservationType::kWriteExclusive,
                                                  .registrants = 1,
                                                  .persist = 1}};
  EXPECT_EQ(wire(head), hex("04000000 01 0100 0000 01 00*14 00*40"));
  RegistrantExtended holder{.controller_id = 7, .status = kHoldsReservation, .key = 0xabc};
  holder.host_id.fill(0x11);
  EXPECT_EQ(wire(holder), hex("0700 01 00*5 bc0a 00*6 11*16 00*32"));
  EXPECT_EQ(wire(Registrant{.controller_id = 7, .host_id = 1, .key = 2}),
            hex("0700 00 00*5 01 00*7 02 00*7"));
  EXPECT_EQ(wire(RegisterData{.current_key = 1, .new_key = 2}), hex("01 00*7 02 00*7"));
  EXPECT_EQ(wire(AcquireData{.current_key = 1, .preempt_key = 2}), hex("01 00*7 02 00*7"));
}

TEST(Event, DwordOfEachThatWeSend) {
  EXPECT_EQ(kNamespacesChanged.encode(), 0x00040002u);
  EXPECT_EQ(kAnaChanged.encode(), 0x000c0302u);
  EXPECT_EQ(kDiscoveryChanged.encode(), 0x0070f002u);
  EXPECT_EQ(kReservationNoticed.encode(), 0x00800006u);
  EXPECT_EQ(AsynchronousEvent::decode(0x0070f002), kDiscoveryChanged);
}

TEST(Feature, Values) {
  EXPECT_EQ(
      (Arbitration{.burst = 3, .low_weight = 1, .medium_weight = 2, .high_weight = 4}.encode()),
      0x04020103u);
  EXPECT_EQ((PowerManagement{.state = 1, .workload = 2}.encode()), 0x41u);
  EXPECT_EQ((TemperatureThreshold{.kelvin = 0x157, .sensor = 2, .kind = 1}.encode()), 0x00120157u);
  EXPECT_EQ((ErrorRecovery{.retry_100ms = 5, .deallocated_error = true}.encode()), 0x00010005u);
  EXPECT_EQ((NumberOfQueues{.submission = 1, .completion = 2}.encode()), 0x00020001u);
}

TEST(Feature, AnyValueDecodesAndEncodesToTheSameFields) {
  Rng rng(6);
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<uint32_t>(rng.next());
    EXPECT_EQ(Arbitration::decode(value).encode(), value & 0xffffff07);
    EXPECT_EQ(PowerManagement::decode(value).encode(), value & 0xff);
    EXPECT_EQ(TemperatureThreshold::decode(value).encode(), value & 0x3fffff);
    EXPECT_EQ(ErrorRecovery::decode(value).encode(), value & 0x1ffff);
    EXPECT_EQ(NumberOfQueues::decode(value).encode(), value);
    EXPECT_EQ(AsynchronousEvent::decode(value).encode(), value & 0xffff07);
  }
}

}  // namespace
}  // namespace cairn::nvme
