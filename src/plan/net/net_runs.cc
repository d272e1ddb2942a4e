// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <tuple>

#include "base/rng.h"
#include "base/words.h"
#include "model/net/workload.h"

namespace cairn::plan {

namespace {

using net::Flow;
using net::Picos;
using nlohmann::json;

constexpr int64_t kBytesMax = 1LL << 40;
constexpr int64_t kStartMaxNs = 1'000'000'000'000;
constexpr uint32_t kFlowsMax = 1'000'000;
constexpr Picos kStart = net::kMillisecond;

// Sizes in KB and gaps in us, of reads and of writes.
struct Trace {
  std::string_view tag;
  double read_kb;
  double write_kb;
  double read_us;
  double write_us;
};
constexpr std::array<Trace, 5> kTableTwo = {{{"F_t_l", 28, 11, 57, 54},
                                             {"F_t_m", 27, 12, 17, 17},
                                             {"F_t_h", 28, 11, 12, 10},
                                             {"F_s_m", 80, 34, 60, 53},
                                             {"F_s_h", 110, 46, 60, 52}}};
constexpr uint64_t kSmallestRequest = 512;
constexpr uint32_t kInitiators = 10;
constexpr uint32_t kPodHosts = 64;

// "64KB" is 65536 bytes and "1MB" a million, as the reference has them; 0 when there is none.
uint64_t bytes_in(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '_') continue;
    const std::string_view rest = name.substr(i + 1);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const std::string_view unit = rest.substr(static_cast<size_t>(end - rest.data()));
    if (error != std::errc{} || number == 0 || number > 1'000'000) continue;
    if (unit.starts_with("KB")) return number * 1024;
    if (unit.starts_with("MB")) return number * 1'000'000;
  }
  return 0;
}

