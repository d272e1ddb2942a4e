// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/identify.h"

#include <algorithm>
#include <bit>

#include "nvme/controller/controller.h"
#include "nvme/controller/namespace_ids.h"
#include "nvme/format/limits.h"
#include "nvme/format/pci_format.h"

namespace cairn::nvme {

namespace {

// A count of blocks as a field of 16 bits counted from zero; at least one block.
uint16_t zero_based(uint64_t blocks) {
  return static_cast<uint16_t>(std::clamp<uint64_t>(blocks, 1, 65536) - 1);
}

uint8_t reservation_capabilities(bool keep) {
  return static_cast<uint8_t>(
      Rescap::kWriteExclusive | Rescap::kExclusiveAccess | Rescap::kWriteExclusiveRegistrants |
      Rescap::kExclusiveAccessRegistrants | Rescap::kWriteExclusiveAll |
      Rescap::kExclusiveAccessAll | Rescap::kIgnoreKey13 | (keep ? Rescap::kPersist : 0));
}

// What only hosts on a fabric have: several paths, and capsules.
void set_fabric_fields(IdentifyController& page) {
  page.multipath = Cmic::kPorts | Cmic::kControllers | Cmic::kAna;
  page.ana_transition_s = 10;
  page.ana_capabilities = Anacap::kOptimized | Anacap::kNonOptimized | Anacap::kInaccessible |
                          Anacap::kPersistentLoss | Anacap::kChange | Anacap::kGroupIdStable;
  page.ana_group_max = kAnaGroupsMax;
  page.ana_groups = kAnaGroupsMax;
  page.command_capsule = (sizeof(Sqe) + kInCapsuleDataMax) / 16;
  page.response_capsule = sizeof(Cqe) / 16;
  page.incarnation_magic = kIncarnationMagic;
  page.replication_magic = kReplicationMagic;
  page.fabrics_commands = kServesDisconnect ? Ofcs::kDisconnect : uint16_t{0};
}

void set_pci_fields(IdentifyController& page) {
  page.pci_vendor = kPciVendor;
  page.pci_subsystem_vendor = kPciSubsystemVendor;
  page.admin_commands = Oacs::kDoorbellBuffers;
}

void set_io_fields(IdentifyController& page, const ControllerFacts& facts) {
  page.log_attributes =
      Lpa::kSmartPerNamespace | Lpa::kCommandEffects | Lpa::kExtendedData | Lpa::kSupportedPages;
  page.capacity.low = facts.capacity;
  page.namespaces = nsid_max(facts.kind);
  page.namespaces_allowed_max = kNamespacesMax;
  page.nvm_commands = Oncs::kCompare | Oncs::kDatasetManagement | Oncs::kWriteZeroes |
                      Oncs::kSaveAndSelect | Oncs::kReservations | Oncs::kCopy;
  page.fused = Fuses::kCompareAndWrite;
  // A namespace with a cache may be added later, and hosts read this once: they must flush.
  page.write_cache = Vwc::kPresent | Vwc::kFlushAll;
  // AWUN, AWUPF and ACWU stay at one block: each namespace says what it can do beyond that.
  page.copy_formats = Ocfs::kFormat0;
}

}  // namespace

IdentifyController identify_controller(const ControllerFacts& facts) {
  const SubsystemOptions& subsystem = facts.subsystem;
  const bool discovery = facts.kind == ControllerKind::kDiscovery;
  const bool pci = facts.kind == ControllerKind::kPci;
  IdentifyController page;
  page.serial_number.set_padded(subsystem.serial.empty() ? make_serial(subsystem.nqn)
                                                         : subsystem.serial);
  page.model_number.set_padded(subsystem.model);
  page.firmware_revision.set_padded(kFirmwareRevision);
  page.arbitration_burst = 6;
  page.transfer_max =
      facts.kind == ControllerKind::kDiscovery ? kDiscoveryTransferPagesShift : kTransferPagesShift;
  page.controller_id = facts.id;
  page.version = kVersion.encode();
  page.events = Controller::events_offered(facts.kind);
  page.attributes = pci ? Ctratt::kHostId128 : Ctratt::kHostId128 | Ctratt::kTrafficKeepAlive;
  page.controller_type = discovery ? ControllerType::kDiscovery : ControllerType::kIo;
  page.aborts_max = kAbortsMax - 1;
  page.events_max = kEventRequestsMax - 1;
  page.firmware_updates = Frmw::kSlot1ReadOnly | Frmw::slots(1);
  page.log_attributes = Lpa::kExtendedData;
  page.error_log_entries = kErrorEntriesMax - 1;
  page.warning_kelvin = kWarningKelvin;
  page.critical_kelvin = kCriticalKelvin;
  if (!pci) page.keep_alive_100ms = kKeepAliveUnitMs / 100;
  page.submission_entry = 0x66;
  page.completion_entry = 0x44;
  page.subsystem_nqn.set(subsystem.nqn);
  page.sgl = Sgls::kByteAligned;
  if (!pci) {
    page.commands_max = subsystem.queue_entries_max;
    page.sgl = Sgls::kByteAligned | Sgls::kOffset | Sgls::kTransport;
    page.sgl_descriptors_max = 1;
  }
  if (discovery) {
    page.discovery_type = 1;  // a direct discovery controller
    return page;
  }
  set_io_fields(page, facts);
  if (pci) {
    set_pci_fields(page);
  } else {
    set_fabric_fields(page);
  }
  return page;
}

IdentifyNamespace identify_namespace(const NamespaceFacts& facts) {
  const drive::Geometry& geometry = facts.geometry;
  IdentifyNamespace page;
  page.size = geometry.blocks;
  page.capacity = geometry.blocks;
  page.used = geometry.blocks;
  page.features = Nsfeat::kAtomic | Nsfeat::kOptimal;
  page.multipath = facts.shared ? Nmic::kShared : uint8_t{0};
  page.reservations = reservation_capabilities(facts.keep_reservations);
  page.deallocate = Dlfeat::kReadsZeroes | Dlfeat::kWriteZeroesDeallocates;
  page.atomic_write = zero_based(geometry.atomic_blocks);
  page.atomic_write_power_fail = zero_based(geometry.atomic_blocks);
  page.atomic_compare_write = zero_based(geometry.atomic_blocks);
  // Writes are atomic up to the next multiple of atomic_blocks (docs/drive.md); 0 is no boundary,
  // which is right for single blocks.
  page.atomic_boundary = zero_based(geometry.atomic_blocks);
  page.atomic_boundary_power_fail = zero_based(geometry.atomic_blocks);
  page.nvm_capacity.low = geometry.bytes();
  page.write_granularity = zero_based(geometry.optimal_blocks);
  page.write_alignment = zero_based(geometry.optimal_blocks);
  page.optimal_write = zero_based(geometry.optimal_blocks);
  page.deallocate_granularity = zero_based(geometry.discard_blocks);
  page.deallocate_alignment = zero_based(geometry.discard_blocks);
  const uint32_t copy_blocks =
      std::min(facts.limits.copy_bytes_max / geometry.block_size, geometry.transfer_blocks);
  page.copy_range_blocks_max = static_cast<uint16_t>(std::min<uint32_t>(copy_blocks, 65535));
  page.copy_blocks_max = copy_blocks;
  page.copy_ranges_max = static_cast<uint8_t>(facts.limits.copy_ranges_max - 1);
  page.ana_group = facts.options.ana_group;
  page.attributes = facts.options.read_only ? Nsattr::kWriteProtected : uint8_t{0};
  page.nguid = facts.options.nguid;
  page.lba_formats[0].block_shift = static_cast<uint8_t>(std::countr_zero(geometry.block_size));
  if (facts.incarnation.opening != 0) {
    page.incarnation_magic = kIncarnationMagic;
    page.incarnation_medium = facts.incarnation.medium;
    page.incarnation_opening = facts.incarnation.opening;
  }
  return page;
}

IdentifyNamespaceIndependent identify_independent(const NamespaceFacts& facts) {
  IdentifyNamespaceIndependent page;
  page.multipath = facts.shared ? Nmic::kShared : uint8_t{0};
  page.reservations = reservation_capabilities(facts.keep_reservations);
  page.ana_group = facts.options.ana_group;
  page.attributes = facts.options.read_only ? Nsattr::kWriteProtected : uint8_t{0};
  page.status = IdentifyNamespaceIndependent::kReady;
  return page;
}

void identify_descriptors(const NamespaceOptions& options, MutableBytes page) {
  NamespaceDescriptorWriter writer(page);
  writer.add(NamespaceIdType::kNguid, bytes_of(options.nguid));
  writer.add(NamespaceIdType::kUuid, bytes_of(options.uuid));
  constexpr std::array<uint8_t, 1> kNvm{static_cast<uint8_t>(Csi::kNvm)};
  writer.add(NamespaceIdType::kCsi, bytes_of(kNvm));
}

}  // namespace cairn::nvme
