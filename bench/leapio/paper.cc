// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/units.h"
#include "bench/leapio/channels.h"
#include "bench/leapio/guest_figures.h"
#include "bench/leapio/paper_figures.h"
#include "bench/leapio/runtime_figures.h"
#include "bench/leapio/scene.h"
#include "report/build_info.h"
#include "report/chart.h"
#include "report/page.h"

namespace cairn::bench::leapio {

namespace {

double us(flash::Nanos nanos) { return static_cast<double>(nanos) * 1e-3; }

double program_seconds(const flash::Parameters& drive) {
  const auto kinds = static_cast<size_t>(drive.technology);
  const auto first = drive.program_ns.begin();
  const auto all = std::accumulate(first, first + static_cast<ptrdiff_t>(kinds), int64_t{0});
  return static_cast<double>(all) * 1e-9 / static_cast<double>(kinds);
}

double dies(const flash::Parameters& drive) {
  return double{1} * drive.channels * drive.chips_per_channel * drive.dies_per_chip;
}

class Presentation {
 public:
  explicit Presentation(const Options& options)
      : options_(options),
        stage_{.drive = options.drive, .seconds = options.seconds, .seed = options.seed},
        page_("LeapIO in Cairn",
              "Figures of \"LeapIO: Efficient and Portable Virtual NVMe Storage on ARM SoCs\" "
              "with Cairn: what its runtime costs on a host and on a co-processor (6 and 10), "
              "RocksDB in a guest (7 to 9), and how long a search engine's reads take on drives "
              "that are composed of services (11).") {}

  Result<Paper> show() {
    page_.paragraph(fmt::format(
        "Commit {}. Figures 6, 10 and 11 are simulated: models of drives and networks in virtual "
        "time, the same each time. The paper's are measured. Figures 7 to 9 are live.",
        report::build_info().commit.substr(0, 12)));
    if (const Result<void> shown = show_runtime(options_, stage_, page_, paper_); !shown) {
      return fail(shown.error());
    }
    if (std::ranges::any_of(all_figures(),
                            [this](const Figure& each) { return options_.wants(each.name); })) {
      explain();
    }
    for (const Figure& figure : all_figures()) {
      if (!options_.wants(figure.name)) continue;
      if (const Result<void> shown = show_figure(figure); !shown) return fail(shown.error());
      if (figure.name == "11d") {
        if (const Result<void> put = put_raid("raid0", kStripe); !put) return fail(put.error());
      }
      if (figure.name == "11e") {
        if (const Result<void> put = put_raid("raid1", kMirror); !put) return fail(put.error());
      }
      if (figure.name != "11a") continue;
      if (const Result<void> shown = show_contests(); !shown) return fail(shown.error());
    }
    if (options_.wants("11f")) {
      if (const Result<void> shown = show_channels(); !shown) return fail(shown.error());
    }
    if (const Result<void> shown = show_guest_figures(options_, page_, paper_); !shown) {
      return fail(shown.error());
    }
    paper_.html = page_.html();
    return std::move(paper_);
  }

