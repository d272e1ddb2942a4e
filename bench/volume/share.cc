// SPDX-License-Identifier: Apache-2.0
// Who gets how much of drives that volumes share, and what that does for those who suffer from
// others: with the view, the order and the auction, and without, on the same modelled box.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/volume/flow_scene.h"
#include "bench/volume/volume_bench.h"

namespace cairn::bench {

namespace {

using loadgen::DriveLoad;
using Clients = std::vector<FlowClient>;
using Flows = std::vector<Flow>;

constexpr Duration kSettle = 2_s;  // 40 epochs: until shares are as they should be
constexpr double kOfOneRun = 10;   // times the seconds of a run that were asked for
constexpr uint64_t kRangeOfReader = 64_MiB;
constexpr uint64_t kRangeOfWriter = 128_MiB;
// A drive of this box has a sixteenth of a whole one's speed: so has one that reads one at a time.
constexpr double kVictimRate = 300;
constexpr double kMega = 1e6;
constexpr double kMicro = 1e3;

constexpr Mechanisms kAllOn = {};
// All mechanisms, none, and all but one.
struct Way {
  const char* name;
  Mechanisms mechanisms;
};
constexpr Way kOn = {"on", kAllOn};
constexpr Way kOff = {"off", kAllOff};
constexpr std::array kWays = {
    kOn,
    kOff,
    Way{"no_view", {.notes = false}},
    Way{"no_order", {.orders = false}},
    Way{"no_shares", {.holds = false}},
};

double part_of(const Flows& flows, size_t which) {
  double all = 0;
  for (const Flow& each : flows) all += each.load.bytes_per_second();
  return flows[which].load.bytes_per_second() / all;
}

class ShareBench {
 public:
  ShareBench(const VolumeBenchOptions& options, Report& report)
      : options_(options), report_(report) {}

  Result<void> run() {
    for (const auto figure :
         {&ShareBench::equal, &ShareBench::weights, &ShareBench::floor, &ShareBench::cost,
          &ShareBench::victim, &ShareBench::avoid, &ShareBench::congested}) {
      if (const Result<void> done = (this->*figure)(); !done) return done;
    }
    return {};
  }

 private:
  DriveLoad load(DriveLoad what) const {
    what.warm_up = kSettle;
    what.duration = Duration::from_seconds(options_.seconds * kOfOneRun);
    return what;
  }
  FlowClient client(std::string name, const Way& way, DriveLoad what) const {
    return {.name = std::move(name),
            .mechanisms = way.mechanisms,
            .bytes = what.read_share < 1 ? kRangeOfWriter : kRangeOfReader,
            .load = load(what)};
  }

  // The same clients in each round, over other seeds. `take` gets what each round gives.
  using Take = std::function<void(const Flows& flows)>;
  Result<void> play(const char* name, const char* way, FlowBox box, const Clients& clients,
                    const Take& take) {
    box.flash = options_.box_drive;
    for (int round = 0; round < options_.rounds; ++round) {
      if (options_.progress) {
        options_.progress(
            fmt::format("{} {}: round {} of {}", name, way, round + 1, options_.rounds));
      }
      box.seed = static_cast<uint64_t>(round) + 1;
      const Result<Flows> flows = run_flows(box, clients);
      if (!flows) return fail(flows.error());
      take(*flows);
    }
    return {};
  }
  Measurement& line(std::string name, std::string variant, std::string unit) {
    lines_.push_back({.name = std::move(name),
                      .variant = std::move(variant),
                      .unit = std::move(unit),
                      .samples = {},
                      .is_simulated = true});
    return lines_.back();
  }
  // Lines of a figure go to the report; `one` over `other`, round by round, is its ratio.
  void put() {
    for (Measurement& each : lines_) report_.add(std::move(each));
    lines_.clear();
  }

  // The largest distance of a part from what it should be, by that.
  Result<void> parts(const char* name, const std::vector<double>& weights,
                     const std::function<Clients(const Way&)>& clients) {
    double all = 0;
    for (const double each : weights) all += each;
    lines_.reserve(kWays.size());
    for (const Way& way : kWays) {
      Measurement& error = line(name, way.name, "of a part");
      std::vector<double> total;
      const Result<void> done = play(name, way.name, {}, clients(way), [&](const Flows& flows) {
        double worst = 0;
        double sum = 0;
        for (size_t i = 0; i < weights.size(); ++i) {
          worst = std::max(worst, std::abs(part_of(flows, i) * all / weights[i] - 1));
          sum += flows[i].load.bytes_per_second();
        }
        error.samples.push_back(worst);
        total.push_back(sum / kMega);
      });
      if (!done) return done;
      error.extras = {{"all_mb_per_s", median(total)}};
    }
    report_.add_simulated_ratio(name, lines_.front().value());
    put();
    return {};
  }

