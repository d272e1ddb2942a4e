// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/logs.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "apps/nvme/ana_text.h"
#include "apps/nvme/fields.h"
#include "base/table.h"
#include "base/words.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/status_format.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

// Rows under a heading, or a sentence when there are none.
std::string table_or(const Rows& rows, const char* nothing) {
  return rows.size() > 1 ? table_text(rows) : fmt::format("{}\n", nothing);
}

std::string effect_names(uint32_t effects) {
  using nvme::Effect;
  return bit_names(effects & ~Effect::kSupported,
                   {{Effect::kContent, "changes data"},
                    {Effect::kNamespace, "changes the namespace"},
                    {Effect::kNamespaceInventory, "changes namespaces"},
                    {Effect::kController, "changes the controller"},
                    {Effect::kAloneOnNamespace, "alone on its namespace"},
                    {Effect::kAlone, "alone"}});
}

template <class Opcode>
Json add_effects(std::string_view set, const std::array<nvme::Le32, 256>& effects, Rows& rows) {
  Json json = Json::array();
  for (size_t i = 0; i < effects.size(); ++i) {
    if ((effects[i] & nvme::Effect::kSupported) == 0) continue;
    const std::string name(nvme::name(static_cast<Opcode>(i)));
    json.push_back({{"opcode", i}, {"name", name}, {"effects", effects[i].value()}});
    rows.push_back({std::string(set), fmt::format("{:02x}h", i), name, effect_names(effects[i])});
  }
  return json;
}

}  // namespace

ShownLog show_errors(Bytes page) {
  Json errors = Json::array();
  Rows rows = {{"COUNT", "QUEUE", "COMMAND", "NSID", "LBA", "STATUS"}};
  for (; page.size() >= sizeof(nvme::ErrorEntry); page = page.subspan(sizeof(nvme::ErrorEntry))) {
    const auto entry = load<nvme::ErrorEntry>(page);
    if (entry.error_count == 0) continue;
    const nvme::Status status = nvme::Status::from_wire(entry.status);
    errors.push_back({{"error_count", entry.error_count.value()},
                      {"sqid", entry.sqid.value()},
                      {"cmdid", entry.cid.value()},
                      {"status_field", entry.status.value() >> 1},
                      {"phase_tag", entry.status.value() & 1},
                      {"status", nvme::text(status)},
                      {"parm_error_location", entry.parameter.value()},
                      {"lba", entry.lba.value()},
                      {"nsid", entry.nsid.value()},
                      {"vs", entry.vendor_page},
                      {"trtype", entry.transport},
                      {"cs", entry.command_specific.value()},
                      {"trtype_spec_info", entry.transport_specific.value()}});
    rows.push_back({fmt::to_string(entry.error_count.value()), fmt::to_string(entry.sqid.value()),
                    fmt::to_string(entry.cid.value()), fmt::to_string(entry.nsid.value()),
                    fmt::to_string(entry.lba.value()), nvme::text(status)});
  }
  return {{{"errors", std::move(errors)}}, table_or(rows, "There were no errors.")};
}

ShownLog show_changed_namespaces(const nvme::ChangedNamespacesPage& page) {
  if (page.nsids[0] == nvme::kBroadcastNsid) {
    return {{{"all", true}, {"nsids", Json::array()}}, "More than 1024 namespaces changed.\n"};
  }
  Json nsids = Json::array();
  std::string text;
  for (const nvme::Le32& nsid : page.nsids) {
    if (nsid == 0) break;
    nsids.push_back(nsid.value());
    text += fmt::format("{}\n", nsid.value());
  }
  if (text.empty()) text = "No namespace changed since this was last read.\n";
  return {{{"all", false}, {"nsids", std::move(nsids)}}, text};
}

ShownLog show_effects(const nvme::CommandEffectsPage& page) {
  Rows rows = {{"SET", "OPCODE", "COMMAND", "EFFECT"}};
  Json admin = add_effects<nvme::AdminOpcode>("admin", page.admin, rows);
  Json io = add_effects<nvme::IoOpcode>("I/O", page.io, rows);
  return {{{"admin", std::move(admin)}, {"io", std::move(io)}},
          table_or(rows, "No command is named.")};
}

ShownLog show_ana(Bytes page) {
  Json groups = Json::array();
  Rows rows = {{"GROUP", "STATE", "CHANGES", "NAMESPACES"}};
  uint64_t changes = 0;
  if (page.size() >= sizeof(nvme::AnaHeader)) {
    const auto header = load<nvme::AnaHeader>(page);
    changes = header.change_count;
    page = page.subspan(sizeof header);
    for (uint16_t i = 0; i < header.groups && page.size() >= sizeof(nvme::AnaGroup); ++i) {
      const auto group = load<nvme::AnaGroup>(page);
      page = page.subspan(sizeof group);
      std::vector<uint32_t> nsids;
      while (nsids.size() < group.namespaces && page.size() >= sizeof(nvme::Le32)) {
        nsids.push_back(load<nvme::Le32>(page));
        page = page.subspan(sizeof(nvme::Le32));
      }
      groups.push_back({{"grpid", group.group_id.value()},
                        {"state", ana_text(group.state())},
                        {"chgcnt", group.change_count.value()},
                        {"nsids", nsids}});
      rows.push_back({fmt::to_string(group.group_id.value()), ana_text(group.state()),
                      fmt::to_string(group.change_count.value()),
                      fmt::format("{}", fmt::join(nsids, ", "))});
    }
  }
  return {{{"chgcnt", changes}, {"ngrps", groups.size()}, {"groups", std::move(groups)}},
          table_or(rows, "There are no groups.")};
}

ShownLog show_firmware(const nvme::FirmwarePage& page) {
  Json json = {{"afi", page.active}};
  Rows rows = {{"SLOT", "REVISION"}};
  for (size_t i = 0; i < page.revisions.size(); ++i) {
    const std::string revision(page.revisions[i].trimmed());
    if (revision.empty()) continue;
    json[fmt::format("frs{}", i + 1)] = revision;
    const bool is_active = (page.active & 7u) == i + 1;
    rows.push_back({fmt::format("{}{}", i + 1, is_active ? " (active)" : ""), escaped(revision)});
  }
  return {std::move(json), table_or(rows, "No slot holds firmware.")};
}

ShownLog show_reservation_notice(const nvme::ReservationNoticePage& page) {
  const char* what = "";
  switch (page.type) {
    case nvme::ReservationNotice::kEmpty:
      what = "none";
      break;
    case nvme::ReservationNotice::kRegistrationPreempted:
      what = "registration preempted";
      break;
    case nvme::ReservationNotice::kReservationReleased:
      what = "reservation released";
      break;
    case nvme::ReservationNotice::kReservationPreempted:
      what = "reservation preempted";
      break;
    default:
      what = "unknown";
  }
  const bool is_empty = page.type == nvme::ReservationNotice::kEmpty;
  return {{{"lpc", page.count.value()},
           {"type", what},
           {"nalp", page.available},
           {"nsid", page.nsid.value()}},
          is_empty ? "There is no notice.\n"
                   : fmt::format("{} of namespace {}, {} more\n", what, page.nsid.value(),
                                 page.available)};
}

}  // namespace cairn::apps
