// SPDX-License-Identifier: Apache-2.0
// Identify Controller for people and scripts (NVMe Base 2.0, 5.17.2.1).
#include <fmt/format.h>

#include <string>

#include "apps/nvme/pages.h"
#include "base/units.h"
#include "nvme/format/property_format.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;

std::string version_text(uint32_t value) {
  const nvme::Version version = nvme::Version::decode(value);
  return fmt::format("{}.{}.{}", version.major, version.minor, version.tertiary);
}

std::string transfer_text(uint8_t mdts, uint32_t page_size) {
  if (mdts == 0) return "any size";
  return mdts > 31 ? "more than any" : text_bytes(uint64_t{page_size} << mdts) + " in one command";
}

std::string type_text(nvme::ControllerType type) {
  switch (type) {
    case nvme::ControllerType::kNotReported:
      return "not reported";
    case nvme::ControllerType::kIo:
      return "I/O";
    case nvme::ControllerType::kDiscovery:
      return "discovery";
    case nvme::ControllerType::kAdmin:
      return "administration";
  }
  return "reserved";
}

std::string entry_text(uint8_t sizes) {
  return fmt::format("{} to {} bytes", 1u << (sizes & 15), 1u << (sizes >> 4));
}

std::string capacity_text(const nvme::Le128& bytes) {
  if (bytes.low == 0 && bytes.high == 0) return "not reported";
  return bytes.high == 0 ? text_bytes(bytes.low) : "";
}

std::string sgl_text(uint32_t sgls) {
  if ((sgls & 3) == 0) return "none";
  return bit_names(sgls, {{nvme::Sgls::kKeyed, "keyed"},
                          {nvme::Sgls::kBitBucket, "bit bucket"},
                          {nvme::Sgls::kOversize, "oversize"},
                          {nvme::Sgls::kOffset, "offsets"},
                          {nvme::Sgls::kTransport, "transport data blocks"}});
}

void add_identity(FieldTable& table, const nvme::IdentifyController& page, uint32_t page_size) {
  table.bits("vid", page.pci_vendor);
  table.bits("ssvid", page.pci_subsystem_vendor);
  table.text("sn", page.serial_number.trimmed());
  table.text("mn", page.model_number.trimmed());
  table.text("fr", page.firmware_revision.trimmed());
  table.number("rab", page.arbitration_burst);
  const auto& oui = page.ieee_oui;
  table.bits("ieee", static_cast<uint32_t>(oui[2]) << 16 | oui[1] << 8 | oui[0]);
  table.bits("cmic", page.multipath,
             bit_names(page.multipath, {{nvme::Cmic::kPorts, "several ports"},
                                        {nvme::Cmic::kControllers, "several controllers"},
                                        {nvme::Cmic::kVirtualFunction, "virtual function"},
                                        {nvme::Cmic::kAna, "ANA"}}));
  table.number("mdts", page.transfer_max, transfer_text(page.transfer_max, page_size));
  table.number("cntlid", page.controller_id);
  table.bits("ver", page.version, version_text(page.version));
  table.number("rtd3r", page.resume_latency_us);
  table.number("rtd3e", page.entry_latency_us);
  using Mask = nvme::EventMask;
  table.bits("oaes", page.events,
             bit_names(page.events, {{Mask::kNamespaceAttributes, "namespace attributes"},
                                     {Mask::kFirmwareActivation, "firmware activation"},
                                     {Mask::kAna, "ANA"},
                                     {Mask::kDiscoveryLog, "discovery log"}}));
  using Attr = nvme::Ctratt;
  table.bits("ctratt", page.attributes,
             bit_names(page.attributes, {{Attr::kHostId128, "128-bit host id"},
                                         {Attr::kNvmSets, "NVM sets"},
                                         {Attr::kEnduranceGroups, "endurance groups"},
                                         {Attr::kTrafficKeepAlive, "traffic keeps alive"},
                                         {Attr::kUuidList, "UUID list"},
                                         {Attr::kMultiDomain, "domains"}}));
  table.bits("rrls", page.read_recovery_levels);
  table.number("cntrltype", static_cast<uint8_t>(page.controller_type),
               type_text(page.controller_type));
  table.text("fguid", hex_text(page.fru_guid));
  for (size_t i = 0; i < page.retry_delay_100ms.size(); ++i) {
    table.number(fmt::format("crdt{}", i + 1), page.retry_delay_100ms[i]);
  }
}