  // Four volumes that read, of which one has sixteen times as many requests under way as another.
  Result<void> equal() {
    return parts("share_error_equal", {1, 1, 1, 1}, [this](const Way& way) {
      Clients all;
      for (const uint32_t depth : {4U, 8U, 16U, 64U}) {
        all.push_back(
            client(fmt::format("v{}", depth), way, {.request_size = 64_KiB, .depth = depth}));
      }
      return all;
    });
  }
  Result<void> weights() {
    return parts("share_error_weights", {1, 2, 4}, [this](const Way& way) {
      Clients all;
      for (const uint32_t weight : {1U, 2U, 4U}) {
        all.push_back(
            client(fmt::format("v{}", weight), way, {.request_size = 64_KiB, .depth = 32}));
        all.back().terms.weight = weight;
      }
      return all;
    });
  }

  // A reader that was promised most of what a drive promises, and four that read and write 128 KiB.
  Result<void> floor() {
    constexpr uint64_t kFloor = 50'000'000;
    lines_.reserve(2 * kWays.size());
    for (const Way& way : kWays) {
      Clients clients = {client("promised", way, {.request_size = 64_KiB, .depth = 16})};
      clients[0].terms.floor = kFloor;
      for (int i = 0; i < 4; ++i) {
        clients.push_back(client(fmt::format("noisy{}", i), way,
                                 {.read_share = 0.5, .request_size = 128_KiB, .depth = 64}));
      }
      Measurement& error = line("floor_error", way.name, "of the floor");
      Measurement& got = line("floor_got", way.name, "MB/s");
      std::vector<double> others;
      const Result<void> done = play("floor_error", way.name, {}, clients, [&](const Flows& flows) {
        const double its = flows[0].load.bytes_per_second();
        error.samples.push_back(std::max(0.0, 1 - its / kFloor));
        got.samples.push_back(its / kMega);
        double rest = 0;
        for (size_t i = 1; i < flows.size(); ++i) rest += flows[i].load.bytes_per_second();
        others.push_back(rest / kMega);
      });
      if (!done) return done;
      got.extras = {{"others_mb_per_s", median(others)}};
    }
    report_.add_simulated_ratio("floor_error", lines_.front().value());
    put();
    return {};
  }

  // One volume alone on two drives: what it does less than without all of it.
  Result<void> cost() {
    constexpr const char* kName = "scheduler_throughput_cost";
    lines_.reserve(kWays.size());
    for (const Way& way : kWays) {
      Measurement& rate = line(kName, way.name, "MB/s");
      const Clients clients = {
          client("alone", way, {.read_share = 0.7, .request_size = 64_KiB, .depth = 32})};
      const Result<void> done =
          play(kName, way.name, {.drives = 2}, clients, [&](const Flows& flows) {
            rate.samples.push_back(flows[0].load.bytes_per_second() / kMega);
          });
      if (!done) return done;
    }
    report_.add_simulated_ratio(kName, 1 - paired_ratio(lines_[0], lines_[1]));
    put();
    return {};
  }

  // A reader of 4 KiB now and then, and four that read (or write) 128 KiB, 32 at once.
  Result<void> victim() {
    for (const bool by_writes : {false, true}) {
      const std::string name = by_writes ? "victim_of_writes" : "victim";
      std::array<std::vector<Measurement>, 3> of_ways;
      for (const Way& way : kWays) {
        Clients clients = {
            client("victim", way, {.request_size = 4_KiB, .depth = 64, .rate = kVictimRate})};
        for (int i = 0; i < 4; ++i) {
          clients.push_back(
              client(fmt::format("noisy{}", i), way,
                     {.read_share = by_writes ? 0.0 : 1.0, .request_size = 128_KiB, .depth = 32}));
        }
        std::array<Measurement, 3> lines;
        constexpr std::array kNames = {"p50", "p99", "p999"};
        for (size_t i = 0; i < lines.size(); ++i) {
          lines[i] = {.name = fmt::format("{}_{}", name, kNames[i]),
                      .variant = way.name,
                      .unit = "us",
                      .samples = {},
                      .is_simulated = true};
        }
        std::vector<double> others;
        const Result<void> done =
            play(name.c_str(), way.name, {}, clients, [&](const Flows& flows) {
              const Histogram all = flows[0].load.latency_ns();
              lines[0].samples.push_back(static_cast<double>(all.p50()) / kMicro);
              lines[1].samples.push_back(static_cast<double>(all.p99()) / kMicro);
              lines[2].samples.push_back(static_cast<double>(all.p999()) / kMicro);
              double rest = 0;
              for (size_t i = 1; i < flows.size(); ++i) rest += flows[i].load.bytes_per_second();
              others.push_back(rest / kMega);
            });
        if (!done) return done;
        for (size_t i = 0; i < lines.size(); ++i) {
          lines[i].extras = {{"others_mb_per_s", median(others)}};
          of_ways[i].push_back(std::move(lines[i]));
        }
      }
      for (std::vector<Measurement>& each : of_ways) {
        report_.add_simulated_ratio(each[0].name + "_gain", paired_ratio(each[1], each[0]));
        for (Measurement& one : each) report_.add(std::move(one));
      }
    }
    return {};
  }

