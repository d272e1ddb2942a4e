// SPDX-License-Identifier: Apache-2.0
#include "apps/view/report.h"

#include <array>
#include <vector>

#include "view/analysis.h"
#include "view/tables.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using view::Direction;
using view::Kind;

constexpr std::array kKindNames = {"port", "netpipe", "ioport", "iopipe", "drive"};

double us(Duration time) { return static_cast<double>(time.ns) / 1000; }

Json traffic_json(const view::Traffic& traffic) {
  return {{"bytes_per_s", traffic.bytes_per_s}, {"ops_per_s", traffic.ops_per_s}};
}

Json drive_json(const view::DriveView& drive) {
  return {{"busy", drive.busy / 1000.0},
          {"read_delay_us", us(drive.read_delay)},
          {"write_delay_us", us(drive.write_delay)},
          {"rate", drive.rate},
          {"used", drive.used},
          {"headroom", drive.headroom},
          {"write_cost", drive.write_cost_x10 / 10.0},
          {"fragmentation", drive.fragmentation / 1000.0},
          {"congested", drive.is_congested}};
}

Json component_json(const view::View& view, const view::ComponentView& component) {
  const auto way = [&](Direction direction) {
    return traffic_json(component.traffic[static_cast<size_t>(direction)].now);
  };
  Json json = {{"name", view.name_of(component.id)},
               {"kind", kKindNames[static_cast<size_t>(component.id.kind)]},
               {"changes", component.recency},
               {"capacity", component.capacity},
               {"in", way(Direction::kIngress)},
               {"out", way(Direction::kEgress)},
               {"delay_us", us(component.delay)}};
  if (component.drive) json.update(drive_json(*component.drive));
  return json;
}

Json volumes_json(const view::View& view) {
  Json volumes = Json::array();
  for (const view::VolumeTraffic& each : volumes_of(view)) {
    volumes.push_back({{"name", each.volume},
                       {"clients", each.clients},
                       {"drives", each.drives},
                       {"read_bytes_per_s", each.read_bytes_per_s},
                       {"write_bytes_per_s", each.write_bytes_per_s},
                       {"ops_per_s", each.ops_per_s},
                       {"p50_us", us(each.median)},
                       {"p99_us", us(each.p99)}});
  }
  return volumes;
}

Json offenders_json(const view::View& view, const std::vector<view::Offender>& offenders) {
  constexpr std::array kOffences = {"takes_more", "asks_for_nothing", "tells_nothing"};
  Json all = Json::array();
  for (const view::Offender& each : offenders) {
    const bool is_somewhere = each.offence != view::Offender::Offence::kTellsNothing;
    all.push_back({{"volume", each.volume},
                   {"client", each.client},
                   {"offence", kOffences[static_cast<size_t>(each.offence)]},
                   {"drive", is_somewhere ? Json(view.name_of(each.drive)) : Json(nullptr)},
                   {"used_bytes_per_s", each.used},
                   {"granted_bytes_per_s", each.granted},
                   {"text", view::text(view, each)}});
  }
  return all;
}

Json head_json(const view::View& view) {
  return {{"schema_version", 1}, {"controller", view.controller}, {"at_us", us(view.at - Time{})}};
}

}  // namespace

Json view_json(const view::View& view) {
  Json json = head_json(view);
  json["components"] = Json::array();
  for (const view::ComponentView& each : view.components) {
    json["components"].push_back(component_json(view, each));
  }
  json["flows"] = Json::array();
  for (const view::FlowView& each : view.flows) {
    json["flows"].push_back({{"client", each.client},
                             {"volume", each.volume},
                             {"port", view.name_of({each.box, Kind::kPort, each.port})},
                             {"drive", view.name_of({each.box, Kind::kDrive, each.drive})},
                             {"reads", traffic_json(each.reads)},
                             {"writes", traffic_json(each.writes)},
                             {"delay_us", us(each.delay)}});
  }
  json["volumes"] = volumes_json(view);
  json["offenders"] = offenders_json(view, view.offenders);
  return json;
}

Json summary_json(const view::View& view) {
  Json json = head_json(view);
  json["drives"] = Json::array();
  for (const view::ComponentView& each : view.components) {
    if (each.drive) json["drives"].push_back(component_json(view, each));
  }
  json["volumes"] = volumes_json(view);
  json["offenders"] = offenders_json(view, view.offenders);
  return json;
}

Json why_json(const view::View& view, const view::Why& why) {
  Json json = {{"schema_version", 1},
               {"volume", why.volume},
               {"requests", why.requests},
               {"p99_us", us(why.p99)},
               {"causes", Json::array()}};
  for (const view::Cause& each : why.causes) {
    Json cause = {{"component", view.name_of(each.component)},
                  {"part", each.permille / 1000.0},
                  {"congested", each.is_congested},
                  {"shared_with", nullptr}};
    if (each.shared_with) {
      cause["shared_with"] = {
          {"volume", each.shared_with->volume},
          {"type", each.shared_with->type == view::IoType::kRead ? "reads" : "writes"},
          {"size", view::size_class_text(each.shared_with->size_class)}};
    }
    json["causes"].push_back(std::move(cause));
  }
  json["offenders"] = offenders_json(view, why.offenders);
  json["text"] = view::text(view, why);
  return json;
}

}  // namespace cairn::apps