void add_admin(FieldTable& table, const nvme::IdentifyController& page) {
  table.bits("nvmsr", page.subsystem_report);
  table.bits("vwci", page.vpd_write_cycles);
  table.bits("mec", page.management);
  using Oacs = nvme::Oacs;
  table.bits("oacs", page.admin_commands,
             bit_names(page.admin_commands, {{Oacs::kSecurity, "security"},
                                             {Oacs::kFormat, "format"},
                                             {Oacs::kFirmware, "firmware"},
                                             {Oacs::kNamespaceManagement, "namespace management"},
                                             {Oacs::kSelfTest, "self-test"},
                                             {Oacs::kDirectives, "directives"}}));
  table.number("acl", page.aborts_max, fmt::format("{} aborts at once", page.aborts_max + 1));
  table.number("aerl", page.events_max, fmt::format("{} event requests", page.events_max + 1));
  table.bits("frmw", page.firmware_updates);
  using Lpa = nvme::Lpa;
  table.bits("lpa", page.log_attributes,
             bit_names(page.log_attributes, {{Lpa::kSmartPerNamespace, "health per namespace"},
                                             {Lpa::kCommandEffects, "command effects"},
                                             {Lpa::kExtendedData, "offsets"},
                                             {Lpa::kTelemetry, "telemetry"},
                                             {Lpa::kPersistentEvent, "persistent events"},
                                             {Lpa::kSupportedPages, "supported pages"}}));
  table.number("elpe", page.error_log_entries,
               fmt::format("{} entries in the error log", page.error_log_entries + 1));
  table.number("npss", page.power_states, counted(page.power_states + 1u, "power state"));
  table.bits("avscc", page.admin_vendor);
  table.bits("apsta", page.autonomous_power);
  table.number("wctemp", page.warning_kelvin, celsius_text(page.warning_kelvin));
  table.number("cctemp", page.critical_kelvin, celsius_text(page.critical_kelvin));
  table.number("mtfa", page.firmware_time_100ms);
  table.number("hmpre", page.host_memory_preferred);
  table.number("hmmin", page.host_memory_min);
  table.large("tnvmcap", page.capacity, capacity_text(page.capacity));
  table.large("unvmcap", page.unallocated_capacity, capacity_text(page.unallocated_capacity));
  table.bits("rpmbs", page.replay_protected);
  table.number("edstt", page.self_test_minutes);
  table.bits("dsto", page.self_test_options);
  table.number("fwug", page.firmware_granularity);
  table.number("kas", page.keep_alive_100ms,
               page.keep_alive_100ms == 0
                   ? "no keep alive"
                   : fmt::format("keep alive in steps of {} ms", page.keep_alive_100ms * 100));
  table.bits("hctma", page.thermal_management);
  table.number("mntmt", page.thermal_min_kelvin);
  table.number("mxtmt", page.thermal_max_kelvin);
  table.bits("sanicap", page.sanitize);
  table.number("hmminds", page.host_memory_descriptor_min);
  table.number("hmmaxd", page.host_memory_descriptors_max);
  table.number("nsetidmax", page.nvm_set_max);
  table.number("endgidmax", page.endurance_group_max);
}

void add_paths(FieldTable& table, const nvme::IdentifyController& page) {
  table.number("anatt", page.ana_transition_s,
               fmt::format("{} s for a transition", page.ana_transition_s));
  using Cap = nvme::Anacap;
  table.bits("anacap", page.ana_capabilities,
             bit_names(page.ana_capabilities, {{Cap::kOptimized, "optimized"},
                                               {Cap::kNonOptimized, "non-optimized"},
                                               {Cap::kInaccessible, "inaccessible"},
                                               {Cap::kPersistentLoss, "persistent loss"},
                                               {Cap::kChange, "change"},
                                               {Cap::kGroupIdStable, "stable groups"}}));
  table.number("anagrpmax", page.ana_group_max);
  table.number("nanagrpid", page.ana_groups);
  table.number("pels", page.persistent_event_log);
  table.number("domainid", page.domain_id);
  table.large("megcap", page.endurance_group_capacity_max);
}

