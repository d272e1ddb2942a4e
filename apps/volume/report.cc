// SPDX-License-Identifier: Apache-2.0
#include "apps/volume/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "arbiter/tenant.h"
#include "base/table.h"
#include "base/units.h"
#include "base/uuid.h"
#include "base/words.h"
#include "drive/size_text.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using arbiter::DriveView;
using arbiter::PoolView;
using arbiter::VolumeDetail;
using arbiter::VolumeView;
using volume::Weights;

// The factors of a placement, as users name them.
constexpr std::array<std::pair<std::string_view, int32_t Weights::*>, 5> kFactors = {
    {{"extents", &Weights::extents},
     {"used", &Weights::used},
     {"busy", &Weights::busy},
     {"fragmentation", &Weights::fragmentation},
     {"preference", &Weights::preference}}};

std::string policy_text(const Weights& weights) {
  if (weights == volume::kSpread) return "spread";
  if (weights == volume::kPack) return "pack";
  std::string text;
  for (const auto& [name, factor] : kFactors) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, weights.*factor / 1000.0);
  }
  return text;
}

Json weights_json(const Weights& weights) {
  Json json;
  for (const auto& [name, factor] : kFactors) json[name] = weights.*factor / 1000.0;
  return json;
}

std::string state_text(const VolumeView& volume) {
  if (volume.record.is_leaving) return "being destroyed";
  if (arbiter::is_tenant(volume.record.holder)) {
    return fmt::format("the arbiter heals it, {} extents lack replicas", volume.lacking);
  }
  if (volume.lacking > 0) return fmt::format("{} extents lack replicas", volume.lacking);
  return volume.record.is_snapshot ? "snapshot" : "ok";
}

std::string drive_state(const DriveView& drive) {
  // Whoever lost a volume while it did not answer may still write to it.
  if (drive.unfenced > 0) return "not fenced";
  if (drive.info.is_leaving) return drive.legs == 0 ? "drained" : "leaving";
  return drive.cleaning > 0 ? "clearing" : "ok";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : escaped(text); }

std::string matrix_text(const arbiter::ScoreMatrix& matrix) {
  std::vector<std::vector<std::string>> rows = {{"  DRIVE"}};
  for (const auto& [name, factor] : kFactors) rows[0].emplace_back(name);
  rows[0].insert(rows[0].end(), {"score", ""});
  for (const arbiter::ScoreRow& row : matrix.rows) {
    std::vector<std::string> cells = {fmt::format("  {}", row.id.value())};
    for (const auto& [name, factor] : kFactors) {
      cells.push_back(fmt::format("{:.3f}", row.factors.*factor / 1000.0));
    }
    cells.push_back(fmt::format("{:.3f}", static_cast<double>(row.score) / 1e6));
    cells.emplace_back(row.is_chosen ? "chosen" : row.is_full ? "full" : "");
    rows.push_back(std::move(cells));
  }
  return fmt::format("extent {}:\n{}", matrix.extent, table_text(rows));
}

}  // namespace

Json drive_json(const DriveView& drive, uint64_t extent_bytes) {
  const volume::MegaVolInfo& info = drive.info;
  return {{"id", info.id.value()},
          {"uuid", uuid_text(info.uuid)},
          {"uri", info.uri},
          {"box", info.box},
          {"rack", info.rack},
          {"size", (info.extents - 1) * extent_bytes},
          {"free", drive.free * extent_bytes},
          {"extents", drive.legs},
          {"clearing", drive.cleaning},
          {"unfenced", drive.unfenced},
          {"preference", info.preference / 1000.0},
          {"state", drive_state(drive)}};
}

Json pool_json(const PoolView& pool) {
  Json drives = Json::array();
  for (const DriveView& each : pool.drives) drives.push_back(drive_json(each, pool.extent_bytes));
  return {{"schema_version", 1},
          {"uuid", uuid_text(pool.uuid)},
          {"extent_bytes", pool.extent_bytes},
          {"volumes", pool.volumes},
          {"drives", std::move(drives)}};
}

std::string pool_text(const PoolView& pool) {
  if (pool.drives.empty()) {
    return "the pool has no drives: 'cairn pool add nvme-tcp://HOST:PORT/NQN' adds those of a "
           "box\n";
  }
  std::vector<std::vector<std::string>> rows = {
      {"DRIVE", "BOX", "RACK", "SIZE", "FREE", "EXTENTS", "STATE", "URI"}};
  for (const DriveView& each : pool.drives) {
    rows.push_back({fmt::to_string(each.info.id.value()), or_dash(each.info.box),
                    or_dash(each.info.rack),
                    text_bytes((each.info.extents - 1) * pool.extent_bytes),
                    text_bytes(each.free * pool.extent_bytes), fmt::to_string(each.legs),
                    drive_state(each), escaped(each.info.uri)});
  }
  return table_text(rows);
}

std::string pool_summary(const PoolView& pool) {
  uint64_t size = 0;
  uint64_t free = 0;
  uint64_t clearing = 0;
  uint64_t unfenced = 0;
  for (const DriveView& each : pool.drives) {
    unfenced += each.unfenced > 0 ? 1 : 0;
    size += each.info.extents - 1;
    free += each.free;
    clearing += each.cleaning;
  }
  const std::string waiting =
      unfenced == 0 ? ""
                    : fmt::format(
                          "  {} drives do not answer since somebody who has lost a volume could "
                          "write there: they are used again when they are back\n",
                          unfenced);
  return fmt::format(
      "pool {}: {} drives, {} volumes\n  {} of {} free, {} being cleared, extents of {}\n{}",
      uuid_text(pool.uuid), pool.drives.size(), pool.volumes, text_bytes(free * pool.extent_bytes),
      text_bytes(size * pool.extent_bytes), text_bytes(clearing * pool.extent_bytes),
      text_bytes(pool.extent_bytes), waiting);
}

