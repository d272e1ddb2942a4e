// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_report.h"

#include <fmt/format.h>

#include "base/table.h"
#include "report/page.h"
#include "snis/figures.h"

namespace cairn::plan {

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const snis::Distribution& d) {
  return {{"count", d.count}, {"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90},
          {"p99", d.p99},     {"p999", d.p999}, {"max", d.max}};
}

ordered_json json_of(const snis::Delays& d) {
  return {{"storage_ns", json_of(d.storage)},
          {"network_ns", json_of(d.network)},
          {"total_ns", json_of(d.total)}};
}

ordered_json json_of(const snis::Step& step) {
  ordered_json json = {{"throughput_gbps", json_of(step.metrics.throughput_gbps)},
                       {"read", json_of(step.metrics.read)},
                       {"write", json_of(step.metrics.write)},
                       {"unfinished", step.metrics.unfinished},
                       {"network",
                        {{"pauses_at_hosts", step.network.pauses_at_hosts},
                         {"pauses_at_switches", step.network.pauses_at_switches},
                         {"marks", step.network.marks},
                         {"drops", step.network.drops},
                         {"data_packets", step.network.data_packets}}}};
  if (step.distance) {
    json["distance"] = {{"mean", step.distance->mean},
                        {"median", step.distance->median},
                        {"p90", step.distance->p90},
                        {"criterion", step.distance->criterion}};
  }
  if (step.movement) {
    json["movement"] = {{"writes_moved", step.movement->moved},
                        {"mean_abs_ns", step.movement->mean_abs_ns},
                        {"max_abs_ns", step.movement->max_abs_ns}};
    if (step.movement->moved > 0) json["movement"]["first_ns"] = step.movement->first_ns;
  }
  return json;
}

std::string csv_row(const std::string& name, const snis::Step& step) {
  const snis::Metrics& m = step.metrics;
  std::string row = fmt::format("{},{:.6g},{:.6g},{:.6g}", name, m.throughput_gbps.mean,
                                m.throughput_gbps.p50, m.throughput_gbps.p90);
  if (step.distance && step.movement) {
    const snis::Distance& d = *step.distance;
    row += fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g},{},{:.1f},{}", d.mean, d.median, d.p90,
                       d.criterion, step.movement->moved, step.movement->mean_abs_ns,
                       step.movement->max_abs_ns);
  } else {
    row += ",,,,,,,";
  }
  for (const double ns : {m.read.storage.mean, m.write.storage.mean, m.read.network.mean,
                          m.write.network.mean, m.read.total.p99, m.write.total.p99}) {
    row += fmt::format(",{:.3f}", ns * 1e-3);
  }
  return row + fmt::format(",{},{},{},{}\n", step.network.pauses_at_hosts,
                           step.network.pauses_at_switches, step.network.drops, m.unfinished);
}

std::string verdict(const SnisOutcome& outcome) {
  std::string text;
  if (outcome.stable_at) {
    text = fmt::format("Stable at iteration {} ({}).", *outcome.stable_at, snis::text(outcome.why));
  } else if (!outcome.steps.empty()) {
    text = fmt::format("Not stable after iteration {}.", outcome.steps.size() - 1);
  }
  if (outcome.unchanged) text += " The last iteration moved nothing: it is the fixed point.";
  return text;
}

std::string apart_text(const SnisOutcome& outcome) {
  return fmt::format(
      "{} of {} requests differ from the coupled loop; they end {:.1f} ns earlier or later on "
      "average, at most {:.1f} us.",
      outcome.apart->requests, outcome.requests.size(), outcome.apart->mean_abs_ns,
      outcome.apart->max_abs_ns * 1e-3);
}

std::vector<std::vector<std::string>> beside_rows(const SnisOutcome& outcome) {
  std::vector<std::vector<std::string>> rows;
  for (const snis::Beside& row :
       snis::beside(outcome.steps.back().metrics, outcome.coupled->metrics)) {
    rows.push_back({row.name, fmt::format("{:.5g}", row.iterated),
                    fmt::format("{:.5g}", row.coupled),
                    fmt::format("{:+.3f}%", row.error() * 100)});
  }
  return rows;
}

bool compares(const SnisOutcome& outcome) {
  return outcome.coupled && outcome.apart && !outcome.steps.empty();
}

// What the drawings of the network show: the last iteration, or the coupled loop.
const snis::Step& shown(const SnisOutcome& outcome) {
  return outcome.steps.empty() ? *outcome.coupled : outcome.steps.back();
}

}  // namespace

