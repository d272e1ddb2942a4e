// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "config/json_text.h"
#include "report/chart.h"
#include "report/page.h"

namespace cairn::plan {

namespace {

net::LinkSpeed speed(double gbps) { return {.bits_per_s = static_cast<uint64_t>(gbps * 1e9)}; }

std::string verdict(const PlanOutcome& outcome) {
  if (!outcome.plan.min) {
    return "No hardware within the limits keeps the promise. Allow more with --drives-max or "
           "--links-per-box, or look at the hosts: --initiators and --host-link.";
  }
  const snis::Hardware& min = *outcome.plan.min;
  const auto counted = [](uint64_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  return fmt::format("{} in {} with {} each.", counted(min.drives, "drive", "drives"),
                     counted(min.boxes, "box", "boxes"),
                     counted(min.links_per_box, "link", "links"));
}

// Which requests the answer is about.
std::string taken(const PlanOutcome& outcome) {
  if (!outcome.cut) return fmt::format("Simulated: all {} requests.", outcome.requests);
  const std::string of = outcome.requests_in_trace
                             ? fmt::format("of the trace's {} requests", *outcome.requests_in_trace)
                             : std::string("requests of a trace that cannot be read to its end");
  return fmt::format(
      "Simulated: the first {} {}. What comes later may need more; --requests N takes more of it.",
      outcome.requests, of);
}

std::vector<std::string> heading() {
  return {"drives", "boxes", "links per box", "read p99 us", "write p99 us", ""};
}

std::vector<std::vector<std::string>> rows(const PlanOutcome& outcome) {
  std::vector<std::vector<std::string>> table;
  for (const snis::Trial& trial : outcome.plan.trials) {
    const bool chosen = outcome.plan.min && trial.hardware == *outcome.plan.min;
    const bool keeps = trial.worst_p99_ns() <= outcome.p99_ns_max;
    table.push_back({fmt::format("{}", trial.hardware.drives),
                     fmt::format("{}", trial.hardware.boxes),
                     fmt::format("{}", trial.hardware.links_per_box),
                     fmt::format("{:.1f}", trial.read_p99_ns * 1e-3),
                     fmt::format("{:.1f}", trial.write_p99_ns * 1e-3),
                     chosen  ? "the least that is enough"
                     : keeps ? "enough"
                             : "too little"});
  }
  return table;
}

// The worse p99 of trials that differ in one number only.
report::LineChart chart(const PlanOutcome& outcome, const std::string& x_title,
                        const std::vector<report::Point>& points) {
  const double promise = outcome.p99_ns_max * 1e-3;
  std::vector<report::Point> sorted = points;
  std::ranges::sort(sorted, {}, &report::Point::x);
  report::LineChart drawn{.title = "p99 and " + x_title,
                          .x = {.title = x_title},
                          .y = {.title = "p99 (us)", .scale = report::Scale::kLogarithmic},
                          .series = {{.name = "simulated", .points = sorted}}};
  if (!sorted.empty()) {
    drawn.series.push_back({.name = "promised",
                            .points = {{sorted.front().x, promise}, {sorted.back().x, promise}},
                            .is_reference = true});
  }
  return drawn;
}

}  // namespace

snis::System system_of(const PlanParts& parts, const snis::Hardware& hardware) {
  snis::System system{.drive = parts.drive, .occupancy = parts.occupancy, .network = parts.network};
  net::Topology& topology = system.topology;
  const uint32_t middle = topology.add_switch("switch");
  for (uint32_t box = 0; box < hardware.boxes; ++box) {
    const uint32_t node = topology.add_host(fmt::format("box{}", box));
    topology.connect(node, middle, speed(parts.link_gbps * hardware.links_per_box));
  }
  for (uint32_t host = 0; host < parts.initiators; ++host) {
    const uint32_t node = topology.add_host(fmt::format("host{}", host));
    topology.connect(node, middle, speed(parts.host_link_gbps));
    system.initiator_hosts.push_back(hardware.boxes + host);
  }
  for (uint32_t drive = 0; drive < hardware.drives; ++drive) {
    system.target_hosts.push_back(drive % hardware.boxes);
  }
  return system;
}

std::string plan_text(const PlanOutcome& outcome) {
  std::vector<std::vector<std::string>> table = {heading()};
  for (auto& row : rows(outcome)) table.push_back(std::move(row));
  return fmt::format("{} at {:.0f} requests per second, p99 at most {:.0f} us:\n{}{}\n{}\n",
                     outcome.load, outcome.iops, outcome.p99_ns_max * 1e-3, table_text(table),
                     verdict(outcome), taken(outcome));
}

std::string plan_json(const PlanOutcome& outcome) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const snis::Trial& trial : outcome.plan.trials) {
    trials.push_back({{"drives", trial.hardware.drives},
                      {"boxes", trial.hardware.boxes},
                      {"links_per_box", trial.hardware.links_per_box},
                      {"read_p99_ns", trial.read_p99_ns},
                      {"write_p99_ns", trial.write_p99_ns},
                      {"enough", trial.worst_p99_ns() <= outcome.p99_ns_max}});
  }
  nlohmann::ordered_json json = {{"schema_version", 1},
                                 {"load", outcome.load},
                                 {"requests", outcome.requests},
                                 {"requests_in_trace", nullptr},
                                 {"cut", outcome.cut},
                                 {"iops", outcome.iops},
                                 {"p99_ns_max", outcome.p99_ns_max},
                                 {"enough", outcome.plan.min.has_value()}};
  if (outcome.requests_in_trace) json["requests_in_trace"] = *outcome.requests_in_trace;
  if (outcome.plan.min) {
    json["drives"] = outcome.plan.min->drives;
    json["boxes"] = outcome.plan.min->boxes;
    json["links_per_box"] = outcome.plan.min->links_per_box;
    json["links"] = outcome.plan.min->boxes * outcome.plan.min->links_per_box;
  }
  json["trials"] = std::move(trials);
  return config::json_text(json);
}

std::string plan_page(const PlanOutcome& outcome) {
  report::Page page("What a load needs",
                    fmt::format("{} at {:.0f} requests per second; 99 of 100 reads and of 100 "
                                "writes shall take at most {:.0f} us.",
                                outcome.load, outcome.iops, outcome.p99_ns_max * 1e-3));
  page.paragraph(verdict(outcome));
  page.paragraph(taken(outcome));
  std::vector<report::Point> by_drives;
  std::vector<report::Point> by_boxes;
  std::vector<report::Point> by_links;
  const snis::Hardware& first = outcome.plan.trials.front().hardware;
  for (const snis::Trial& trial : outcome.plan.trials) {
    const snis::Hardware& h = trial.hardware;
    const double us = trial.worst_p99_ns() * 1e-3;
    const bool all_links = h.links_per_box == first.links_per_box;
    if (h.boxes == h.drives && all_links) by_drives.push_back({static_cast<double>(h.drives), us});
    if (!outcome.plan.min || h.drives != outcome.plan.min->drives) continue;
    if (all_links) by_boxes.push_back({static_cast<double>(h.boxes), us});
    if (h.boxes == outcome.plan.min->boxes) {
      by_links.push_back({static_cast<double>(h.links_per_box), us});
    }
  }
  page.figure(svg(chart(outcome, "drives", by_drives)), "Each in a box of its own, with all links");
  page.figure(svg(chart(outcome, "boxes", by_boxes)), "With the drives that are enough");
  page.figure(svg(chart(outcome, "links per box", by_links)), "With drives and boxes that are");
  page.table(heading(), rows(outcome));
  return page.html();
}

}  // namespace cairn::plan
