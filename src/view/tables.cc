// SPDX-License-Identifier: Apache-2.0
#include "view/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/table.h"

namespace cairn::view {

namespace {

std::string megabytes(uint64_t bytes_per_s) {
  return fmt::format("{}.{}", bytes_per_s / 1'000'000, bytes_per_s / 100'000 % 10);
}
std::string percent(int64_t permille) { return fmt::format("{}%", (permille + 5) / 10); }

// The bucket below which so many thousandths of the round trips are.
Duration quantile(const std::array<uint64_t, kRttBuckets>& rtts, uint64_t permille) {
  uint64_t all = 0;
  for (const uint64_t count : rtts) all += count;
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < rtts.size(); ++bucket) {
    seen += rtts[bucket];
    if (seen * 1000 >= all * permille && all > 0) return rtt_of_bucket(bucket);
  }
  return {};
}

template <class Row>
void keep(std::vector<Row>& rows, size_t count) {
  if (count > 0 && rows.size() > count) rows.resize(count);
}

}  // namespace

std::vector<VolumeTraffic> volumes_of(const View& view) {
  struct Sum {
    VolumeTraffic traffic;
    std::set<std::pair<BoxId, uint16_t>> drives;
    std::set<std::string> clients;
    std::array<uint64_t, kRttBuckets> rtts{};
  };
  std::map<std::string, Sum> sums;
  for (const FlowView& flow : view.flows) {
    Sum& sum = sums[flow.volume];
    sum.drives.insert({flow.box, flow.drive});
    sum.clients.insert(flow.client);
    sum.traffic.read_bytes_per_s += flow.reads.bytes_per_s;
    sum.traffic.write_bytes_per_s += flow.writes.bytes_per_s;
    sum.traffic.ops_per_s += flow.reads.ops_per_s + flow.writes.ops_per_s;
    for (const RttCount& each : flow.rtts) sum.rtts.at(each.bucket) += each.count;
  }
  std::vector<VolumeTraffic> all;
  for (auto& [volume, sum] : sums) {
    sum.traffic.volume = volume;
    sum.traffic.drives = static_cast<uint32_t>(sum.drives.size());
    sum.traffic.clients = static_cast<uint32_t>(sum.clients.size());
    sum.traffic.median = quantile(sum.rtts, 500);
    sum.traffic.p99 = quantile(sum.rtts, 990);
    all.push_back(sum.traffic);
  }
  return all;
}

std::string drives_text(const View& view, size_t rows) {
  std::vector<const ComponentView*> drives;
  for (const ComponentView& each : view.components) {
    if (each.drive && each.recency > 0) drives.push_back(&each);
  }
  std::ranges::sort(drives, {}, [](const ComponentView* each) {
    return std::pair(-each->drive->busy, each->id);
  });
  keep(drives, rows);
  if (drives.empty()) return "nobody tells of requests to any drive\n";
  std::vector<std::vector<std::string>> table = {{"DRIVE", "BUSY", "READ MB/s", "WRITE MB/s",
                                                  "IOPS", "READ DELAY", "WRITE DELAY", "WRITE COST",
                                                  "TAKES MB/s", "STATE"}};
  for (const ComponentView* each : drives) {
    const DriveView& drive = *each->drive;
    const Traffic& written = each->traffic[static_cast<size_t>(Direction::kIngress)].now;
    const Traffic& read = each->traffic[static_cast<size_t>(Direction::kEgress)].now;
    table.push_back({view.name_of(each->id), percent(drive.busy), megabytes(read.bytes_per_s),
                     megabytes(written.bytes_per_s), fmt::to_string(read.ops_per_s),
                     text(drive.read_delay), text(drive.write_delay),
                     fmt::format("{}.{}", drive.write_cost_x10 / 10, drive.write_cost_x10 % 10),
                     megabytes(drive.rate), drive.is_congested ? "congested" : "ok"});
  }
  return table_text(table);
}

std::string volumes_text(const View& view, size_t rows) {
  std::vector<VolumeTraffic> volumes = volumes_of(view);
  std::ranges::sort(volumes, [](const VolumeTraffic& one, const VolumeTraffic& other) {
    const uint64_t bytes = one.read_bytes_per_s + one.write_bytes_per_s;
    const uint64_t others = other.read_bytes_per_s + other.write_bytes_per_s;
    return bytes != others ? bytes > others : one.volume < other.volume;
  });
  keep(volumes, rows);
  if (volumes.empty()) return "no volume did anything in the last 200 ms\n";
  std::vector<std::vector<std::string>> table = {
      {"VOLUME", "CLIENTS", "DRIVES", "READ MB/s", "WRITE MB/s", "IOPS", "MEDIAN", "P99"}};
  for (const VolumeTraffic& each : volumes) {
    table.push_back({each.volume, fmt::to_string(each.clients), fmt::to_string(each.drives),
                     megabytes(each.read_bytes_per_s), megabytes(each.write_bytes_per_s),
                     fmt::to_string(each.ops_per_s), text(each.median), text(each.p99)});
  }
  return table_text(table);
}

}  // namespace cairn::view