ordered_json snis_json(const SnisOutcome& outcome) {
  ordered_json iterations = ordered_json::array();
  for (const snis::Step& step : outcome.steps) {
    ordered_json json = json_of(step);
    json["iteration"] = step.number;
    json["stable"] = step.stable != snis::Stable::kNo;
    iterations.push_back(std::move(json));
  }
  ordered_json json = {{"schema_version", 1},
                       {"load", outcome.load},
                       {"requests", outcome.requests.size()},
                       {"drive", outcome.drive},
                       {"network", outcome.network},
                       {"targets", outcome.targets},
                       {"initiators", outcome.initiators},
                       {"iterations", std::move(iterations)},
                       {"unchanged", outcome.unchanged}};
  json["stable_at"] = outcome.stable_at ? ordered_json(*outcome.stable_at) : ordered_json(nullptr);
  if (outcome.stable_at) json["stable_because"] = snis::text(outcome.why);
  if (outcome.coupled) json["coupled"] = json_of(*outcome.coupled);
  if (compares(outcome)) {
    ordered_json errors;
    for (const snis::Beside& row :
         snis::beside(outcome.steps.back().metrics, outcome.coupled->metrics)) {
      errors[row.name] = {
          {"iterated", row.iterated}, {"coupled", row.coupled}, {"error", row.error()}};
    }
    json["against_coupled"] = {{"requests_that_differ", outcome.apart->requests},
                               {"mean_abs_ns", outcome.apart->mean_abs_ns},
                               {"max_abs_ns", outcome.apart->max_abs_ns},
                               {"metrics", std::move(errors)}};
  }
  return json;
}

std::string snis_csv(const SnisOutcome& outcome) {
  std::string csv =
      "iter,thr_mean_gbps,thr_median_gbps,thr_p90_gbps,rd_mean,rd_median,rd_p90,conv_c,"
      "writes_moved,mean_abs_change_write_SA_ns,max_abs_change_write_SA_ns,read_storage_mean_us,"
      "write_storage_mean_us,read_net_mean_us,write_net_mean_us,read_p99_us,write_p99_us,"
      "pause_rx_host,pause_rx_switch,drops,unfinished\n";
  for (const snis::Step& step : outcome.steps) {
    csv += csv_row(fmt::format("{}", step.number), step);
  }
  if (outcome.coupled) csv += csv_row("coupled", *outcome.coupled);
  return csv;
}

std::string snis_text(const SnisOutcome& outcome) {
  std::string text = fmt::format("{} requests of {}\n", outcome.requests.size(), outcome.load);
  if (!outcome.steps.empty()) {
    std::vector<std::vector<std::string>> rows = {snis::step_heading()};
    for (auto& row : snis::step_rows(outcome.steps)) rows.push_back(std::move(row));
    text += table_text(rows) + verdict(outcome) + "\n";
  }
  if (outcome.coupled) {
    const snis::Metrics& m = outcome.coupled->metrics;
    text += fmt::format(
        "coupled: {:.5f} Gb/s mean, {:.5f} median, {:.5f} 90th; p99 {:.1f} us read, {:.1f} us "
        "write\n",
        m.throughput_gbps.mean, m.throughput_gbps.p50, m.throughput_gbps.p90,
        m.read.total.p99 * 1e-3, m.write.total.p99 * 1e-3);
  }
  if (compares(outcome)) {
    std::vector<std::vector<std::string>> rows = {{"metric", "iterated", "coupled", "error"}};
    for (auto& row : beside_rows(outcome)) rows.push_back(std::move(row));
    text += table_text(rows) + apart_text(outcome) + "\n";
  }
  if (const uint64_t lost = shown(outcome).metrics.unfinished; lost > 0) {
    text += fmt::format("{} requests were lost on their way and count nowhere\n", lost);
  }
  return text;
}

std::string snis_page(const SnisOutcome& outcome) {
  report::Page page("Storage and network, simulated together",
                    fmt::format("{} requests of {}: {} targets ({}), {} initiators, network {}.",
                                outcome.requests.size(), outcome.load, outcome.targets,
                                outcome.drive, outcome.initiators, outcome.network));
  if (!outcome.steps.empty()) {
    page.heading("Convergence");
    page.paragraph(verdict(outcome));
    page.figure(svg(snis::convergence_chart("From one iteration to the next", outcome.steps)),
                "Distances of mean, median and 90th percentile of throughput; Conv_C weighs them");
    page.figure(svg(snis::throughput_chart(outcome.steps)), "Throughput in each iteration");
    page.table(snis::step_heading(), snis::step_rows(outcome.steps));
  }
  page.heading("The network over time");
  page.figure(svg(snis::rate_chart(shown(outcome).network)), "All frames, headers included");
  page.figure(svg(snis::pause_chart(shown(outcome).network)),
              "Received by the switches farthest from hosts");
  if (compares(outcome)) {
    page.heading("The iteration against the coupled loop");
    page.paragraph(apart_text(outcome));
    page.table({"metric", "iterated", "coupled", "error"}, beside_rows(outcome));
  }
  return page.html();
}

std::string times_csv(std::span<const trace::Record> requests, const snis::Times& times) {
  std::string csv =
      "request,op,bytes,initiator,target,arrival_ns,storage_arrival_ns,storage_departure_ns,"
      "network_arrival_ps,network_departure_ps\n";
  for (size_t i = 0; i < requests.size(); ++i) {
    const trace::Record& r = requests[i];
    csv += fmt::format("{},{},{},{},{},{}", i, r.write ? 'W' : 'R', r.bytes, r.initiator, r.target,
                       r.arrival);
    for (const int64_t time : {times.storage_arrival[i], times.storage_departure[i],
                               times.network_arrival[i], times.network_departure[i]}) {
      csv += time == snis::kNever ? "," : fmt::format(",{}", time);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace cairn::plan
