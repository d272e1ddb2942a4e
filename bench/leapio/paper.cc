// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "bench/build_info.h"
#include "bench/leapio/channels.h"
#include "bench/leapio/scene.h"
#include "report/chart.h"
#include "report/page.h"

namespace cairn::bench::leapio {

namespace {

// One curve: a name as in the paper, and the scene behind it.
struct Line {
  std::string_view name;
  Scene scene;
};

struct Figure {
  std::string_view name;
  std::string_view title;
  std::string_view paper;  // what the paper shows
  std::vector<Line> lines;
};

constexpr std::string_view kStripe = "stripe({}, {}, chunk=64K)";
constexpr std::string_view kMirror = "mirror({}, {})";

// Lookups per second that Figure 11a tries; the last is that of all other figures.
constexpr double kRates[] = {5'000, 20'000, 40'000};
// A cache that batch writes past, as on a drive much larger than its cache.
constexpr uint64_t kSmallCache = 16_MiB;

std::string with_priority(std::string_view drives) { return fmt::format("priority({})", drives); }

// Base, +BG and +BG+Prio of one kind of drive.
std::vector<Line> three_lines(const Scene& base) {
  Line background{"+BG", base};
  background.scene.batch = true;
  Line ordered{"+BG+Prio", background.scene};
  ordered.scene.stack = with_priority(base.stack);
  return {{"Base", base}, background, ordered};
}

std::vector<Figure> all_figures() {
  return {
      {"11a", "Prioritization",
       "Paper: under batch load (+BG) the search engine's latencies grow long; with the service "
       "(+BG+Prio) its curve lies on that without contention, and batch gets 10% of the resources.",
       three_lines({})},
      {"11b",
       "Snapshot",
       "Paper: reads of a version take slightly longer (+Snap), much longer beside the writer of "
       "the next one (+Snap+BG), and prioritization composes with that (+Snap+Prio+BG). Here "
       "search reads a version while batch rewrites the index it belongs to; the stack is "
       "snapshot(priority(DRIVE)), because readers of a version enter at the snapshot.",
       {{"Base", {}},
        {"+Snap", {.stack = "snapshot({})", .pinned = true}},
        {"+Snap+BG", {.stack = "snapshot({})", .batch = true, .pinned = true}},
        {"+Snap+Prio+BG", {.stack = "snapshot(priority({}))", .batch = true, .pinned = true}}}},
      {"11c", "Remote drive in the rack",
       "Paper: the same with the network in the path; prioritization works end to end.",
       three_lines({.remote = true})},
      {"11d", "RAID 0 of two remote drives",
       "Paper: as 11c on a stripe over two machines, with a higher performance.",
       three_lines({.stack = std::string(kStripe), .remote = true})},
      {"11e", "RAID 1 of two remote drives",
       "Paper: as 11c on a mirror over two machines; the performance of RAID 0 is lost, and "
       "reliability won.",
       three_lines({.stack = std::string(kMirror), .remote = true})},
  };
}

class Presentation {
 public:
  explicit Presentation(const Options& options)
      : options_(options),
        stage_{.drive = options.drive, .requests = options.requests, .seed = options.seed},
        page_("LeapIO in Cairn",
              "Figure 11 of \"LeapIO: Efficient and Portable Virtual NVMe Storage on ARM SoCs\" "
              "with Cairn's services: how long a search engine's reads take on drives that are "
              "composed of services.") {}

  Result<Paper> show() {
    explain();
    for (const Figure& figure : all_figures()) {
      if (!options_.wants(figure.name)) continue;
      if (const Result<void> shown = show_figure(figure); !shown) return fail(shown.error());
      if (figure.name != "11a") continue;
      if (const Result<void> shown = show_other_loads(); !shown) return fail(shown.error());
    }
    if (options_.wants("11f")) {
      if (const Result<void> shown = show_channels(); !shown) return fail(shown.error());
    }
    if (const Result<void> put = put_ratios(); !put) return fail(put.error());
    paper_.html = page_.html();
    return std::move(paper_);
  }

 private:
  void explain() {
    page_.paragraph(
        "What is real: services, host, box and NVMe/TCP are the production code, in the simulator "
        "and in virtual time, so the page is the same each time. What is emulated: drives are "
        "Cairn's flash model, 1 GiB of a datacenter TLC drive that is 80% full and whose first "
        "half, the index, was written just before; the network is a link of 25 Gb/s and 25 us; "
        "processors cost nothing, so what services cost is not seen here but in cairn bench drive. "
        "The search trace of the paper is not published: lookups are drawn with its mean of 36 KB, "
        "median of 32 KB and sizes of 4 KB to 7 MB. Batch works in the drive's second half, with "
        "32 requests of the lookups' median size outstanding, half reads and half writes, from "
        "0.3 s before the first lookup on. The service is priority(DRIVE) as it comes. The paper's "
        "curve on its SoC has no counterpart.");
    page_.paragraph(
        "The paper does not say how many lookups came per second. Figure 11a tries 5,000, 20,000 "
        "and 40,000; the others, and the ratios without a rate in their name, are at 40,000, "
        "1.5 GB/s: the paper leaves 10% of the resources to batch, so search had use for most of "
        "them, and this is the busiest of the three. There the long lookups before it decide how "
        "long one in a hundred waits, with batch or without.");
    page_.paragraph(
        "What that does not show is garbage collection: 20,000 lookups at that rate are over in "
        "half a second, before batch has used up the free blocks of the drive, whose cache of "
        "512 MiB is not scaled with it. At 20,000 and 5,000 a second they take one and four, and "
        "the drive begins to collect; with the 16 MiB of the rows named small cache it does from "
        "the start. Then reads wait for tens of milliseconds inside the drive, and the order in "
        "which requests come to it brings back their median, but not their P99. A drive scaled to "
        "1 GiB has few blocks per plane, so it collects sooner and more than a whole one.");
    page_.paragraph(fmt::format("Commit {}.", build_info().commit.substr(0, 12)));
  }

  // Scenes are played once, whoever asks.
  Result<const Played*> played(const Scene& scene) {
    const auto known = plays_.find(scene);
    if (known != plays_.end()) return &known->second;
    if (options_.progress) {
      options_.progress(fmt::format("{}{}{}{}", scene.stack, scene.remote ? " remote" : "",
                                    scene.search ? " search" : "", scene.batch ? " batch" : ""));
    }
    Result<Played> now = play(scene, stage_);
    if (!now) return fail(now.error());
    return &plays_.emplace(scene, std::move(*now)).first->second;
  }

  Result<void> show_figure(const Figure& figure) {
    std::vector<std::pair<std::string, const Played*>> curves;
    for (const Line& line : figure.lines) {
      const Result<const Played*> one = played(line.scene);
      if (!one) return fail(one.error());
      curves.emplace_back(line.name, *one);
      put_line(figure.name, line.name, **one);
    }
    page_.heading(fmt::format("Figure {}: {}", figure.name, figure.title));
    draw(figure.name, figure.title, figure.paper, curves);
    return {};
  }

  void put_line(std::string_view figure, std::string_view line, const Played& played) {
    Measurement measured{.name = fmt::format("fig{}", figure), .variant = std::string(line)};
    measured.unit = "p99 us";
    measured.samples = {played.percentile_us(0.99)};
    measured.extras = {{"p50_us", played.percentile_us(0.5)},
                       {"p999_us", played.percentile_us(0.999)},
                       {"search_bytes_per_s", played.lookup_bytes_per_second},
                       {"batch_bytes_per_s", played.batch_bytes_per_second}};
    paper_.report.add(std::move(measured));
  }

  void draw(std::string_view figure, std::string_view title, std::string_view caption,
            const std::vector<std::pair<std::string, const Played*>>& curves) {
    report::LineChart chart{.title = std::string(title),
                            .x = {.title = "latency (us)", .scale = report::Scale::kLogarithmic},
                            .y = {.title = "share of requests", .max = 1},
                            .series = {}};
    for (const auto& [name, played] : curves) chart.series.push_back(thinned(name, *played));
    std::string drawn = svg(chart);
    page_.figure(drawn, caption);
    put_table(curves);
    paper_.charts.push_back({fmt::format("leapio-{}", figure), std::move(drawn)});
  }

  void put_table(const std::vector<std::pair<std::string, const Played*>>& curves) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, played] : curves) {
      rows.push_back({name, fmt::format("{:.0f}", played->percentile_us(0.5)),
                      fmt::format("{:.0f}", played->percentile_us(0.95)),
                      fmt::format("{:.0f}", played->percentile_us(0.99)),
                      fmt::format("{:.0f}", played->percentile_us(0.999)),
                      fmt::format("{:.0f}", played->batch_bytes_per_second * 1e-6)});
    }
    page_.table({"", "P50 us", "P95 us", "P99 us", "P99.9 us", "batch MB/s"}, rows);
  }

