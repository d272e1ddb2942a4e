// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/runtime_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/leapio/runtime_scene.h"
#include "report/chart.h"

namespace cairn::bench::leapio {

namespace {

constexpr uint32_t kThreads[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr uint32_t kUsualThreads = 32;  // of the latency curves
// Of the time that scenes of Figure 11 are measured: there are many more points here, and requests
// come as fast as they are answered.
constexpr double kTimeShare = 0.125;
// Of each drive when it is only read, so that it is soon written through. Where there are writes it
// is as much as the stage says: what is written is seldom written again while the drive's cache has
// it.
constexpr uint64_t kReadBytes = 256_MiB;

struct Mix {
  std::string_view name;
  std::string_view title;
  double reads;
};
constexpr Mix kMixes[] = {{"read", "read-only", 1}, {"mixed", "half reads, half writes", 0.5}};

// A curve over the numbers of threads.
struct Line {
  std::string_view name;
  Placement runtime;
  bool remote;
};
constexpr Line kPassThrough{"PT", Placement::kNone, false};
constexpr Line kHost{"Cairn", Placement::kHost, false};
constexpr Line kLocalHost{"SoCVM", Placement::kHost, false};
constexpr Line kLocalCard{"SoC", Placement::kCoprocessor, false};
constexpr Line kRemoteHost{"SoCVM", Placement::kHost, true};
constexpr Line kRemoteCard{"SoC", Placement::kCoprocessor, true};

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

class RuntimeFigures {
 public:
  RuntimeFigures(const Options& options, Stage stage, report::Page& page, Paper& paper)
      : options_(options), stage_(std::move(stage)), page_(page), paper_(paper) {
    stage_.seconds *= kTimeShare;
  }

  Result<void> show() {
    if (options_.wants("6")) {
      if (const Result<void> shown = show_6(); !shown) return shown;
    }
    return options_.wants("10") ? show_10() : Result<void>{};
  }

 private:
  Result<void> show_6() {
    page_.heading("Figure 6: Cairn against pass-through (simulated)");
    page_.paragraph(fmt::format(
        "Emulated: the guest, which is so many threads with one request of 4 KiB each outstanding; "
        "pass-through, which is the modelled drive itself; and the runtime, which is a core of its "
        "own that takes {} ns for a command, half on its way to the drive and half back. The real "
        "one takes about as long for a drive in memory: cairn bench drive --only vfio. That "
        "constant before a drive whose reads take 77 us decides the ratios; they say what it "
        "amounts to, not what Cairn was seen to do. Live are the ratios vfio_read_iops_vs_bare and "
        "vfio_mixed_iops_vs_bare of cairn bench drive. The drive is new, and "
        "written through once. Paper, on hardware: 2% less throughput of reads and 5% of reads and "
        "writes; latency 3% more below P99, 6 to 12% more at P99.9.",
        kRuntimeCost.ns));
    for (const Mix& mix : kMixes) {
      const Result<std::vector<double>> ratios =
          show_throughput("6", mix, {kPassThrough, kHost}, fmt::format("4 KiB, {}", mix.title));
      if (!ratios) return fail(ratios.error());
      paper_.report.add_simulated_ratio(fmt::format("leap_{}_vs_pt", mix.name), mean(*ratios));
    }
    for (const Mix& mix : kMixes) {
      const Result<std::pair<double, double>> tails = show_latency(
          "6", mix, {kPassThrough, kHost}, fmt::format("{} threads, {}", kUsualThreads, mix.title));
      if (!tails) return fail(tails.error());
      if (mix.reads < 1) continue;
      paper_.report.add_simulated_ratio("leap_p99_vs_pt", tails->first);
      paper_.report.add_simulated_ratio("leap_p999_vs_pt", tails->second);
    }
    return {};
  }

  Result<void> show_10() {
    page_.heading("Figure 10: co-processor against host (simulated)");
    page_.paragraph(fmt::format(
        "Emulated: the card, by the two differences that the paper names. Its core is slower, at "
        "{:.0f}% of a host's. And queues that lie in the host's memory, which are the guest's and "
        "those of a local drive, are reached by RDMA: {:.0f} us each time that one is looked at or "
        "written to, for all commands there together; a command passes four of them. In a box "
        "across the network the card has its drive's queues in its own memory, so there is the "
        "slower core alone; a command takes {} ns of a host's core there, as cairn bench fabric "
        "measures. The remote load is the same 4 KiB instead of RocksDB, through Cairn's own "
        "NVMe/TCP. These constants, the paper's and ours, decide the ratios; no card was measured. "
        "Paper, on hardware: local up to 30% slower; remote 5% less throughput and 10% more at "
        "P99.",
        100 * kCoprocessorSpeed, kQueueAccess.us(), kBoxCost.ns));
    const Mix& mix = kMixes[0];
    const Result<std::vector<double>> local =
        show_throughput("10a", mix, {kLocalHost, kLocalCard}, "local drive, 4 KiB reads");
    if (!local) return fail(local.error());
    const Result<std::vector<double>> remote =
        show_throughput("10b", mix, {kRemoteHost, kRemoteCard}, "remote drive, 4 KiB reads");
    if (!remote) return fail(remote.error());
    const auto local_tails = show_latency("10c", mix, {kLocalHost, kLocalCard}, "local drive");
    if (!local_tails) return fail(local_tails.error());
    const auto remote_tails = show_latency("10d", mix, {kRemoteHost, kRemoteCard}, "remote drive");
    if (!remote_tails) return fail(remote_tails.error());
    paper_.report.add_simulated_ratio("soc_local_vs_host", mean(*local));
    paper_.report.add_simulated_ratio("soc_local_vs_host_worst", std::ranges::min(*local));
    paper_.report.add_simulated_ratio("soc_local_p99_vs_host", local_tails->first);
    paper_.report.add_simulated_ratio("soc_remote_vs_host", mean(*remote));
    paper_.report.add_simulated_ratio("soc_remote_p99_vs_host", remote_tails->first);
    return {};
  }

  // Of two lines; gives the second over the first for each number of threads.
  Result<std::vector<double>> show_throughput(std::string_view figure, const Mix& mix,
                                              const std::vector<Line>& lines,
                                              const std::string& title) {
    report::LineChart chart{.title = title,
                            .x = {.title = "threads", .scale = report::Scale::kLogarithmic},
                            .y = {.title = "thousand requests per second"},
                            .series = {}};
    std::vector<std::vector<double>> rates;
    for (const Line& line : lines) {
      std::vector<double>& its = rates.emplace_back();
      report::Series& series =
          chart.series.emplace_back(report::Series{.name = std::string(line.name), .points = {}});
      for (const uint32_t threads : kThreads) {
        const Result<const RuntimePlayed*> one = played(scene_of(line, mix, threads));
        if (!one) return fail(one.error());
        its.push_back((*one)->per_second);
        series.points.push_back({static_cast<double>(threads), (*one)->per_second * 1e-3});
        put(figure, mix, line, threads, **one);
      }
    }
    std::vector<double> ratios;
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < std::size(kThreads); ++i) {
      ratios.push_back(rates[1][i] / rates[0][i]);
      rows.push_back({fmt::format("{}", kThreads[i]), fmt::format("{:.0f}", rates[0][i]),
                      fmt::format("{:.0f}", rates[1][i]), fmt::format("{:.3f}", ratios.back())});
    }
    add_chart(fmt::format("{}-{}", figure, mix.name), svg(chart),
              fmt::format("Figure {}: throughput.", figure));
    page_.table({"threads", fmt::format("{} IO/s", lines[0].name),
                 fmt::format("{} IO/s", lines[1].name), "ratio"},
                rows);
    return ratios;
  }

  // The second line's P99 and P99.9 over the first's.
  Result<std::pair<double, double>> show_latency(std::string_view figure, const Mix& mix,
                                                 const std::vector<Line>& lines,
                                                 const std::string& title) {
    report::LineChart chart{.title = title,
                            .x = {.title = "latency (us)", .scale = report::Scale::kLogarithmic},
                            .y = {.title = "share of requests", .max = 1},
                            .series = {}};
    std::vector<const RuntimePlayed*> plays;
    std::vector<std::vector<std::string>> rows;
    for (const Line& line : lines) {
      const Result<const RuntimePlayed*> one = played(scene_of(line, mix, kUsualThreads));
      if (!one) return fail(one.error());
      plays.push_back(*one);
      chart.series.push_back(curve_of(line, **one));
      const Histogram& latency = (*one)->latency_ns;
      rows.push_back({std::string(line.name), us(latency, 0.5), us(latency, 0.95),
                      us(latency, 0.99), us(latency, 0.999)});
    }
    add_chart(fmt::format("{}-latency-{}", figure, mix.name), svg(chart),
              fmt::format("Figure {}: latency at {} threads.", figure, kUsualThreads));
    page_.table({"", "P50 us", "P95 us", "P99 us", "P99.9 us"}, rows);
    const auto over = [&](double part) {
      return static_cast<double>(plays[1]->latency_ns.percentile(part)) /
             static_cast<double>(plays[0]->latency_ns.percentile(part));
    };
    return std::pair(over(0.99), over(0.999));
  }

  static std::string us(const Histogram& latency_ns, double part) {
    return fmt::format("{:.1f}", static_cast<double>(latency_ns.percentile(part)) * 1e-3);
  }
  static report::Series curve_of(const Line& line, const RuntimePlayed& played) {
    constexpr int kPoints = 200;
    report::Series series{.name = std::string(line.name), .points = {}};
    for (int i = 1; i <= kPoints; ++i) {
      const double part = std::min(static_cast<double>(i) / kPoints, 0.999);
      series.points.push_back(
          {static_cast<double>(played.latency_ns.percentile(part)) * 1e-3, part});
    }
    return series;
  }

  static RuntimeScene scene_of(const Line& line, const Mix& mix, uint32_t threads) {
    return {.threads = threads, .reads = mix.reads, .runtime = line.runtime, .remote = line.remote};
  }
  // Scenes are played once, whoever asks.
  Result<const RuntimePlayed*> played(const RuntimeScene& scene) {
    const auto known = plays_.find(scene);
    if (known != plays_.end()) return &known->second;
    if (options_.progress) {
      options_.progress(
          fmt::format("runtime: {} threads{}", scene.threads, scene.remote ? ", remote" : ""));
    }
    Stage stage = stage_;
    if (scene.reads == 1) stage.used_bytes = kReadBytes;
    Result<RuntimePlayed> now = play(scene, stage);
    if (!now) return fail(now.error());
    return &plays_.emplace(scene, std::move(*now)).first->second;
  }

  void put(std::string_view figure, const Mix& mix, const Line& line, uint32_t threads,
           const RuntimePlayed& played) {
    Measurement measured{.name = fmt::format("fig{}_{}_{}", figure, mix.name, threads),
                         .variant = std::string(line.name)};
    measured.unit = "IO/s";
    measured.samples = {played.per_second};
    const auto in_us = [&](double part) {
      return static_cast<double>(played.latency_ns.percentile(part)) * 1e-3;
    };
    measured.extras = {{"p50_us", in_us(0.5)}, {"p99_us", in_us(0.99)}, {"p999_us", in_us(0.999)}};
    measured.is_simulated = true;
    paper_.report.add(std::move(measured));
  }

  void add_chart(const std::string& name, std::string drawn, const std::string& caption) {
    page_.figure(drawn, caption);
    paper_.charts.push_back({fmt::format("leapio-{}", name), std::move(drawn)});
  }

  const Options& options_;
  Stage stage_;
  report::Page& page_;
  Paper& paper_;
  std::map<RuntimeScene, RuntimePlayed> plays_;
};

}  // namespace

Result<void> show_runtime(const Options& options, const Stage& stage, report::Page& page,
                          Paper& paper) {
  return RuntimeFigures(options, stage, page, paper).show();
}

}  // namespace cairn::bench::leapio
