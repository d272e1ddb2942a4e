// SPDX-License-Identifier: Apache-2.0
#include "apps/rack/report.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/units.h"
#include "base/uuid.h"
#include "rack/tenant.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const rack::Offer& offer, bool is_stale) {
  return {{"box", offer.box},
          {"shelf", offer.shelf},
          {"address", offer.place.address},
          {"nqn", offer.place.nqn},
          {"tls", offer.place.tls},
          {"size", offer.spare.bytes},
          {"iops", offer.spare.iops},
          {"bandwidth", offer.spare.bandwidth},
          {"expires_ms", offer.expires_ms},
          {"stale", is_stale}};
}

std::string raid_text(rack::Raid raid) { return raid == rack::Raid::kMirror ? "1" : "0"; }

}  // namespace

Json board_json(const rack::Board& board) {
  Json offers = Json::array();
  for (const rack::Offer& each : board.offers) offers.push_back(json_of(each, false));
  for (const rack::Offer& each : board.stale) offers.push_back(json_of(each, true));
  return {{"schema_version", 1}, {"offers", offers}, {"unreadable", board.unreadable}};
}

std::string board_text(const rack::Board& board, uint64_t now_ms) {
  if (board.offers.empty() && board.stale.empty()) return "no box offers any space\n";
  std::vector<std::vector<std::string>> rows = {
      {"BOX", "SHELF", "SPARE", "IOPS", "BYTES/S", "AT", "EXPIRES"}};
  for (const rack::Offer& each : board.offers) {
    rows.push_back({each.box, each.shelf, text_bytes(each.spare.bytes),
                    fmt::to_string(each.spare.iops), text_bytes(each.spare.bandwidth),
                    each.place.address, fmt::format("in {} s", (each.expires_ms - now_ms) / 1000)});
  }
  for (const rack::Offer& each : board.stale) {
    rows.push_back({each.box, each.shelf, text_bytes(each.spare.bytes),
                    fmt::to_string(each.spare.iops), text_bytes(each.spare.bandwidth),
                    each.place.address, "stale"});
  }
  return table_text(rows);
}

Json drive_json(const rack::DriveRecord& drive) {
  Json legs = Json::array();
  for (const rack::Leg& leg : drive.legs) {
    legs.push_back({{"contract", uuid_text(leg.id)},
                    {"box", leg.box},
                    {"shelf", leg.shelf},
                    {"address", leg.place.address},
                    {"nqn", leg.place.nqn},
                    {"nsid", leg.nsid},
                    {"size", leg.amount.bytes},
                    {"iops", leg.amount.iops},
                    {"bandwidth", leg.amount.bandwidth}});
  }
  const rack::Outcome<std::string> stack = rack::stack_of(drive);
  return {{"name", drive.name},
          {"raid", drive.raid == rack::Raid::kMirror ? 1 : 0},
          {"size", drive.bytes},
          {"owner", drive.owner},
          {"leaving", drive.is_leaving},
          {"stack", stack ? Json(*stack) : Json()},
          {"legs", legs}};
}

std::string drives_text(const std::vector<rack::DriveRecord>& drives) {
  if (drives.empty()) return "there are no drives of this rack\n";
  std::vector<std::vector<std::string>> rows = {{"DRIVE", "RAID", "SIZE", "LEGS", ""}};
  for (const rack::DriveRecord& each : drives) {
    std::string legs;
    for (const rack::Leg& leg : each.legs) {
      legs += fmt::format("{}{}/{}", legs.empty() ? "" : " ", leg.box, leg.shelf);
    }
    rows.push_back({each.name, raid_text(each.raid), text_bytes(each.bytes), legs,
                    each.is_leaving ? "being released" : ""});
  }
  return table_text(rows);
}

}  // namespace cairn::apps