  // Figure 11a at the other rates, and on a drive that collects garbage.
  Result<void> show_other_loads() {
    std::vector<std::pair<std::string, const Played*>> rows;
    const auto add = [&](const Scene& base, const std::string& where) -> Result<void> {
      for (const Line& line : three_lines(base)) {
        const Result<const Played*> one = played(line.scene);
        if (!one) return fail(one.error());
        rows.emplace_back(fmt::format("{}, {}", line.name, where), *one);
        put_line("11a", rows.back().first, **one);
      }
      return {};
    };
    for (const double rate : kRates) {
      if (rate == Scene{}.lookups_per_second) continue;
      const Result<void> added =
          add({.lookups_per_second = rate}, fmt::format("{:.0f} lookups/s", rate));
      if (!added) return added;
    }
    const Result<void> added = add({.cache_bytes = kSmallCache}, "small cache");
    if (!added) return added;
    put_table(rows);
    return {};
  }

  // A curve of two hundred points: more would not be seen.
  static report::Series thinned(const std::string& name, const Played& played) {
    constexpr int kPoints = 200;
    report::Series series{.name = name, .points = {}};
    for (int i = 1; i <= kPoints; ++i) {
      const double part = static_cast<double>(i) / kPoints;
      series.points.push_back({played.percentile_us(part), part});
    }
    return series;
  }

