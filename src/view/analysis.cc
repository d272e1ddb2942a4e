// SPDX-License-Identifier: Apache-2.0
#include "view/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "view/drive_estimate.h"

namespace cairn::view {

namespace {

// Views come from elsewhere: sums of these stay numbers.
constexpr uint64_t kCountMax = 1U << 24;

ComponentId drive_of(const FlowView& flow) { return {flow.box, Kind::kDrive, flow.drive}; }
ComponentId pipe_of(const FlowView& flow) { return {flow.box, Kind::kNetPipe, flow.port}; }

bool is_congested(const View& view, ComponentId id) {
  const ComponentView* component = view.find(id);
  if (component == nullptr) return false;
  return component->drive ? component->drive->is_congested : component->delay > kDelayLow;
}

uint64_t requests_of(const FlowView& flow) {
  uint64_t count = 0;
  for (const RttCount& each : flow.rtts) count += each.count;
  return count;
}

// The bucket that the 99th percentile lies in.
size_t p99_bucket(std::span<const FlowView* const> flows, uint64_t requests) {
  std::array<uint64_t, kRttBuckets> counts{};
  for (const FlowView* flow : flows) {
    for (const RttCount& each : flow->rtts)
      counts[std::min<size_t>(each.bucket, kRttBuckets - 1)] += each.count;
  }
  const uint64_t wanted = requests - (requests / 100);
  uint64_t passed = 0;
  for (size_t bucket = 0; bucket < kRttBuckets; ++bucket) {
    passed += counts[bucket];
    if (passed >= wanted) return bucket;
  }
  return kRttBuckets - 1;
}

// The size class with most bytes.
size_t main_class(const std::array<uint64_t, kSizeClasses>& sizes) {
  size_t most = 0;
  for (size_t i = 1; i < kSizeClasses; ++i) {
    if (sizes[i] << i > sizes[most] << most) most = i;
  }
  return most;
}

// Of those who use it besides the volume, who loads it most; what is written counts as often as it
// costs.
std::optional<Sharer> main_sharer(const View& view, ComponentId id, std::string_view volume) {
  struct Load {
    uint64_t weighted = 0;
    std::array<uint64_t, kSizeClasses> sizes{};
  };
  std::map<std::pair<std::string_view, IoType>, Load> loads;
  const ComponentView* component = view.find(id);
  const uint64_t cost =
      component != nullptr && component->drive ? component->drive->write_cost_x10 : kWriteCostMin;
  for (const FlowView& flow : view.flows) {
    if (flow.volume == volume) continue;
    if ((id.kind == Kind::kDrive ? drive_of(flow) : pipe_of(flow)) != id) continue;
    for (const IoType type : {IoType::kRead, IoType::kWrite}) {
      const Traffic& traffic = type == IoType::kRead ? flow.reads : flow.writes;
      if (traffic.ops_per_s == 0) continue;
      Load& load = loads[{flow.volume, type}];
      load.weighted += traffic.bytes_per_s * (type == IoType::kWrite ? cost : kWriteCostMin);
      for (size_t i = 0; i < kSizeClasses; ++i) load.sizes[i] += traffic.sizes[i];
    }
  }
  const auto most =
      std::ranges::max_element(loads, {}, [](const auto& each) { return each.second.weighted; });
  if (most == loads.end()) return std::nullopt;
  return Sharer{.volume = std::string(most->first.first),
                .type = most->first.second,
                .size_class = main_class(most->second.sizes)};
}

}  // namespace

Bottlenecks find_bottlenecks(const View& view) {
  Bottlenecks found;
  std::set<ComponentId> congested;
  for (const ComponentView& component : view.components) {
    const ComponentId id = component.id;
    if (id.kind == Kind::kDrive && is_congested(view, id)) {
      congested.insert(id);
      congested.insert({id.box, Kind::kIoPipe, id.index});
    }
    if (id.kind == Kind::kNetPipe && is_congested(view, id)) congested.insert(id);
  }
  // Whose requests a congested drive delays hold up what shares their NetPipe.
  std::map<ComponentId, ComponentId> held_up;
  const auto add = [&](size_t flow, ComponentId because, bool is_direct) {
    found.victims.push_back({.flow = flow,
                             .because = because,
                             .is_direct = is_direct,
                             .suffers = view.flows[flow].delay > kDelayLow});
  };
  std::set<size_t> direct;
  for (size_t i = 0; i < view.flows.size(); ++i) {
    const ComponentId drive = drive_of(view.flows[i]);
    const ComponentId pipe = pipe_of(view.flows[i]);
    if (congested.contains(drive)) {
      held_up.try_emplace(pipe, drive);
      add(i, drive, true);
      direct.insert(i);
    } else if (congested.contains(pipe)) {
      add(i, pipe, true);
      direct.insert(i);
    }
  }
  for (size_t i = 0; i < view.flows.size(); ++i) {
    const auto because = held_up.find(pipe_of(view.flows[i]));
    if (!direct.contains(i) && because != held_up.end()) add(i, because->second, false);
  }
  found.congested.assign(congested.begin(), congested.end());
  return found;
}

Why explain(const View& view, std::string_view volume) {
  Why why{.volume = std::string(volume), .p99 = {}, .causes = {}};
  std::vector<const FlowView*> flows;
  for (const FlowView& flow : view.flows) {
    if (flow.volume != volume) continue;
    flows.push_back(&flow);
    why.requests += requests_of(flow);
  }
  for (const Offender& each : view.offenders) {
    const bool is_there = std::ranges::any_of(flows, [&](const FlowView* flow) {
      return each.offence != Offender::Offence::kTellsNothing && drive_of(*flow) == each.drive;
    });
    // Of one that tells nothing nobody knows where it is.
    if (each.volume == volume || is_there || each.offence == Offender::Offence::kTellsNothing) {
      why.offenders.push_back(each);
    }
  }
  if (why.requests == 0) return why;
  const size_t slowest = p99_bucket(flows, why.requests);
  why.p99 = rtt_of_bucket(slowest);

  // Of each slow request, what it waited in a full NetPipe is the pipe's, all else the drive's.
  std::map<ComponentId, uint64_t> waits;
  uint64_t all = 0;
  for (const FlowView* flow : flows) {
    const ComponentView* pipe = view.find(pipe_of(*flow));
    const int64_t in_pipe = pipe == nullptr ? 0 : std::max<int64_t>(pipe->delay.ns, 0);
    for (const RttCount& each : flow->rtts) {
      if (each.bucket < slowest || each.bucket >= kRttBuckets) continue;
      const int64_t rtt = rtt_of_bucket(each.bucket).ns;
      const uint64_t count = std::min<uint64_t>(each.count, kCountMax);
      const auto of_pipe = static_cast<uint64_t>(std::min(rtt, in_pipe)) / 1000 * count;
      const uint64_t of_both = static_cast<uint64_t>(rtt) / 1000 * count;
      if (of_pipe > 0) waits[pipe_of(*flow)] += of_pipe;
      if (of_both > of_pipe) waits[drive_of(*flow)] += of_both - of_pipe;
      all += of_both;
    }
  }
  uint64_t shown = 0;
  for (const auto& [id, wait] : waits) {
    const auto permille = static_cast<uint32_t>(wait * 1000 / all);
    shown += permille;
    why.causes.push_back({.component = id,
                          .permille = permille,
                          .is_congested = is_congested(view, id),
                          .shared_with = main_sharer(view, id, volume)});
  }
  std::ranges::sort(why.causes, [](const Cause& a, const Cause& b) {
    return a.permille != b.permille ? a.permille > b.permille : a.component < b.component;
  });
  // What was rounded off belongs to the largest.
  if (!why.causes.empty()) why.causes.front().permille += static_cast<uint32_t>(1000 - shown);
  return why;
}

std::string text(const View& view, const Offender& offender) {
  const auto rate = [](uint64_t bytes_per_s) {
    return fmt::format("{:.1f} MB/s", static_cast<double>(bytes_per_s) / 1e6);
  };
  const std::string who = fmt::format("{} (client {})", offender.volume, offender.client);
  switch (offender.offence) {
    case Offender::Offence::kTakesMore:
      return fmt::format("{} does not keep to its share of {}: it takes {} and was granted {}.\n",
                         who, view.name_of(offender.drive), rate(offender.used),
                         rate(offender.granted));
    case Offender::Offence::kAsksForNothing:
      return fmt::format("{} takes {} of {} without a share: it was opened with shares=no.\n", who,
                         rate(offender.used), view.name_of(offender.drive));
    case Offender::Offence::kTellsNothing:
      return fmt::format("{} tells nothing of its requests: it may load any drive unseen.\n", who);
  }
  return {};
}

std::string text(const View& view, const Why& why) {
  std::string offences;
  for (const Offender& each : why.offenders) offences += text(view, each);
  if (why.requests == 0) {
    return fmt::format(
        "{}: no requests in the last 200 ms. Either it is idle, or no agent reports for it.\n{}",
        why.volume, offences);
  }
  std::string out = fmt::format("{}: 99% of {} requests in the last 200 ms took {} or less.\n",
                                why.volume, why.requests, cairn::text(why.p99));
  uint32_t left = 1000;
  for (const Cause& cause : why.causes) {
    // Many drives with a little each are one line.
    if (cause.permille < 50 && left < 1000) break;
    left -= cause.permille;
    out += fmt::format("{}% of its p99 is {} {}{}", (cause.permille + 5) / 10,
                       cause.component.kind == Kind::kDrive ? "drive" : "NetPipe",
                       view.name_of(cause.component), cause.is_congested ? " (congested)" : "");
    if (cause.shared_with) {
      const Sharer& sharer = *cause.shared_with;
      out +=
          fmt::format(", shared with {}'s {} {}", sharer.volume, size_class_text(sharer.size_class),
                      sharer.type == IoType::kRead ? "reads" : "writes");
    } else {
      out += ", which nobody else uses";
    }
    out += ".\n";
  }
  if (left >= 10) out += fmt::format("{}% is spread over others.\n", (left + 5) / 10);
  return out + offences;
}

}  // namespace cairn::view
