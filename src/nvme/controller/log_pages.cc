// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/log_pages.h"

#include <algorithm>
#include <array>

#include "nvme/controller/features.h"
#include "nvme/controller/identify.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {

namespace {

template <class Layout>
LogBytes to_log(const Layout& layout) {
  const Bytes bytes = bytes_of(layout);
  return {bytes.begin(), bytes.end()};
}

template <class Layout>
void append(LogBytes& page, const Layout& layout) {
  const Bytes bytes = bytes_of(layout);
  page.insert(page.end(), bytes.begin(), bytes.end());
}

constexpr uint32_t kPageSupported = 1u << 0;     // LSUPP
constexpr uint32_t kFeatureSupported = 1u << 0;  // FSUPP
constexpr uint32_t kFeatureChanges = 1u << 4;    // CCC: may change controller capabilities
constexpr uint32_t kScopeNamespace = 1u << 20;   // FSP
constexpr uint32_t kScopeController = 1u << 21;

}  // namespace

Answer read_log(Bytes page, const GetLogFields& fields, MutableBytes data) {
  if (fields.by_index || !is_aligned(fields.offset, 4) || fields.offset > page.size()) {
    return refused(StatusCode::kInvalidField);
  }
  if (data.size() < fields.length()) return refused(StatusCode::kDataSglLengthInvalid);
  const Bytes rest = page.subspan(static_cast<size_t>(fields.offset));
  const Bytes part = rest.first(std::min<uint64_t>(rest.size(), fields.length()));
  std::ranges::copy(part, data.begin());
  std::ranges::fill(data.subspan(part.size()), std::byte{0});
  return answered();
}

bool has_log_page(LogPage page, ControllerKind kind) {
  const bool discovery = kind == ControllerKind::kDiscovery;
  switch (page) {
    case LogPage::kSupported:
    case LogPage::kError:
      return true;
    case LogPage::kDiscovery:
      return discovery;
    case LogPage::kHealth:
    case LogPage::kFirmware:
    case LogPage::kChangedNamespaces:
    case LogPage::kCommandEffects:
    case LogPage::kFeatureEffects:
    case kManagementEffects:
    case LogPage::kReservation:
      return !discovery;
    case LogPage::kAna:
      return kind == ControllerKind::kIo;
    default:
      return false;
  }
}

LogBytes supported_pages(ControllerKind kind) {
  std::array<Le32, 256> pages{};
  for (uint32_t id = 0; id < pages.size(); ++id) {
    if (has_log_page(static_cast<LogPage>(id), kind)) pages[id] = kPageSupported;
  }
  return to_log(pages);
}

LogBytes feature_effects(ControllerKind kind) {
  std::array<Le32, 256> features{};
  for (uint32_t id = 0; id < features.size(); ++id) {
    const std::optional<uint32_t> can = Features::capabilities(static_cast<Feature>(id), kind);
    if (!can) continue;
    const bool of_namespace = (*can & FeatureCapabilities::kPerNamespace) != 0;
    const bool changes = static_cast<Feature>(id) == Feature::kNumberOfQueues;
    features[id] = kFeatureSupported | (changes ? kFeatureChanges : 0) |
                   (of_namespace ? kScopeNamespace : kScopeController);
  }
  return to_log(features);
}