 private:
  void explain() {
    page_.paragraph(
        "Of Figure 11, what is real: services, host, box and NVMe/TCP are the production code, in "
        "the simulator. What is emulated: drives are Cairn's flash model, 128 GiB of a datacenter "
        "TLC drive, of which 2 GiB are used: the index in the first eighth, written just before, "
        "and batch in the rest; the network is "
        "25 Gb/s out of each machine and 25 us; processors cost nothing there, so what services "
        "cost is not seen here but in cairn bench drive. The search trace of the paper is not "
        "published: lookups are drawn with its mean of 36 KB, median of 32 KB and sizes of 4 KB to "
        "7 MB. "
        "Batch has 32 requests of the lookups' median size outstanding, half reads and half "
        "writes. The service is priority(DRIVE) as it comes. The paper's curve on its SoC has no "
        "counterpart.");
    page_.paragraph(
        "The paper does not say how many lookups came per second. Figure 11a tries 5,000, 20,000 "
        "and 40,000, each for as long; the others, and the ratios without a rate in their name, "
        "are at 40,000, 1.5 GB/s. That is our choice, and kind to the service: lookups alone take "
        "longest at the busiest rate, and are what P99 is compared with. Nor does it say how old "
        "its drives were: here they are new, unless a row says aged. An aged drive was filled to "
        "80% "
        "by random writes before, so it collects garbage as batch writes. Curves end at P99.9.");
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
    page_.heading(fmt::format("Figure {}: {} (simulated)", figure.name, figure.title));
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
    measured.is_simulated = true;
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

  // Figure 11a at the other rates, and on other drives.
  Result<void> show_contests() {
    std::vector<std::pair<std::string, const Played*>> rows;
    const auto add = [&](const Scene& scene, const std::string& name) -> Result<void> {
      const Result<const Played*> one = played(scene);
      if (!one) return fail(one.error());
      rows.emplace_back(name, *one);
      put_line("11a", name, **one);
      return {};
    };
    for (const double rate : kRates) {
      if (rate == Scene{}.lookups_per_second) continue;
      for (const Line& line : three_lines({.lookups_per_second = rate})) {
        const Result<void> added =
            add(line.scene, fmt::format("{}, {:.0f} lookups/s", line.name, rate));
        if (!added) return added;
      }
    }
    for (const Contest& contest : contests()) {
      if (contest.name.empty()) continue;
      const Result<void> added = add(contest.scene, "+BG+Prio, " + contest.name);
      if (!added) return added;
    }
    put_table(rows);
    std::vector<std::vector<std::string>> ratios;
    for (const Contest& contest : contests()) {
      const Result<void> put = put_contest(contest, ratios);
      if (!put) return put;
    }
    page_.table({"beside batch under priority", "P99 over solo", "batch over alone"}, ratios);
    if (const Result<void> told = tell_share(); !told) return told;
    return explain_few_lookups();
  }

  // How busy lookups keep the drive at the rate of all other figures.
  Result<void> tell_share() {
    const Result<const Played*> search = played({});
    const Result<const Played*> batch =
        played({.stack = with_priority("{}"), .search = false, .batch = true});
    if (!search || !batch) return fail(search ? batch.error() : search.error());
    page_.paragraph(
        fmt::format("At {:.0f} lookups a second search alone moves {:.0f}% of the bytes that batch "
                    "alone moves.",
                    Scene{}.lookups_per_second,
                    100 * (*search)->lookup_bytes_per_second / (*batch)->batch_bytes_per_second));
    return {};
  }

  // Why the lowest rate does not come to its aim.
  Result<void> explain_few_lookups() {
    const Scene few{.lookups_per_second = kFewLookups};
    Scene beside = few;
    beside.stack = with_priority("{}");
    beside.batch = true;
    const Result<const Played*> solo = played(few);
    const Result<const Played*> both = played(beside);
    if (!solo || !both) return fail(solo ? both.error() : solo.error());
    const double programs =
        (*both)->batch_bytes_per_second * (1 - beside.batch_reads) / options_.drive->page_bytes;
    page_.paragraph(fmt::format(
        "At 20,000 and 40,000 lookups a second one in a hundred waits for a long one before it, "
        "with batch or without, and priority adds little to that: batch goes when few lookups are "
        "below. At 5,000 an aim of 1.1 is out of reach of any order of requests. One in a hundred "
        "takes {:.0f} us alone. A read that finds its die programming waits {:.0f} us until the "
        "program is suspended, or for the last {:.0f} us of it; one that finds it erasing, on an "
        "aged drive, {:.0f} us. What batch writes keeps each die programming for {:.0f}% of the "
        "time, and a lookup needs three of them in the median. With batch_depth=0, where batch "
        "gets its floor of what goes and no more, and on a drive that suspends programs in 20 us, "
        "less is left of it; channels of their own (11f) avoid it.",
        (*solo)->percentile_us(0.99), us(options_.drive->suspend_program_ns),
        us(options_.drive->worth_suspending_program_ns), us(options_.drive->suspend_erase_ns),
        100 * programs * program_seconds(*options_.drive) / dies(*options_.drive)));
    return {};
  }

  Result<void> put_contest(const Contest& contest, std::vector<std::vector<std::string>>& rows) {
    const Scene& beside = contest.scene;
    const Result<const Played*> solo = played({.lookups_per_second = beside.lookups_per_second});
    const Result<const Played*> both = played(beside);
    const Result<const Played*> batch =
        played({.stack = with_priority("{}"), .search = false, .batch = true, .aged = beside.aged});
    for (const auto& one : {solo, both, batch}) {
      if (!one) return fail(one.error());
    }
    const double p99 = (*both)->percentile_us(0.99) / (*solo)->percentile_us(0.99);
    const double floor = (*both)->batch_bytes_per_second / (*batch)->batch_bytes_per_second;
    paper_.report.add_simulated_ratio("priority_p99_vs_solo" + contest.suffix, p99);
    paper_.report.add_simulated_ratio("batch_floor" + contest.suffix, floor);
    rows.push_back({contest.name.empty()
                        ? fmt::format("{:.0f} lookups/s", beside.lookups_per_second)
                        : contest.name,
                    fmt::format("{:.2f}", p99), fmt::format("{:.3f}", floor)});
    return {};
  }

  // A curve of two hundred points: more would not be seen. The last thousandth is left out, which
  // may take as much room as all others.
  static report::Series thinned(const std::string& name, const Played& played) {
    constexpr int kPoints = 200;
    report::Series series{.name = name, .points = {}};
    for (int i = 1; i <= kPoints; ++i) {
      const double part = std::min(static_cast<double>(i) / kPoints, 0.999);
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
      Result<Played> one = read_beside(line.tenancy, stage_);
      if (!one) return fail(one.error());
      plays.push_back(std::move(*one));
    }
    std::vector<std::pair<std::string, const Played*>> curves;
    for (size_t i = 0; i < plays.size(); ++i) {
      curves.emplace_back(lines[i].name, &plays[i]);
      put_line("11f", lines[i].name, plays[i]);
    }
    page_.heading("Figure 11f: virtual channels (simulated)");
    draw("11f", "Virtual channels",
         "Paper: a tenant that writes hard makes another's latencies long (+BG); on channels of "
         "their own (+Iso) they are as without it. Here the two have half of an aged drive each, "
         "with 4 KiB reads every 50 us and 64 KiB writes every 80 us in the mean; in Base and "
         "+Iso they stand on channels(DRIVE, count=4), four of its eight channels.",
         curves);
    paper_.report.add_simulated_ratio("channels_p99_vs_solo",
                                      plays[2].percentile_us(0.99) / plays[0].percentile_us(0.99));
    paper_.report.add_simulated_ratio("channels_p99_shared_vs_solo",
                                      plays[1].percentile_us(0.99) / plays[0].percentile_us(0.99));
    return {};
  }

  // Bytes per second of batch alone on two remote drives, over one.
  Result<double> against_single(std::string_view stack, double reads) {
    Scene scene{.remote = true, .search = false, .batch = true, .batch_reads = reads};
    const Result<const Played*> single = played(scene);
    scene.stack = stack;
    const Result<const Played*> two = played(scene);
    if (!single || !two) return fail(single ? two.error() : single.error());
    return (*two)->batch_bytes_per_second / (*single)->batch_bytes_per_second;
  }

  Result<void> put_raid(std::string_view name, std::string_view stack) {
    const Result<double> mostly = against_single(stack, kMostlyReads);
    const Result<double> mixed = against_single(stack, 0.5);
    if (!mostly || !mixed) return fail(mostly ? mixed.error() : mostly.error());
    paper_.report.add_simulated_ratio(fmt::format("{}_vs_single", name), *mostly);
    paper_.report.add_simulated_ratio(fmt::format("{}_vs_single_mixed", name), *mixed);
    page_.paragraph(fmt::format(
        "Bytes per second of {} against one remote drive, 32 requests outstanding: {:.2f} with "
        "seven reads to a write, as search and batch have them together, and {:.2f} with as many "
        "writes as reads.",
        stack, *mostly, *mixed));
    return {};
  }

  const Options& options_;
  const Stage stage_;
  report::Page page_;
  Paper paper_{.report = Report("paper_leapio"), .html = {}, .charts = {}};
  std::map<Scene, Played> plays_;
};

}  // namespace

std::vector<std::string> figures() {
  return {"6", "7", "8", "9", "10", "11a", "11b", "11c", "11d", "11e", "11f"};
}

bool Options::wants(std::string_view figure) const {
  return figures.empty() || std::ranges::find(figures, figure) != figures.end();
}

Result<Paper> bench_paper(const Options& options) { return Presentation(options).show(); }

}  // namespace cairn::bench::leapio