std::string terms_text(const share::Terms& terms) {
  const auto rate = [](std::string_view name, uint64_t bytes_per_s) {
    if (bytes_per_s == 0) return fmt::format("no {}", name);
    return fmt::format("{} {}/s", name, drive::size_text(bytes_per_s));
  };
  return fmt::format("weight {}, {}, {}", terms.weight, rate("floor", terms.floor),
                     rate("cap", terms.cap));
}

Json volume_json(const VolumeView& volume) {
  return {{"name", volume.record.name},
          {"id", volume.record.id.value()},
          {"size", volume.bytes},
          {"replicas", volume.record.replicas},
          {"policy", policy_text(volume.record.weights)},
          {"weight", volume.terms.weight},
          {"floor", volume.terms.floor},
          {"cap", volume.terms.cap},
          {"mapped", volume.mapped * volume.extent_bytes},
          {"shared", volume.shared * volume.extent_bytes},
          {"lacking", volume.lacking},
          {"snapshot", volume.record.is_snapshot},
          {"made", volume.record.made},
          {"open_by", volume.record.holder},
          {"epoch", volume.record.epoch.value()},
          {"state", state_text(volume)}};
}

Json detail_json(const VolumeDetail& detail) {
  Json json = {{"schema_version", 1}};
  json.update(volume_json(detail.volume));
  json["weights"] = weights_json(detail.volume.record.weights);
  json["drives"] = Json::array();
  for (const arbiter::DriveShare& each : detail.drives) {
    json["drives"].push_back({{"id", each.id.value()}, {"extents", each.extents}});
  }
  json["placements"] = Json::array();
  for (const arbiter::ScoreMatrix& matrix : detail.matrices) {
    Json rows = Json::array();
    for (const arbiter::ScoreRow& row : matrix.rows) {
      rows.push_back({{"drive", row.id.value()},
                      {"factors", weights_json(row.factors)},
                      {"score", static_cast<double>(row.score) / 1e6},
                      {"full", row.is_full},
                      {"chosen", row.is_chosen}});
    }
    json["placements"].push_back({{"extent", matrix.extent}, {"scores", std::move(rows)}});
  }
  return json;
}

std::string volumes_text(const std::vector<VolumeView>& volumes) {
  if (volumes.empty()) return "there are no volumes: 'cairn volume create' makes one\n";
  std::vector<std::vector<std::string>> rows = {
      {"VOLUME", "SIZE", "REPLICAS", "MAPPED", "SHARED", "OPEN BY", "STATE"}};
  for (const VolumeView& each : volumes) {
    rows.push_back(
        {escaped(each.record.name), text_bytes(each.bytes), fmt::to_string(each.record.replicas),
         text_bytes(each.mapped * each.extent_bytes), text_bytes(each.shared * each.extent_bytes),
         or_dash(each.record.holder), state_text(each)});
  }
  return table_text(rows);
}

std::string detail_text(const VolumeDetail& detail, bool why) {
  const VolumeView& volume = detail.volume;
  std::string text = fmt::format(
      "{}: {}, {} replica{}, policy {}\n  {}, {} mapped, {} of it shared, opened {} times, open by "
      "{}\n",
      escaped(volume.record.name), text_bytes(volume.bytes), volume.record.replicas,
      volume.record.replicas == 1 ? "" : "s", policy_text(volume.record.weights),
      state_text(volume), text_bytes(volume.mapped * volume.extent_bytes),
      text_bytes(volume.shared * volume.extent_bytes), volume.record.epoch.value(),
      or_dash(volume.record.holder));
  std::string shares;
  for (const arbiter::DriveShare& each : detail.drives) {
    shares +=
        fmt::format("{}{} on drive {}", shares.empty() ? "" : ", ", each.extents, each.id.value());
  }
  if (!shares.empty()) text += fmt::format("  extents: {}\n", shares);
  text += fmt::format("  of drives' bandwidth: {}\n", terms_text(volume.terms));
  if (!why) return text;
  if (detail.matrices.empty()) text += "nothing was placed since this arbiter leads\n";
  for (const arbiter::ScoreMatrix& matrix : detail.matrices) text += matrix_text(matrix);
  return text;
}

Attempt<Weights> parse_policy(std::string_view text) {
  if (text == "spread") return volume::kSpread;
  if (text == "pack") return volume::kPack;
  Weights weights = volume::kSpread;
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    const size_t equals = one.find('=');
    const auto* const factor = std::find_if(kFactors.begin(), kFactors.end(), [&](const auto& f) {
      return f.first == one.substr(0, equals);
    });
    double value = 0;
    const std::string_view number = equals == one.npos ? "" : one.substr(equals + 1);
    const auto [end, error] = std::from_chars(number.begin(), number.end(), value);
    if (factor == kFactors.end() || error != std::errc() || end != number.end() ||
        !(std::abs(value) <= volume::kWeightMax / 1000.0)) {
      return refuse(fmt::format(
          "{} is no policy: write spread, pack, or factors as in used=2,busy=0.5 (extents, used, "
          "busy, fragmentation, preference, each from -100 to 100)",
          in_quotes(one)));
    }
    weights.*(factor->second) = static_cast<int32_t>(std::lround(value * 1000));
    if (one.size() == text.size()) return weights;
    text.remove_prefix(one.size() + 1);
  }
}

}  // namespace cairn::apps
