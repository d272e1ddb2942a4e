// SPDX-License-Identifier: Apache-2.0
#include "server/serve/control_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "nvme/controller/namespace_ids.h"
#include "server/control/health_json.h"
#include "server/serve/drive_commands.h"
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
Attempt<std::vector<SubsystemOptions>> meant(Server& server, const std::string& nqn) {
  std::vector<SubsystemOptions> all = server.registry().subsystems();
  if (nqn.empty()) return all;
  const Attempt<std::string> found = server.nvme().find(nqn);
  if (!found) return std::unexpected(found.error());
  std::erase_if(all, [&found](const SubsystemOptions& each) { return each.nqn != *found; });
  return all;
}

Json json_of(const nvme::ControllerInfo& controller) {
  return {{"id", controller.id},
          {"host", controller.host_nqn},
          {"address", controller.peer.text()},
          {"reached", controller.local.text()},
          {"queues", controller.queues},
          {"keep_alive_ms", controller.keep_alive_ms}};
}

Json status_of(Server& server, const SubsystemOptions& subsystem) {
  Json json = {
      {"nqn", subsystem.nqn},
      {"serial", subsystem.serial.empty() ? nvme::make_serial(subsystem.nqn) : subsystem.serial},
      {"model", subsystem.model},
      {"any_host", subsystem.allow_any_host},
      {"hosts", subsystem.hosts},
      {"namespaces", server.registry().namespaces(subsystem.nqn).size()}};
  std::vector<Json> controllers;
  for (const auto& each : server.registry().controllers(subsystem.nqn)) {
    controllers.push_back(json_of(each));
  }
  json.update(listed("controllers", std::move(controllers)));
  return json;
}

Attempt<Json> status(Server& server, const ControlRequest& request) {
  const auto subsystems = meant(server, request.nqn);
  if (!subsystems) return std::unexpected(subsystems.error());
  Json listeners = Json::array();
  for (const env::Address& at : server.nvme().listening()) listeners.push_back(at.text());
  std::vector<Json> drives;
  for (const auto& drive : server.drives()) {
    const bool is_meant = std::ranges::any_of(
        *subsystems, [&](const SubsystemOptions& each) { return each.nqn == drive->nqn; });
    if (is_meant) drives.push_back(health_of(server, *drive));
  }
  Json json = {{"uptime_s", server.uptime().seconds()},
               {"health", worst_health(drives)},
               {"listeners", std::move(listeners)}};
  std::erase_if(drives,
                [](const Json& each) { return each["reasons"].empty() && each["jobs"].empty(); });
  json.update(listed("drives", std::move(drives)));
  std::vector<Json> all;
  for (const SubsystemOptions& each : *subsystems) all.push_back(status_of(server, each));
  json.update(listed("subsystems", std::move(all)));
  return json;
}

task::Task<Attempt<Json>> stats(Server& server, ControlRequest request) {
  const auto subsystems = meant(server, request.nqn);
  if (!subsystems) co_return std::unexpected(subsystems.error());
  std::vector<Json> all;
  for (const SubsystemOptions& subsystem : *subsystems) {
    for (const NamespaceInfo& each : server.registry().namespaces(subsystem.nqn)) {
      const uint32_t nsid = each.options.nsid;
      Result<nvme::IoTotals> totals = co_await server.registry().totals(subsystem.nqn, nsid);
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
    std::ranges::move(flash_stats(server, subsystem.nqn), std::back_inserter(modelled));
  }
  json.update(listed("flash", std::move(modelled)));
  std::vector<Json> authentication;
  for (const SubsystemOptions& subsystem : *subsystems) {
    const nvme::AuthTotals totals = server.registry().authentication_totals(subsystem.nqn);
    authentication.push_back(
        {{"nqn", subsystem.nqn}, {"succeeded", totals.succeeded}, {"failed", totals.failed}});
  }
  json.update(listed("authentication", std::move(authentication)));
  const nvme::AuthTotals tls = server.registry().tls_totals();
  json["tls"] = {{"succeeded", tls.succeeded}, {"failed", tls.failed}};
  const fabric::TargetReport report = co_await server.nvme().target().report(kLanesListed);
  json.update(lane_stats(server, report, request.nqn.empty() ? "" : subsystems->front().nqn));
  co_return json;
}

task::Task<Attempt<Json>> metrics(Server& server) {
  const std::string text = co_await metrics_of(server);
  co_return Json{{"metrics", text}};
}

task::Task<Attempt<Json>> change_hosts(Server& server, ControlRequest request) {
  const bool allow = request.command == ControlRequest::Command::kHostAdd;
  if (request.host.empty()) co_return refuse("no host is named: an NQN, or any");
  Attempt<void> done;
  if (allow) {
    done = co_await server.allow_host(request.nqn, request.host);
  } else {
    done = co_await server.deny_host(request.nqn, request.host);
  }
  if (!done) co_return std::unexpected(done.error());
  co_return Json::object();
}

}  // namespace

task::Task<Attempt<Json>> execute(Server& server, ControlRequest request) {
  using Command = ControlRequest::Command;
  switch (request.command) {
    case Command::kStatus:
      co_return status(server, request);
    case Command::kStats: {
      Attempt<Json> told = co_await stats(server, std::move(request));
      co_return told;
    }
    case Command::kMetrics: {
      Attempt<Json> told = co_await metrics(server);
      co_return told;
    }
    case Command::kHostAdd:
    case Command::kHostRemove: {
      Attempt<Json> changed = co_await change_hosts(server, std::move(request));
      co_return changed;
    }
    case Command::kEvents:  // answered by whoever has them
    case Command::kUpStatus:
    case Command::kUpDown:
    case Command::kUpFail:
      co_return refuse("only 'cairn up' is asked that, and this is another server");
    default: {
      Attempt<Json> done = co_await execute_for_drive(server, std::move(request));
      co_return done;
    }
  }
}

}  // namespace cairn::server