void add_io(FieldTable& table, const nvme::IdentifyController& page) {
  table.bits("sqes", page.submission_entry, entry_text(page.submission_entry));
  table.bits("cqes", page.completion_entry, entry_text(page.completion_entry));
  table.number(
      "maxcmd", page.commands_max,
      page.commands_max == 0 ? "" : fmt::format("{} on a queue", page.commands_max.value()));
  table.number("nn", page.namespaces, "the largest namespace id");
  using Oncs = nvme::Oncs;
  table.bits("oncs", page.nvm_commands,
             bit_names(page.nvm_commands, {{Oncs::kCompare, "compare"},
                                           {Oncs::kWriteUncorrectable, "write uncorrectable"},
                                           {Oncs::kDatasetManagement, "deallocate"},
                                           {Oncs::kWriteZeroes, "write zeroes"},
                                           {Oncs::kSaveAndSelect, "saved features"},
                                           {Oncs::kReservations, "reservations"},
                                           {Oncs::kTimestamp, "timestamp"},
                                           {Oncs::kVerify, "verify"},
                                           {Oncs::kCopy, "copy"}}));
  table.bits("fuses", page.fused,
             bit_names(page.fused, {{nvme::Fuses::kCompareAndWrite, "compare and write"}}));
  table.bits("fna", page.format);
  table.bits("vwc", page.write_cache,
             (page.write_cache & nvme::Vwc::kPresent) != 0 ? "volatile write cache: flush counts"
                                                           : "no volatile write cache");
  table.number("awun", page.atomic_write, counted(page.atomic_write + 1u, "block"));
  table.number("awupf", page.atomic_write_power_fail,
               counted(page.atomic_write_power_fail + 1u, "block"));
  table.bits("icsvscc", page.io_vendor);
  table.bits("nwpc", page.write_protection);
  table.number("acwu", page.atomic_compare_write, counted(page.atomic_compare_write + 1u, "block"));
  table.bits("ocfs", page.copy_formats,
             bit_names(page.copy_formats, {{nvme::Ocfs::kFormat0, "format 0"}}));
  table.bits("sgls", page.sgl, sgl_text(page.sgl));
  table.number("mnan", page.namespaces_allowed_max);
  table.large("maxdna", page.domain_attachments_max);
  table.number("maxcna", page.controller_attachments_max);
}

void add_fabrics(FieldTable& table, const nvme::IdentifyController& page) {
  table.text("subnqn", page.subsystem_nqn.get().value_or(""));
  const uint64_t capsule = uint64_t{page.command_capsule} * 16;
  table.number("ioccsz", page.command_capsule,
               capsule > 64 ? text_bytes(capsule - 64) + " of data in a capsule" : "no data");
  table.number("iorcsz", page.response_capsule);
  table.number("icdoff", page.in_capsule_offset);
  table.bits("fcatt", page.fabrics_attributes,
             (page.fabrics_attributes & nvme::Fcatt::kStatic) != 0 ? "fixed controllers"
                                                                   : "a controller per host");
  table.number("msdbd", page.sgl_descriptors_max);
  table.bits("ofcs", page.fabrics_commands,
             bit_names(page.fabrics_commands, {{nvme::Ofcs::kDisconnect, "disconnect"}}));
  table.number("dctype", page.discovery_type);
  Json states = Json::array();
  for (size_t i = 0; i <= page.power_states && i < page.power.size(); ++i) {
    const nvme::PowerState& state = page.power[i];
    states.push_back({{"max_power", state.power_max.value()},
                      {"max_power_scale", state.flags & 1},
                      {"non-operational_state", state.flags >> 1 & 1},
                      {"entry_lat", state.entry_us.value()},
                      {"exit_lat", state.exit_us.value()},
                      {"read_tput", state.read_throughput},
                      {"read_lat", state.read_latency},
                      {"write_tput", state.write_throughput},
                      {"write_lat", state.write_latency},
                      {"idle_power", state.idle_power.value()},
                      {"idle_scale", state.idle_scale >> 6},
                      {"active_power", state.active_power.value()},
                      {"active_power_work", state.active_workload & 7},
                      {"active_scale", state.active_workload >> 6}});
  }
  table.json_only("psds", std::move(states));
}

}  // namespace

FieldTable fields_of(const nvme::IdentifyController& page, uint32_t page_size) {
  FieldTable table;
  add_identity(table, page, page_size);
  add_admin(table, page);
  add_paths(table, page);
  add_io(table, page);
  add_fabrics(table, page);
  return table;
}

}  // namespace cairn::apps
