// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/lanes_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/table.h"
#include "base/units.h"
#include "server/common/lane_text.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using fabric::HostLane;

Json lane_json(const HostLane& lane) {
  Json json = {{"core", lane.core.value()},
               {"target", lane.address.text()},
               {"queue", lane.queue_id},
               {"depth", lane.depth},
               {"in_flight", lane.in_flight},
               {"batching", name(lane.doorbell.mode)},
               {"caravan", lane.doorbell.count},
               {"caravan_bytes", lane.doorbell.bytes},
               {"doorbell_us", lane.doorbell.delay.us()}};
  json.update(server::json_of(lane.traffic));
  return json;
}

std::string queue_text(const HostLane& lane) {
  return lane.queue_id == 0 ? "admin" : fmt::to_string(lane.queue_id);
}

std::string settings_text(const HostLane& lane) {
  using Mode = fabric::DoorbellOptions::Mode;
  if (lane.queue_id == 0) return "never waits";
  if (lane.doorbell.mode == Mode::kOff) return "off";
  return fmt::format("{}, {} or {}, {}", name(lane.doorbell.mode), lane.doorbell.count,
                     text_bytes(lane.doorbell.bytes), cairn::text(lane.doorbell.delay));
}

}  // namespace

Json json_of(const LanesReport& report) {
  const bool has_load = report.load.duration > 0_s;
  Json lanes = Json::array();
  for (const HostLane& lane : report.lanes) lanes.push_back(lane_json(lane));
  return {{"uri", report.uri},
          {"rw", has_load ? Json(report.pattern) : Json(nullptr)},
          {"bs", report.load.request_size},
          {"depth", report.load.depth},
          {"seconds", report.result.measured.seconds()},
          {"ios", report.result.completed},
          {"lanes", std::move(lanes)}};
}

std::string text_of(const LanesReport& report) {
  std::string out;
  if (report.load.duration > 0_s) {
    out += fmt::format("{} {}, depth {}, {:.1f} s: {} requests\n", report.pattern,
                       text_bytes(report.load.request_size), report.load.depth,
                       report.result.measured.seconds(), report.result.completed);
  }
  std::vector<std::vector<std::string>> sent = {{"CORE", "TARGET", "QUEUE", "DEPTH", "IN FLIGHT",
                                                 "MESSAGES", "SENDS", "PER SEND", "BYTES", "READS",
                                                 "PDUS PER READ"}};
  std::vector<std::vector<std::string>> bells = {
      {"CORE", "TARGET", "QUEUE", "BATCHING", "CARAVANS", "DOORBELL"}};
  for (const HostLane& lane : report.lanes) {
    const fabric::LaneTraffic& traffic = lane.traffic;
    const std::vector<std::string> which = {fmt::to_string(lane.core.value()), lane.address.text(),
                                            queue_text(lane)};
    std::vector<std::string>& row = sent.emplace_back(which);
    for (std::string& word : std::vector<std::string>{
             fmt::to_string(lane.depth), fmt::to_string(lane.in_flight),
             fmt::to_string(traffic.out.messages), fmt::to_string(traffic.out.sends),
             server::ratio_text(traffic.out.messages, traffic.out.sends),
             text_bytes(traffic.out.bytes), fmt::to_string(traffic.in.reads),
             server::ratio_text(traffic.in.pdus, traffic.in.reads)}) {
      row.push_back(std::move(word));
    }
    std::vector<std::string>& bell = bells.emplace_back(which);
    bell.push_back(settings_text(lane));
    bell.push_back(server::sizes_text(traffic.out));
    bell.push_back(server::causes_text(traffic.out));
  }
  return out + table_text(sent) + "\n" + table_text(bells);
}

}  // namespace cairn::apps
