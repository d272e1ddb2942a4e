// SPDX-License-Identifier: Apache-2.0
#include "plan/net/listing_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "model/net/network.h"

namespace cairn::plan {

namespace {

using net::Picos;

constexpr double kExact = 0;

struct Outcome final : net::FlowSink {
  explicit Outcome(const std::vector<net::Flow>& flows) : listed(flows), times(flows.size()) {}

  void flow_done(const net::FlowDone& done) override {
    times[done.tag] = done.finished - listed[done.tag].start;
  }
  void pfc_received(const net::PfcFrame& frame) override {
    pfc.push_back(frame);
    pfc.back().priority = 0;  // the reference does not tell it
  }

  const std::vector<net::Flow>& listed;
  std::vector<std::optional<Picos>> times;
  std::vector<net::PfcFrame> pfc;
};

double in_ns(Picos time) { return static_cast<double>(time) / net::kNanosecond; }

// Completion times as the reference sums them up.
void add_times(const Outcome& outcome, std::map<std::string, double>& ours) {
  std::vector<double> times;
  for (const std::optional<Picos>& time : outcome.times) {
    if (time) times.push_back(in_ns(*time));
  }
  ours["finished"] = static_cast<double>(times.size());
  if (times.empty()) return;
  std::ranges::sort(times);
  const auto at = [&](double part) {
    const auto index = static_cast<size_t>(part * static_cast<double>(times.size()));
    return times[std::min(index, times.size() - 1)];
  };
  ours["fct_min_ns"] = times.front();
  ours["fct_p50_ns"] = at(0.5);
  ours["fct_p99_ns"] = at(0.99);
  ours["fct_max_ns"] = times.back();
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  ours["fct_mean_ns"] = std::nearbyint(sum / static_cast<double>(times.size()));
}

std::map<std::string, double> totals_of(const Outcome& outcome, const net::Counters& k) {
  std::map<std::string, double> ours;
  add_times(outcome, ours);
  const auto put = [&ours](const char* name, auto value) {
    ours[name] = static_cast<double>(value);
  };
  put("flows", outcome.listed.size());
  put("data_tx", k.data_packets);
  put("link_tx", k.link_packets);
  put("pause_rx_host", k.pauses_at_hosts);
  put("pause_rx_switch", k.pauses_at_switches);
  put("resume", k.resumes);
  put("drops", k.drops);
  put("ecn_draws", k.mark_draws);
  put("marks", k.marks);
  if (k.first_pause >= 0) {
    put("first_pause_ns", k.first_pause / net::kNanosecond);
    put("last_pause_ns", k.last_pause / net::kNanosecond);
  }
  return ours;
}

}  // namespace

std::vector<Comparison> check_net_listing(const std::string& file, const std::string& name,
                                          const NetListing& listing,
                                          const net::Topology& topology) {
  Outcome outcome(listing.flows);
  net::Network network(topology, listing.config.parameters);
  for (const net::Flow& flow : listing.flows) network.start(flow);
  network.advance(listing.config.stop, outcome);

  std::vector<Comparison> found;
  const auto add = [&](std::string measure, double ours, double reference) {
    found.push_back(compare({file, name, std::move(measure)}, ours, reference, kExact));
  };
  // Of flows and frames: how many are the reference's, of all that it lists.
  size_t same = 0;
  for (size_t i = 0; i < listing.times.size(); ++i) {
    if (outcome.times[i] == listing.times[i]) ++same;
  }
  add("flows with its time", static_cast<double>(same), static_cast<double>(listing.times.size()));
  if (listing.pfc) {
    const auto differs = std::ranges::mismatch(outcome.pfc, *listing.pfc);
    add("PFC frames in its order", static_cast<double>(differs.in1 - outcome.pfc.begin()),
        static_cast<double>(listing.pfc->size()));
    add("PFC frames", static_cast<double>(outcome.pfc.size()),
        static_cast<double>(listing.pfc->size()));
  }
  const std::map<std::string, double> ours = totals_of(outcome, network.counters());
  for (const auto& [measure, reference] : listing.totals) {
    const auto have = ours.find(measure);
    if (have != ours.end()) add(measure, have->second, reference);
  }
  return found;
}

}  // namespace cairn::plan
