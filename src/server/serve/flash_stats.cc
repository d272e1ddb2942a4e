// SPDX-License-Identifier: Apache-2.0
#include "server/serve/flash_stats.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "drive/modelled_medium.h"
#include "model/flash/inside.h"

namespace cairn::server {

namespace {

Json flash_of(const drive::ModelledMedium& medium) {
  const flash::FlashModel& model = medium.model();
  const flash::Counters& k = model.counters();
  const flash::Inside inside = flash::look_inside(model, medium.model_now());
  const Histogram& late = medium.lateness();
  return {{"write_amplification", k.write_amplification()},
          {"fragmentation", inside.fragmentation},
          {"blocks", inside.blocks},
          {"free_blocks", inside.free_blocks},
          {"blocks_erased", k.blocks_erased},
          {"erases_of_a_block_max", inside.erases_max},
          {"dirty_cache_pages", inside.dirty_pages},
          {"pages_programmed",
           {{"user", k.user_pages_programmed},
            {"collector", k.gc_pages_programmed},
            {"mapping", k.mapping_pages_programmed}}},
          {"collections", k.gc_executions},
          {"collected_pages", k.gc_page_moves},
          {"channels_busy", inside.channels_busy},
          {"dies_busy", inside.dies_busy},
          {"lateness_ns",
           {{"count", late.count()},
            {"p50", late.p50()},
            {"p99", late.p99()},
            {"p999", late.p999()},
            {"max", late.max()}}}};
}

double real_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string mean_text(const std::vector<Json>& shares) {
  double sum = 0;
  for (const Json& each : shares) sum += each.is_number() ? each.get<double>() : 0;
  return percent(sum / static_cast<double>(std::max<size_t>(shares.size(), 1)));
}

}  // namespace

std::vector<Json> flash_stats(Server& server, std::string_view nqn) {
  std::vector<Json> all;
  for (const nvme::NamespaceInfo& each : server.registry().namespaces(nqn)) {
    if (each.modelled == nullptr) continue;
    Json json = {
        {"nqn", nqn}, {"nsid", each.options.nsid}, {"profile", each.options.drive.profile}};
    json.update(flash_of(*each.modelled));
    all.push_back(std::move(json));
  }
  return all;
}

std::string flash_stats_text(const Json& answer) {
  std::vector<std::vector<std::string>> rows = {{"NQN", "NSID", "PROFILE", "WRITE AMP", "GARBAGE",
                                                 "COLLECTIONS", "CHANNELS", "DIES", "LATE P50",
                                                 "P99", "P99.9"}};
  for (const Json& each : list_at(answer, "flash")) {
    if (!each.is_object()) continue;
    const Json late = each.value("lateness_ns", Json::object());
    const auto microseconds = [&late](const char* name) {
      return fmt::format("{:.1f} us", real_at(late, name) * 1e-3);
    };
    rows.push_back(
        {text_at(each, "nqn"), fmt::format("{}", number_at(each, "nsid")), text_at(each, "profile"),
         fmt::format("{:.2f}", real_at(each, "write_amplification")),
         percent(real_at(each, "fragmentation")), fmt::format("{}", number_at(each, "collections")),
         mean_text(list_at(each, "channels_busy")), percent(real_at(each, "dies_busy")),
         microseconds("p50"), microseconds("p99"), microseconds("p999")});
  }
  return rows.size() == 1 ? "" : "\n" + table_text(rows);
}

}  // namespace cairn::server