  Result<void> show_channels() {
    struct {
      std::string_view name;
      Tenancy tenancy;
    } const lines[] = {{"Base", {.apart = true}},
                       {"+BG", {.neighbour = true}},
                       {"+Iso", {.neighbour = true, .apart = true}}};
    std::vector<Played> plays;
    for (const auto& line : lines) {
      if (options_.progress) options_.progress(fmt::format("channels {}", line.name));
      Result<std::vector<double>> read =
          read_latencies_us(*options_.drive, line.tenancy, options_.requests, options_.seed);
      if (!read) return fail(read.error());
      plays.push_back({.lookup_us = std::move(*read)});
    }
    std::vector<std::pair<std::string, const Played*>> curves;
    for (size_t i = 0; i < plays.size(); ++i) {
      curves.emplace_back(lines[i].name, &plays[i]);
      put_line("11f", lines[i].name, plays[i]);
    }
    page_.heading("Figure 11f: virtual channels");
    draw("11f", "Virtual channels",
         "Paper: a tenant that writes hard makes another's latencies long (+BG); on channels of "
         "their own (+Iso) they are as without it. Here the two are streams of one modelled "
         "drive, 4 KiB reads every 50 us and 64 KiB writes every 80 us in the mean; Base has its "
         "half of the channels, too.",
         curves);
    paper_.report.add_ratio("channels_p99_vs_solo",
                            plays[2].percentile_us(0.99) / plays[0].percentile_us(0.99));
    paper_.report.add_ratio("channels_p99_shared_vs_solo",
                            plays[1].percentile_us(0.99) / plays[0].percentile_us(0.99));
    return {};
  }

  // Bytes per second of batch alone on such drives.
  Result<double> batch_alone(std::string_view stack, bool remote) {
    const Result<const Played*> one =
        played({.stack = std::string(stack), .remote = remote, .search = false, .batch = true});
    if (!one) return fail(one.error());
    return (*one)->batch_bytes_per_second;
  }

  Result<void> put_priority(const Scene& base, std::string_view suffix) {
    Scene beside = base;
    beside.stack = with_priority(base.stack);
    beside.batch = true;
    Scene batch_only = beside;
    batch_only.search = false;
    const Result<const Played*> solo = played(base);
    const Result<const Played*> both = played(beside);
    const Result<const Played*> batch = played(batch_only);
    for (const auto& one : {solo, both, batch}) {
      if (!one) return fail(one.error());
    }
    paper_.report.add_ratio(fmt::format("priority_p99_vs_solo{}", suffix),
                            (*both)->percentile_us(0.99) / (*solo)->percentile_us(0.99));
    paper_.report.add_ratio(fmt::format("batch_floor{}", suffix),
                            (*both)->batch_bytes_per_second / (*batch)->batch_bytes_per_second);
    return {};
  }

  Result<void> put_ratios() {
    Report& report = paper_.report;
    if (options_.wants("11a")) {
      for (const double rate : kRates) {
        const bool is_main = rate == Scene{}.lookups_per_second;
        const std::string suffix = is_main ? "" : fmt::format("_{:.0f}k", rate / 1000);
        const Result<void> put = put_priority({.lookups_per_second = rate}, suffix);
        if (!put) return put;
      }
      const Result<void> put = put_priority({.cache_bytes = kSmallCache}, "_small_cache");
      if (!put) return put;
    }
    if (!options_.wants("11d") && !options_.wants("11e")) return {};
    const Result<double> single = batch_alone("{}", true);
    if (!single) return fail(single.error());
    if (options_.wants("11d")) {
      const Result<double> striped = batch_alone(kStripe, true);
      if (!striped) return fail(striped.error());
      report.add_ratio("raid0_vs_single", *striped / *single);
    }
    if (options_.wants("11e")) {
      const Result<double> mirrored = batch_alone(kMirror, true);
      if (!mirrored) return fail(mirrored.error());
      report.add_ratio("raid1_vs_single", *mirrored / *single);
    }
    return {};
  }

  const Options& options_;
  const Stage stage_;
  report::Page page_;
  Paper paper_{.report = Report("paper_leapio"), .html = {}, .charts = {}};
  std::map<Scene, Played> plays_;
};

}  // namespace

std::vector<std::string> figures() { return {"11a", "11b", "11c", "11d", "11e", "11f"}; }

bool Options::wants(std::string_view figure) const {
  return figures.empty() || std::ranges::find(figures, figure) != figures.end();
}

Result<Paper> bench_paper(const Options& options) { return Presentation(options).show(); }

}  // namespace cairn::bench::leapio
