// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/words.h"
#include "config/files.h"
#include "plan/common/csv.h"
#include "plan/snis/snis_load.h"
#include "plan/snis/snis_system.h"
#include "snis/iterations.h"

namespace cairn::plan {

namespace {

namespace fs = std::filesystem;

constexpr size_t kFileMax = 1UL << 28;
constexpr int kIterationsMax = 1000;

// The first storage phase sees the reference's own arrivals, so its means are those of the
// reference to the digits given. What comes after saw the other network, whose marks are random:
// single requests move by milliseconds, means by a few percent.
constexpr double kFirstStorage = 0.001;
constexpr double kStorage = 0.15;
constexpr double kNetwork = 0.15;
constexpr double kThroughput = 0.10;
constexpr double kCriterion = 0.03;  // absolute
constexpr double kStableAt = 1;      // iteration

std::string table_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? (fs::path(path) / "convergence.csv").string() : path;
}

// Which rows of the table are a trace's, in order of iterations.
using Rows = std::vector<size_t>;

class Checker {
 public:
  Checker(std::string path, const Csv& csv) : path_(std::move(path)), csv_(csv) {}

  Attempt<std::vector<Comparison>> run() {
    std::map<std::string, Rows> traces;
    for (size_t row = 0; row < csv_.rows(); ++row) traces[csv_.text(row, "trace")].push_back(row);
    for (const auto& [name, rows] : traces) {
      if (Attempt<void> done = one_trace(name, rows); !done) {
        return refuse(
            fmt::format("{}, trace {}: {}", in_quotes(path_), in_quotes(name), done.error().text));
      }
    }
    return std::move(found_);
  }

 private:
  Attempt<std::string> trace_file(const std::string& name) const {
    const fs::path folder = fs::path(path_).parent_path();
    for (const char* ending : {"_trace.csv.gz", "_trace.csv"}) {
      const fs::path file = folder / (name + ending);
      std::error_code ignored;
      if (fs::exists(file, ignored)) return file.string();
    }
    return refuse(fmt::format("its requests are missing: {}_trace.csv.gz must lie in {}", name,
                              in_quotes(folder.empty() ? "." : folder.string())));
  }

  Attempt<void> one_trace(const std::string& name, const Rows& rows) {
    if (rows.size() > kIterationsMax) return refuse("has more than 1000 iterations");
    const Attempt<std::string> file = trace_file(name);
    if (!file) return std::unexpected(file.error());
    const Attempt<SnisLoad> load = load_requests({.trace = *file, .from_zero = false});
    if (!load) return std::unexpected(load.error());
    const Attempt<SnisSystem> system = load_system({.hpcc = true});
    if (!system) return std::unexpected(system.error());
    const snis::SystemModels models(system->system);
    snis::LocalStorage storage(models, load->requests);
    snis::Iterations iterations(
        models, load->requests, storage,
        {.until = snis::Until::kCount, .iterations = static_cast<int>(rows.size())});
    snis::Convergence reference({});
    while (!iterations.done()) {
      const snis::Step& step = iterations.advance();
      compare_step(name, rows[static_cast<size_t>(step.number)], step);
      if (step.number > 0) {
        reference.add(csv_.number(rows[static_cast<size_t>(step.number)], "conv_c"));
      }
    }
    if (rows.size() < 2) return {};
    const auto at = [](const snis::Convergence& c) { return c.at() ? *c.at() : -1; };
    add(name, "stable at iteration", at(iterations.convergence()), at(reference),
        std::abs(at(iterations.convergence()) - at(reference)), kStableAt);
    return {};
  }

  void compare_step(const std::string& trace, size_t row, const snis::Step& step) {
    const std::string name = fmt::format("{} {}", trace, step.number);
    const snis::Metrics& m = step.metrics;
    const double storage = step.number == 0 ? kFirstStorage : kStorage;
    const auto part = [&](const char* column, double ours, double tolerance) {
      if (!csv_.has(column)) return;
      found_.push_back(compare({path_, name, column}, ours, csv_.number(row, column), tolerance));
    };
    part("read_storage_mean_us", m.read.storage.mean * 1e-3, storage);
    part("write_storage_mean_us", m.write.storage.mean * 1e-3, storage);
    part("read_net_mean_us", m.read.network.mean * 1e-3, kNetwork);
    part("write_net_mean_us", m.write.network.mean * 1e-3, kNetwork);
    part("thr_mean_gbps", m.throughput_gbps.mean, kThroughput);
    part("thr_median_gbps", m.throughput_gbps.p50, kThroughput);
    part("thr_p90_gbps", m.throughput_gbps.p90, kThroughput);
    part("drops", static_cast<double>(step.network.drops), 0);
    part("unfinished", static_cast<double>(m.unfinished), 0);
    if (!step.distance || !csv_.has("conv_c")) return;
    const double theirs = csv_.number(row, "conv_c");
    add(name, "conv_c (apart)", step.distance->criterion, theirs,
        std::abs(step.distance->criterion - theirs), kCriterion);
  }

  // Where the error is a difference, not a part.
  void add(const std::string& name, const char* measure, double ours, double reference,
           double error, double tolerance) {
    found_.push_back({path_, name, measure, ours, reference, error, tolerance});
  }

  std::string path_;
  const Csv& csv_;
  std::vector<Comparison> found_;
};

}  // namespace

bool is_snis_reference(const std::string& path) {
  const Attempt<std::string> text = config::read_file(table_file(path), kFileMax);
  return text && text->starts_with("trace,iter,");
}

Attempt<std::vector<Comparison>> check_snis_file(const std::string& path) {
  const std::string file = table_file(path);
  const Attempt<std::string> text = config::read_file(file, kFileMax);
  if (!text) return std::unexpected(text.error());
  const Attempt<Csv> csv = Csv::parse(*text);
  if (!csv) return refuse(fmt::format("{} {}", in_quotes(file), csv.error().text));
  return Checker(file, *csv).run();
}

}  // namespace cairn::plan