  // Volumes on the drives that are there first, four for each, which their owners keep busy.
  Clients busy(size_t drives, const Way& way, double read_share) const {
    Clients all;
    for (size_t i = 0; i < 4 * drives; ++i) {
      FlowClient one = client(fmt::format("busy{}", i), way,
                              {.read_share = read_share, .request_size = 128_KiB, .depth = 32});
      one.bytes = 64_MiB;
      one.is_early = true;
      one.drive = i % drives;
      all.push_back(std::move(one));
    }
    return all;
  }

  // A volume that is made while one drive of four is busy: where it is put by how busy drives are,
  // and where not. Mean latency of 32 KiB, 4 at once.
  Result<void> avoid() {
    for (const bool is_read : {true, false}) {
      const std::string name = is_read ? "avoid_latency_read" : "avoid_latency_write";
      lines_.reserve(2);
      for (const bool avoids : {true, false}) {
        const Way& way = avoids ? kOn : kOff;
        Clients clients = busy(1, way, is_read ? 1 : 0);
        clients.push_back(client(
            "new", way, {.read_share = is_read ? 1.0 : 0.0, .request_size = 32_KiB, .depth = 4}));
        if (!avoids) {
          clients.back().weights.busy = 0;
          clients.back().weights.fragmentation = 0;
        }
        Measurement& mean = line(name, way.name, "us");
        const Result<void> done =
            play(name.c_str(), way.name, {.drives = 4, .early_drives = 1}, clients,
                 [&](const Flows& flows) {
                   mean.samples.push_back(flows.back().load.latency_ns().mean() / kMicro);
                 });
        if (!done) return done;
      }
      report_.add_simulated_ratio(name, paired_ratio(lines_[0], lines_[1]));
      put();
    }
    return {};
  }

  // The same over eight drives of which two are busy, next to a stripe over all eight as LVM has
  // it, with the same others on the same two drives.
  Result<void> congested() {
    struct Mix {
      const char* name;
      DriveLoad load;
    };
    const std::array mixes = {
        Mix{"congested_write",
            {.order = DriveLoad::Order::kSequential,
             .read_share = 0,
             .request_size = 1_MiB,
             .depth = 16}},
        Mix{"congested_mix30", {.read_share = 0.3, .request_size = 1_MiB, .depth = 16}},
        Mix{"congested_mix50", {.read_share = 0.5, .request_size = 1_MiB, .depth = 16}},
    };
    constexpr size_t kBusyDrives = 2;
    for (const Mix& mix : mixes) {
      // Ours with all mechanisms, with none, and LVM's.
      constexpr std::array kSubjects = {"volume", "volume_off", "stripe"};
      lines_.reserve(kSubjects.size());
      for (const std::string_view subject : kSubjects) {
        const bool is_ours = subject != "stripe";
        const Way& way = subject == "volume" ? kOn : kOff;
        Clients clients = busy(kBusyDrives, way, 0.5);
        clients.push_back(client("new", way, mix.load));
        clients.back().bytes = 2 * kRangeOfWriter;
        if (!is_ours) {
          for (FlowClient& each : clients) each.kind = FlowClient::Kind::kDrive;
          clients.back().kind = FlowClient::Kind::kStripe;
        }
        Measurement& rate = line(mix.name, std::string(subject), "MB/s");
        std::vector<double> on_busy;
        std::vector<double> others;
        const Result<void> done =
            play(mix.name, rate.variant.c_str(), {.drives = 8, .early_drives = kBusyDrives},
                 clients, [&](const Flows& flows) {
                   rate.samples.push_back(flows.back().load.bytes_per_second() / kMega);
                   on_busy.push_back(flows.back().on_early_drives);
                   double rest = 0;
                   for (size_t i = 0; i + 1 < flows.size(); ++i) {
                     rest += flows[i].load.bytes_per_second();
                   }
                   others.push_back(rest / kMega);
                 });
        if (!done) return done;
        rate.extras = {{"others_mb_per_s", median(others)}, {"on_busy_drives", median(on_busy)}};
      }
      report_.add_simulated_ratio(fmt::format("{}_vs_lvm", mix.name),
                                  paired_ratio(lines_[0], lines_[2]));
      put();
    }
    return {};
  }

  const VolumeBenchOptions& options_;
  Report& report_;
  std::vector<Measurement> lines_;  // of one figure
};

}  // namespace

Result<void> bench_volume_share(const VolumeBenchOptions& options, Report& report) {
  ShareBench bench(options, report);
  return bench.run();
}

}  // namespace cairn::bench