// -1 when there is none.
int64_t integer(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

const json* list_of(const json& listed, const std::string& name) {
  if (!listed.is_array()) return nullptr;
  for (const json& one : listed) {
    if (!one.is_object()) continue;
    const auto named = one.find("name");
    const auto list = one.find("fct");
    if (named != one.end() && *named == name && list != one.end() && list->is_array()) {
      return &*list;
    }
  }
  return nullptr;
}

// Hosts by the node numbers of the reference, which are ours.
Attempt<std::vector<Flow>> listed_flows(const json& list, const net::Topology& topology) {
  std::vector<Flow> flows;
  const auto host = [&](const json& one, const char* key) -> Attempt<uint32_t> {
    const int64_t node = integer(one, key);
    const auto& hosts = topology.hosts();
    const auto found = std::ranges::find(hosts, node);
    if (found == hosts.end()) {
      return refuse(fmt::format("fct_per_flow.json: {} {} is no host of its network", key, node));
    }
    return static_cast<uint32_t>(found - hosts.begin());
  };
  for (const json& one : list) {
    if (!one.is_object()) return refuse("fct_per_flow.json: a flow is not an object");
    const Attempt<uint32_t> from = host(one, "src");
    if (!from) return std::unexpected(from.error());
    const Attempt<uint32_t> to = host(one, "dst");
    if (!to) return std::unexpected(to.error());
    const int64_t bytes = integer(one, "bytes");
    const int64_t start = integer(one, "start_ns");
    if (*from == *to || bytes <= 0 || bytes > kBytesMax || start < 0 || start > kStartMaxNs) {
      return refuse(
          fmt::format("fct_per_flow.json: a flow from {} to {} needs two hosts, bytes and start_ns",
                      integer(one, "src"), integer(one, "dst")));
    }
    flows.push_back({.source = *from,
                     .destination = *to,
                     .bytes = static_cast<uint64_t>(bytes),
                     .start = start * net::kNanosecond});
  }
  // The list is in order of completion; flows of one moment were started in order of senders.
  std::ranges::sort(flows, {}, [](const Flow& f) {
    return std::tuple(f.start, f.source, f.destination, f.bytes);
  });
  return flows;
}

// Host 0 is the target; initiators are in other pods.
std::vector<Flow> requests(const Trace& trace, uint32_t count, uint32_t hosts, Rng& rng) {
  std::vector<uint32_t> initiators;
  while (initiators.size() < kInitiators) {
    const auto host = static_cast<uint32_t>(rng.between(kPodHosts, hosts - 1));
    if (std::ranges::find(initiators, host) == initiators.end()) initiators.push_back(host);
  }
  std::vector<Flow> flows;
  for (const bool write : {false, true}) {
    auto at = static_cast<double>(kStart);
    for (uint32_t i = 0; i < count / 2; ++i) {
      at += rng.exponential((write ? trace.write_us : trace.read_us) *
                            static_cast<double>(net::kMicrosecond));
      const double size = rng.exponential((write ? trace.write_kb : trace.read_kb) * 1000);
      const uint32_t host = initiators[rng.below(kInitiators)];
      flows.push_back({.source = write ? host : 0,
                       .destination = write ? 0 : host,
                       .bytes = std::max(kSmallestRequest, static_cast<uint64_t>(size)),
                       .start = static_cast<Picos>(at) / net::kNanosecond * net::kNanosecond});
    }
  }
  std::ranges::sort(flows, {}, [](const Flow& f) { return std::pair(f.start, f.source); });
  return flows;
}

Attempt<NetRun> incast(const std::string& name, uint32_t senders, const json* list) {
  if (senders == 0 || senders > 10'000) return refuse("an incast has from 1 to 10000 senders");
  NetRun run{.topology = net::star(senders + 1)};
  uint64_t bytes = bytes_in(name);
  Picos start = kStart;
  if (list != nullptr) {
    const Attempt<std::vector<Flow>> flows = listed_flows(*list, run.topology);
    if (!flows) return std::unexpected(flows.error());
    if (!flows->empty()) {
      bytes = flows->front().bytes;
      start = flows->front().start;
    }
  }
  if (bytes == 0) return refuse("neither its name nor fct_per_flow.json tells the size of a flow");
  // Also those that the reference lists not, because they never finished.
  run.flows = net::incast(senders + 1, bytes, start);
  return run;
}

Attempt<NetRun> clos(const std::string& name, uint32_t flows, const json* list, uint32_t seed) {
  NetRun run{.topology = net::clos({})};
  if (list != nullptr && list->size() == flows) {
    Attempt<std::vector<Flow>> taken = listed_flows(*list, run.topology);
    if (!taken) return std::unexpected(taken.error());
    run.flows = std::move(*taken);
    return run;
  }
  run.drawn = true;
  const auto hosts = static_cast<uint32_t>(run.topology.hosts().size());
  if (name.contains("perm")) {
    const uint64_t bytes = bytes_in(name);
    if (bytes == 0) return refuse("its name does not tell the size of a flow");
    run.flows = net::permutation(hosts, bytes, kStart, seed);
    return run;
  }
  for (const Trace& trace : kTableTwo) {
    if (!name.contains(trace.tag)) continue;
    Rng rng(seed);
    run.flows = requests(trace, flows, hosts, rng);
    return run;
  }
  return refuse("is neither a permutation nor one of the traces, and its flows are not listed");
}

}  // namespace

Attempt<NetRun> net_run(const std::string& name, uint32_t flows, const json& listed,
                        uint32_t seed) {
  if (flows == 0 || flows > kFlowsMax) {
    return refuse(fmt::format("its number of flows must be from 1 to {}", kFlowsMax));
  }
  const json* list = list_of(listed, name);
  if (name.starts_with("p2p") || name.starts_with("incast")) return incast(name, flows, list);
  if (name.starts_with("clos256")) return clos(name, flows, list, seed);
  return refuse("starts with none of p2p, incast and clos256, so its network is not known");
}

}  // namespace cairn::plan
