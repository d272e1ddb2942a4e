// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/words.h"
#include "config/files.h"
#include "model/net/network.h"
#include "plan/common/csv.h"
#include "plan/common/gunzip.h"
#include "plan/common/json_number.h"
#include "plan/net/hpcc_config.h"
#include "plan/net/listing_check.h"
#include "plan/net/net_listing.h"
#include "plan/net/net_runs.h"

namespace cairn::plan {

namespace {

using net::Flow;
using net::Picos;
using nlohmann::json;

constexpr size_t kFileMax = 1UL << 28;

constexpr double kExact = 0;
// Of flows that were drawn, not listed: nothing but the mean and the tail is near the reference's.
constexpr double kDrawnMean = 0.3;
constexpr double kDrawnTail = 0.3;
constexpr double kAnything = std::numeric_limits<double>::infinity();

struct Outcome final : net::FlowSink {
  std::vector<Picos> starts;  // by tag
  std::vector<double> times_ns;

  void flow_done(const net::FlowDone& done) override {
    times_ns.push_back(static_cast<double>(done.finished - starts[done.tag]) / net::kNanosecond);
  }
  // As the reference counts: the value at that part of the sorted list.
  double at(double part) const {
    if (times_ns.empty()) return 0;
    const auto index = static_cast<size_t>(part * static_cast<double>(times_ns.size()));
    return times_ns[std::min(index, times_ns.size() - 1)];
  }
  double mean() const {
    if (times_ns.empty()) return 0;
    return std::accumulate(times_ns.begin(), times_ns.end(), 0.0) /
           static_cast<double>(times_ns.size());
  }
};

std::string runs_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return (std::filesystem::path(path) / "runs.csv").string();
  }
  return path;
}

class Checker {
 public:
  Checker(std::string path, const NetCheckOptions& options)
      : path_(std::move(path)), options_(options) {}

  Attempt<std::vector<Comparison>> run() {
    const Attempt<std::string> text = config::read_file(path_, kFileMax);
    if (!text) return std::unexpected(text.error());
    const Attempt<Csv> csv = Csv::parse(*text);
    if (!csv) return refuse(fmt::format("{} {}", in_quotes(path_), csv.error().text));
    std::optional<Attempt<json>> configs;
    std::optional<Attempt<json>> flows;
    for (size_t row = 0; row < csv->rows(); ++row) {
      const std::string name = csv->text(row, "name");
      Attempt<void> done;
      if (const std::optional<std::string> listing = listing_of(name)) {
        done = listed_run(name, *listing);
      } else {
        if (!configs) configs = companion("configs.json");
        if (!*configs) return std::unexpected(configs->error());
        if (!flows) flows = companion("fct_per_flow.json");
        if (!*flows) return std::unexpected(flows->error());
        done = one_run(*csv, row, **configs, **flows);
      }
      if (!done) {
        return refuse(
            fmt::format("{}, run {}: {}", in_quotes(path_), in_quotes(name), done.error().text));
      }
    }
    return std::move(found_);
  }

 private:
  std::string beside(const std::string& name) const {
    return (std::filesystem::path(path_).parent_path() / name).string();
  }

  // The file that lists the flows of a run, if there is one.
  std::optional<std::string> listing_of(const std::string& name) const {
    std::error_code ignored;
    for (const char* extension : {".json", ".json.gz"}) {
      const bool may_be_a_file = !name.empty() && !name.contains('/');
      if (may_be_a_file && std::filesystem::exists(beside(name + extension), ignored)) {
        return name + extension;
      }
    }
    return std::nullopt;
  }

  Attempt<void> listed_run(const std::string& name, const std::string& file) {
    const Attempt<json> run = companion(file);
    if (!run) return std::unexpected(run.error());
    const std::string named =
        run->is_object() && run->contains("topology") ? text_of((*run)["topology"]) : std::string();
    if (named.empty() || named.contains('/')) {
      return refuse(fmt::format("{} names no topology beside it", in_quotes(file)));
    }
    const Attempt<std::string> text = config::read_file(beside(named), kFileMax);
    if (!text) return std::unexpected(text.error());
    const Attempt<net::Topology> topology = parse_hpcc_topology(*text);
    if (!topology) return refuse(fmt::format("{} {}", in_quotes(named), topology.error().text));
    const Attempt<NetListing> listing = parse_net_listing(*run, *topology);
    if (!listing) return refuse(fmt::format("{} {}", in_quotes(file), listing.error().text));
    const std::vector<Comparison> found = check_net_listing(path_, name, *listing, *topology);
    found_.insert(found_.end(), found.begin(), found.end());
    return {};
  }