LogBytes command_effects(ControllerKind kind, bool has_vendor_command) {
  CommandEffectsPage page;
  if (has_vendor_command && kind == ControllerKind::kIo) {
    page.admin[static_cast<uint8_t>(AdminOpcode::kVendorSend)] =
        Effect::kSupported | Effect::kNamespaceInventory;
  }
  for (const AdminOpcode opcode :
       {AdminOpcode::kGetLogPage, AdminOpcode::kIdentify, AdminOpcode::kAbort,
        AdminOpcode::kSetFeatures, AdminOpcode::kGetFeatures,
        AdminOpcode::kAsynchronousEventRequest}) {
    page.admin[static_cast<uint8_t>(opcode)] = Effect::kSupported;
  }
  if (kind == ControllerKind::kPci) {
    for (const AdminOpcode opcode :
         {AdminOpcode::kCreateCompletionQueue, AdminOpcode::kCreateSubmissionQueue,
          AdminOpcode::kDeleteCompletionQueue, AdminOpcode::kDeleteSubmissionQueue,
          AdminOpcode::kDoorbellBufferConfig}) {
      page.admin[static_cast<uint8_t>(opcode)] = Effect::kSupported;
    }
  } else {
    page.admin[static_cast<uint8_t>(AdminOpcode::kKeepAlive)] = Effect::kSupported;
    page.io[static_cast<uint8_t>(IoOpcode::kReplicatedWrite)] =
        Effect::kSupported | Effect::kContent;
  }
  for (const IoOpcode opcode : {IoOpcode::kFlush, IoOpcode::kRead, IoOpcode::kCompare,
                                IoOpcode::kReservationRegister, IoOpcode::kReservationReport,
                                IoOpcode::kReservationAcquire, IoOpcode::kReservationRelease}) {
    page.io[static_cast<uint8_t>(opcode)] = Effect::kSupported;
  }
  for (const IoOpcode opcode :
       {IoOpcode::kWrite, IoOpcode::kWriteZeroes, IoOpcode::kDatasetManagement, IoOpcode::kCopy}) {
    page.io[static_cast<uint8_t>(opcode)] = Effect::kSupported | Effect::kContent;
  }
  return to_log(page);
}

LogBytes firmware_page() {
  FirmwarePage page;
  page.active = 1;
  page.revisions[0].set_padded(kFirmwareRevision);
  return to_log(page);
}

LogBytes changed_namespaces_page(const std::set<uint32_t>& nsids) {
  ChangedNamespacesPage page;
  if (nsids.size() > page.nsids.size()) {
    page.nsids[0] = kBroadcastNsid;
  } else {
    std::ranges::copy(nsids, page.nsids.begin());
  }
  return to_log(page);
}

LogBytes reservation_page(const ReservationNotices& notices) { return to_log(notices.page()); }

LogBytes health_page(const HealthFacts& facts) {
  constexpr uint64_t kSectorsPerUnit = 1000;
  HealthPage page;
  page.critical_warning = facts.warnings;
  page.temperature_kelvin = kTemperatureKelvin;
  page.spare_percent = 100;
  page.spare_threshold_percent = 10;
  page.data_units_read.low = align_up(facts.totals.sectors_read, kSectorsPerUnit) / kSectorsPerUnit;
  page.data_units_written.low =
      align_up(facts.totals.sectors_written, kSectorsPerUnit) / kSectorsPerUnit;
  page.host_reads.low = facts.totals.reads;
  page.host_writes.low = facts.totals.writes;
  page.power_cycles.low = 1;
  page.power_on_hours.low = static_cast<uint64_t>(facts.up / 3600_s);
  page.media_errors.low = facts.totals.media_errors;
  page.error_log_entries.low = facts.errors;
  return to_log(page);
}

LogBytes ana_page(const Subsystem& subsystem, std::string_view host_nqn, bool groups_only) {
  const std::map<uint32_t, AnaGroupState>& groups = subsystem.ana_groups();
  AnaHeader header;
  header.change_count = subsystem.ana_changes();
  header.groups = static_cast<uint16_t>(groups.size());
  LogBytes page = to_log(header);
  for (const auto& [id, state] : groups) {
    std::vector<Le32> members;
    for (const auto& [nsid, space] : subsystem.namespaces()) {
      if (groups_only || space.options.ana_group != id) continue;
      if (space.options.is_for(host_nqn)) members.push_back(nsid);
    }
    AnaGroup group;
    group.group_id = id;
    group.namespaces = static_cast<uint32_t>(members.size());
    group.change_count = state.change_count;
    group.set_state(state.state);
    append(page, group);
    for (const Le32& nsid : members) append(page, nsid);
  }
  // Hosts compute its size from Identify Controller and read all of it, in pieces.
  constexpr size_t kSizeMax =
      sizeof(AnaHeader) + kAnaGroupsMax * sizeof(AnaGroup) + kNamespacesMax * sizeof(Le32);
  page.resize(kSizeMax);
  return page;
}

}  // namespace cairn::nvme
