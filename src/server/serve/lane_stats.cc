// SPDX-License-Identifier: Apache-2.0
#include "server/serve/lane_stats.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/common/lane_text.h"

namespace cairn::server {

namespace {

using fabric::LaneKey;
using fabric::LaneTotals;
using fabric::LaneWork;
using fabric::TargetLane;
using fabric::TargetReport;

Json key_json(const LaneKey& key, const TargetReport& report) {
  return {{"listener", report.listeners[key.listener].text()},
          {"nqn", key.nqn},
          {"kind", !key.is_connected() ? "unconnected"
                   : key.admin         ? "admin"
                                       : "io"}};
}

void add_work(Json& json, const LaneWork& work) {
  json["commands"] = work.commands;
  json["failures"] = work.failures;
  json.update(server::json_of(work.traffic));
}

// Names of hosts, by subsystem and controller.
class HostNames {
 public:
  explicit HostNames(Server& server) : server_(server) {}
  std::string of(const TargetLane& lane) {
    auto [found, is_new] = names_.try_emplace(lane.key.nqn);
    if (is_new) {
      for (const nvme::ControllerInfo& each : server_.registry().controllers(lane.key.nqn)) {
        found->second[each.id] = each.host_nqn;
      }
    }
    const auto name = found->second.find(lane.controller_id);
    return name == found->second.end() ? "" : name->second;
  }

 private:
  Server& server_;
  std::map<std::string, std::map<uint16_t, std::string>> names_;
};

Json lane_json(const TargetLane& lane, const TargetReport& report, HostNames& names) {
  Json json = {{"core", lane.core.value()}};
  json.update(key_json(lane.key, report));
  json["host"] = names.of(lane);
  json["address"] = lane.peer.text();
  json["controller"] = lane.controller_id;
  json["queue"] = lane.queue_id;
  json["depth"] = lane.queue_entries;
  json["in_flight"] = lane.in_flight;
  add_work(json, lane.work);
  return json;
}

}  // namespace

Json lane_stats(Server& server, const TargetReport& report, std::string_view nqn) {
  const auto is_meant = [nqn](const LaneKey& key) { return nqn.empty() || key.nqn == nqn; };
  Json totals = Json::array();
  uint64_t open = 0;
  for (const auto& [key, sum] : report.totals) {
    if (!is_meant(key) || sum.opened + sum.open == 0) continue;
    Json json = key_json(key, report);
    json["opened"] = sum.opened;
    json["open"] = sum.open;
    add_work(json, sum.work);
    totals.push_back(std::move(json));
    open += sum.open;
  }
  Json lanes = Json::array();
  HostNames names(server);
  for (const TargetLane& lane : report.lanes) {
    if (is_meant(lane.key)) lanes.push_back(lane_json(lane, report, names));
  }
  Json json = {{"connections", {{"open", open}, {"refused", report.refused}}},
               {"lane_totals", std::move(totals)}};
  const uint64_t more = open - std::min<uint64_t>(open, lanes.size());
  json["lanes"] = std::move(lanes);
  if (more > 0) json["lanes_more"] = more;
  return json;
}

}  // namespace cairn::server
