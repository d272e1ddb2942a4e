// SPDX-License-Identifier: Apache-2.0
#include "server/serve/control_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/uuid.h"
#include "base/words.h"
#include "nvme/controller/namespace_ids.h"
#include "server/control/health_json.h"
#include "server/open/take_drive.h"
#include "server/serve/control.h"
#include "server/serve/flash_stats.h"
#include "server/serve/lane_stats.h"
#include "server/serve/metrics.h"

namespace cairn::server {

namespace {

using nvme::NamespaceInfo;
using nvme::SubsystemOptions;

// An object with a list under `name`, cut at kListedMax.
Json listed(const char* name, std::vector<Json> items) {
  const size_t more = items.size() - std::min(items.size(), kListedMax);
  items.resize(items.size() - more);
  Json json = {{name, std::move(items)}};
  if (more > 0) json[fmt::format("{}_more", name)] = more;
  return json;
}

// The subsystems that a request is about.
Attempt<std::vector<SubsystemOptions>> meant(Box& box, const std::string& nqn) {
  std::vector<SubsystemOptions> all = box.registry().subsystems();
  if (nqn.empty()) return all;
  const Attempt<std::string> found = box.find(nqn);
  if (!found) return std::unexpected(found.error());
  std::erase_if(all, [&found](const SubsystemOptions& each) { return each.nqn != *found; });
  return all;
}

Json json_of(const std::string& nqn, const NamespaceInfo& info) {
  return {{"nqn", nqn},
          {"nsid", info.options.nsid},
          {"drive", info.options.drive_text()},
          {"size", info.geometry.bytes()},
          {"block_size", info.geometry.block_size},
          {"uuid", uuid_text(info.options.uuid)},
          {"nguid", fmt::format("{:02x}", fmt::join(info.options.nguid, ""))},
          {"ana_group", info.options.ana_group},
          {"ana_state", ana_word(info.ana_state)},
          {"read_only", info.options.read_only}};
}

Json json_of(const Box::NotServed& failed, const drive::WatchedDrive* health) {
  Json json = {{"nqn", failed.nqn},
               {"nsid", failed.options.nsid},
               {"drive", failed.options.drive_text()},
               {"problem", last_line(failed.problem)}};
  json.update(health_json(health));
  return json;
}

// Namespaces with what is said of their drives' health, those that are not served too.
std::vector<Json> drives_of(Box& box, const std::vector<SubsystemOptions>& subsystems) {
  std::vector<Json> all;
  for (const SubsystemOptions& subsystem : subsystems) {
    for (const NamespaceInfo& each : box.registry().namespaces(subsystem.nqn)) {
      Json json = {{"name", fmt::format("{}/{}", subsystem.nqn, each.options.nsid)}};
      json.update(health_json(box.health(subsystem.nqn, each.options.nsid)));
      all.push_back(std::move(json));
    }
    for (const Box::NotServed& each : box.not_served()) {
      if (each.nqn != subsystem.nqn) continue;
      Json json = {{"name", fmt::format("{}/{}", each.nqn, each.options.nsid)}};
      json.update(health_json(box.health(each.nqn, each.options.nsid)));
      all.push_back(std::move(json));
    }
  }
  return all;
}

// Whom the space of a namespace was given to, under the namespace's own words.
void add_contracts(const std::vector<rack::Contract>& contracts, std::vector<Json>& namespaces) {
  for (Json& each : namespaces) {
    for (const rack::Contract& contract : contracts) {
      if (each["nqn"] != contract.nqn || each["nsid"] != contract.nsid) continue;
      each["contract"] = {{"drive", contract.drive},
                          {"owner", contract.owner},
                          {"shelf", contract.shelf},
                          {"iops", contract.amount.iops},
                          {"bandwidth", contract.amount.bandwidth},
                          {"confirmed", contract.is_confirmed}};
    }
  }
}

Json json_of(const nvme::ControllerInfo& controller) {
  return {{"id", controller.id},
          {"host", controller.host_nqn},
          {"address", controller.peer.text()},
          {"reached", controller.local.text()},
          {"queues", controller.queues},
          {"keep_alive_ms", controller.keep_alive_ms}};
}

Json status_of(Box& box, const SubsystemOptions& subsystem) {
  Json json = {
      {"nqn", subsystem.nqn},
      {"serial", subsystem.serial.empty() ? nvme::make_serial(subsystem.nqn) : subsystem.serial},
      {"model", subsystem.model},
      {"any_host", subsystem.allow_any_host},
      {"hosts", subsystem.hosts},
      {"namespaces", box.registry().namespaces(subsystem.nqn).size()}};
  std::vector<Json> controllers;
  for (const auto& each : box.registry().controllers(subsystem.nqn)) {
    controllers.push_back(json_of(each));
  }
  json.update(listed("controllers", std::move(controllers)));
  return json;
}

Attempt<Json> status(Box& box, const ControlRequest& request) {
  const auto subsystems = meant(box, request.nqn);
  if (!subsystems) return std::unexpected(subsystems.error());
  Json listeners = Json::array();
  for (const env::Address& at : box.listening()) listeners.push_back(at.text());
  std::vector<Json> drives = drives_of(box, *subsystems);
  Json json = {{"uptime_s", box.uptime().seconds()},
               {"health", worst_health(drives)},
               {"listeners", std::move(listeners)}};
  std::erase_if(drives,
                [](const Json& each) { return each["reasons"].empty() && each["jobs"].empty(); });
  json.update(listed("drives", std::move(drives)));
  std::vector<Json> all;
  for (const SubsystemOptions& each : *subsystems) all.push_back(status_of(box, each));
  json.update(listed("subsystems", std::move(all)));
  return json;
}

Attempt<Json> list_namespaces(Box& box, const ControlRequest& request) {
  const auto subsystems = meant(box, request.nqn);
  if (!subsystems) return std::unexpected(subsystems.error());
  std::vector<Json> all;
  for (const SubsystemOptions& subsystem : *subsystems) {
    for (const NamespaceInfo& each : box.registry().namespaces(subsystem.nqn)) {
      Json json = json_of(subsystem.nqn, each);
      json.update(health_json(box.health(subsystem.nqn, each.options.nsid)));
      all.push_back(std::move(json));
    }
    for (const Box::NotServed& each : box.not_served()) {
      if (each.nqn != subsystem.nqn) continue;
      all.push_back(json_of(each, box.health(each.nqn, each.options.nsid)));
    }
  }
  add_contracts(box.contracts(), all);
  return listed("namespaces", std::move(all));
}

task::Task<Attempt<Json>> stats(Box& box, ControlRequest request) {
  const auto subsystems = meant(box, request.nqn);
  if (!subsystems) co_return std::unexpected(subsystems.error());
  std::vector<Json> all;
  for (const SubsystemOptions& subsystem : *subsystems) {
    for (const NamespaceInfo& each : box.registry().namespaces(subsystem.nqn)) {
      const uint32_t nsid = each.options.nsid;
      Result<nvme::IoTotals> totals = co_await box.registry().totals(subsystem.nqn, nsid);
      if (!totals) continue;  // removed meanwhile
      all.push_back({{"nqn", subsystem.nqn},
                     {"nsid", nsid},
                     {"reads", totals->reads},
                     {"writes", totals->writes},
                     {"bytes_read", totals->sectors_read * 512},
                     {"bytes_written", totals->sectors_written * 512},
                     {"media_errors", totals->media_errors}});
    }
  }
  Json json = listed("namespaces", std::move(all));
  std::vector<Json> modelled;
  for (const SubsystemOptions& subsystem : *subsystems) {
    std::ranges::move(flash_stats(box, subsystem.nqn), std::back_inserter(modelled));
  }
  json.update(listed("flash", std::move(modelled)));
  std::vector<Json> authentication;
  for (const SubsystemOptions& subsystem : *subsystems) {
    const nvme::AuthTotals totals = box.registry().authentication_totals(subsystem.nqn);
    authentication.push_back(
        {{"nqn", subsystem.nqn}, {"succeeded", totals.succeeded}, {"failed", totals.failed}});
  }
  json.update(listed("authentication", std::move(authentication)));
  const nvme::AuthTotals tls = box.registry().tls_totals();
  json["tls"] = {{"succeeded", tls.succeeded}, {"failed", tls.failed}};
  const fabric::TargetReport report = co_await box.target().report(kLanesListed);
  json.update(lane_stats(box, report, request.nqn.empty() ? "" : subsystems->front().nqn));
  co_return json;
}

// A single drive: what hosts did with it, over all cores.
Json source_layer(const NamespaceInfo& info, const nvme::IoTotals& totals) {
  return {{"path", "0"},
          {"name", info.options.drive_text()},
          {"is_leaf", true},
          {"options", Json::object()},
          {"size", info.geometry.bytes()},
          {"block_size", info.geometry.block_size},
          {"requests", {{"read", totals.reads}, {"write", totals.writes}}},
          {"read_bytes", totals.sectors_read * 512},
          {"written_bytes", totals.sectors_written * 512},
          {"errors", totals.media_errors},
          {"facts",
           {{"reads", totals.reads},
            {"writes", totals.writes},
            {"bytes_read", totals.sectors_read * 512},
            {"bytes_written", totals.sectors_written * 512}}}};
}

// Namespaces as drives are shown: "NQN/NSID", or the nsid alone where one subsystem is served.
task::Task<Attempt<Json>> show_drives(Box& box, ControlRequest request) {
  Json drives = Json::array();
  const std::vector<SubsystemOptions> subsystems = box.registry().subsystems();
  for (const SubsystemOptions& subsystem : subsystems) {
    for (const NamespaceInfo& each : box.registry().namespaces(subsystem.nqn)) {
      const uint32_t nsid = each.options.nsid;
      const std::string name = fmt::format("{}/{}", subsystem.nqn, nsid);
      const bool is_meant = request.drive.empty() || request.drive == name ||
                            (subsystems.size() == 1 && request.drive == fmt::to_string(nsid));
      if (!is_meant) continue;
      const std::optional<drive::LayerInfo> top = co_await box.layers(subsystem.nqn, nsid);
      const Result<nvme::IoTotals> totals = co_await box.registry().totals(subsystem.nqn, nsid);
      if (!totals) continue;  // removed meanwhile
      Json json = {
          {"name", name}, {"stack", each.options.drive_text()}, {"is_stack", top.has_value()}};
      json.update(health_json(box.health(subsystem.nqn, nsid)));
      if (request.command == ControlRequest::Command::kDriveShow) {
        json["layers"] = top ? layers_json(*top) : Json::array({source_layer(each, *totals)});
      }
      drives.push_back(std::move(json));
    }
  }
  for (const Box::NotServed& each : box.not_served()) {
    const std::string name = fmt::format("{}/{}", each.nqn, each.options.nsid);
    const bool is_meant =
        request.drive.empty() || request.drive == name ||
        (subsystems.size() == 1 && request.drive == fmt::to_string(each.options.nsid));
    if (!is_meant) continue;
    Json json = {{"name", name}, {"stack", each.options.drive_text()}, {"is_stack", false}};
    json.update(health_json(box.health(each.nqn, each.options.nsid)));
    if (request.command == ControlRequest::Command::kDriveShow) {
      json["layers"] = Json::array({{{"path", "0"},
                                     {"name", each.options.drive_text()},
                                     {"is_leaf", true},
                                     {"problem", last_line(each.problem)}}});
    }
    drives.push_back(std::move(json));
  }
  if (drives.empty() && !request.drive.empty()) {
    co_return refuse(
        fmt::format("no namespace {} is served here: write NQN/NSID, as 'cairn drive "
                    "list' does",
                    in_quotes(request.drive)));
  }
  co_return Json{{"schema_version", 1}, {"drives", std::move(drives)}};
}

task::Task<Attempt<Json>> metrics(Box& box) {
  const std::string text = co_await metrics_of(box);
  co_return Json{{"metrics", text}};
}

Attempt<nvme::NamespaceOptions> namespace_of(const ControlRequest& request) {
  nvme::NamespaceOptions options{
      .nsid = request.nsid, .ana_group = request.group, .read_only = request.read_only};
  if (request.drive.empty()) return refuse("a namespace needs a drive: --drive mem:size=1G");
  if (const Attempt<void> taken = take_drive(request.drive, LookUp::kWhenOpened, options); !taken) {
    return std::unexpected(taken.error());
  }
  if (!request.uuid.empty()) {
    const std::optional<Uuid> uuid = parse_uuid(request.uuid);
    if (!uuid) return refuse(fmt::format("{} is not a UUID", in_quotes(request.uuid)));
    options.uuid = *uuid;
  }
  return options;
}

task::Task<Attempt<Json>> add_namespace(Box& box, ControlRequest request) {
  Attempt<nvme::NamespaceOptions> options = namespace_of(request);
  if (!options) co_return std::unexpected(options.error());
  Attempt<uint32_t> nsid =
      co_await box.add_namespace(request.nqn, std::move(*options), request.format);
  if (!nsid) co_return std::unexpected(nsid.error());
  co_return Json{{"nsid", *nsid}};
}

task::Task<Attempt<Json>> change_hosts(Box& box, ControlRequest request) {
  const bool allow = request.command == ControlRequest::Command::kHostsAllow;
  if (request.host.empty()) co_return refuse("no host is named: --host NQN, or --host any");
  Attempt<void> done;
  if (allow) {
    done = co_await box.allow_host(request.nqn, request.host);
  } else {
    done = co_await box.deny_host(request.nqn, request.host);
  }
  if (!done) co_return std::unexpected(done.error());
  co_return Json::object();
}

}  // namespace

task::Task<Attempt<Json>> execute(Box& box, ControlRequest request) {
  using Command = ControlRequest::Command;
  Attempt<void> done;
  switch (request.command) {
    case Command::kStatus:
      co_return status(box, request);
    case Command::kNsList:
      co_return list_namespaces(box, request);
    case Command::kStats:
      co_return co_await stats(box, request);
    case Command::kMetrics:
      co_return co_await metrics(box);
    case Command::kNsAdd:
      co_return co_await add_namespace(box, request);
    case Command::kHostsAllow:
    case Command::kHostsDeny:
      co_return co_await change_hosts(box, request);
    case Command::kNsRemove:
      done = co_await box.remove_namespace(request.nqn, request.nsid);
      break;
    case Command::kNsResize:
      done = co_await box.resize_namespace(request.nqn, request.nsid, request.size);
      break;
    case Command::kNsRetry:
      done = co_await box.reopen_namespace(request.nqn, request.nsid);
      break;
    case Command::kAnaSet:
      done = co_await box.set_ana_state(request.nqn, request.group, request.state);
      break;
    case Command::kDriveList:
    case Command::kDriveShow:
      co_return co_await show_drives(box, request);
    case Command::kDriveEdit:
    case Command::kDriveTell:
    case Command::kDriveResize:
    case Command::kDriveMove:
    case Command::kDriveRetry:
    case Command::kDoorAdd:
    case Command::kDoorRemove:
      co_return refuse(
          "this is a box, which shows its stacks and does not change them: use 'cairn box ns', or "
          "serve the stack with 'cairn drive serve --nvme-tcp'");
  }
  if (!done) co_return std::unexpected(done.error());
  co_return Json::object();
}

}  // namespace cairn::server