  Attempt<json> companion(const std::string& name) const {
    Attempt<std::string> packed = config::read_file(beside(name), kFileMax);
    if (!packed) return std::unexpected(packed.error());
    const Attempt<std::string> text = gunzip(std::move(*packed), kFileMax);
    if (!text) return refuse(fmt::format("{} {}", in_quotes(beside(name)), text.error().text));
    json parsed = json::parse(*text, nullptr, false);
    if (parsed.is_discarded()) {
      return refuse(fmt::format("{} is not JSON", in_quotes(beside(name))));
    }
    return parsed;
  }

  Attempt<void> one_run(const Csv& csv, size_t row, const json& configs, const json& listed) {
    const std::string name = csv.text(row, "name");
    if (!configs.is_object() || !configs.contains(name)) {
      return refuse("configs.json has no configuration of that name");
    }
    Attempt<HpccConfig> config = parse_hpcc_config(configs[name]);
    if (!config) return refuse(fmt::format("its configuration {}", config.error().text));
    config->parameters.pfc.headroom_extra_bytes =
        static_cast<uint32_t>(std::clamp(csv.number(row, "headroom_extra_B"), 0.0, 1e9));
    Attempt<NetRun> run =
        net_run(name, static_cast<uint32_t>(csv.number(row, "flows")), listed, options_.seed);
    if (!run) return std::unexpected(run.error());
    Outcome outcome;
    net::Network network(run->topology, config->parameters);
    for (Flow& flow : run->flows) {
      flow.tag = outcome.starts.size();
      outcome.starts.push_back(flow.start);
      network.start(flow);
    }
    network.advance(config->stop, outcome);
    std::ranges::sort(outcome.times_ns);
    compare_run({&csv, row, name, run->drawn}, outcome, network.counters());
    return {};
  }

  struct Row {
    const Csv* csv;
    size_t index;
    std::string name;
    bool drawn;
  };

  void compare(const Row& row, const char* measure, double ours, const char* column,
               double tolerance) {
    found_.push_back(cairn::plan::compare({path_, row.name, measure}, ours,
                                          row.csv->number(row.index, column), tolerance));
  }

  void compare_run(const Row& row, const Outcome& outcome, const net::Counters& k) {
    const bool drawn = row.drawn;
    const double judged = drawn ? kAnything : kExact;
    // The reference's means are rounded.
    const double mean = drawn ? outcome.mean() : std::nearbyint(outcome.mean());
    compare(row, "fct min ns", outcome.at(0), "fct_min_ns", judged);
    compare(row, "fct mean ns", mean, "fct_mean_ns", drawn ? kDrawnMean : kExact);
    compare(row, "fct p50 ns", outcome.at(0.5), "fct_p50_ns", judged);
    compare(row, "fct p99 ns", outcome.at(0.99), "fct_p99_ns", drawn ? kDrawnTail : kExact);
    compare(row, "fct last ns", outcome.at(1), "fct_max_ns", judged);
    compare(row, "finished", static_cast<double>(outcome.times_ns.size()), "finished", kExact);
    compare(row, "PAUSE at hosts", static_cast<double>(k.pauses_at_hosts), "pause_rx_host", judged);
    compare(row, "PAUSE at switches", static_cast<double>(k.pauses_at_switches), "pause_rx_switch",
            judged);
    compare(row, "drops", static_cast<double>(k.drops), "drops", kExact);
    if (!drawn) {
      compare(row, "frames on links", static_cast<double>(k.link_packets), "link_tx", kExact);
    }
  }

  std::string path_;
  const NetCheckOptions& options_;
  std::vector<Comparison> found_;
};

}  // namespace

bool is_net_reference(const std::string& path) {
  const Attempt<std::string> text = config::read_file(runs_file(path), kFileMax);
  if (!text) return false;
  const std::string_view heading = std::string_view(*text).substr(0, text->find('\n'));
  return heading.contains("fct_mean_ns") && heading.contains("pause_rx_host");
}

Attempt<std::vector<Comparison>> check_net_file(const std::string& path,
                                                const NetCheckOptions& options) {
  return Checker(runs_file(path), options).run();
}

}  // namespace cairn::plan
