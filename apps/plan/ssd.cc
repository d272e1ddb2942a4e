// SPDX-License-Identifier: Apache-2.0
// `cairn plan ssd`: one modelled drive under a trace or a synthetic load.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/plan/progress_line.h"
#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"
#include "model/flash/precondition.h"
#include "plan/common/latency_summary.h"
#include "plan/common/trace_file.h"
#include "plan/flash/flash_history.h"
#include "plan/flash/flash_page.h"
#include "plan/flash/flash_profile.h"
#include "plan/flash/mqsim_config.h"
#include "trace/shape.h"

namespace cairn::apps {

namespace {

using flash::Completion;
using flash::FlashModel;
using flash::Op;
using flash::Synthetic;
using flash::TimedRequest;

constexpr size_t kRowsMax = 1UL << 20;
// Completions between two looks at the clock for the progress line.
constexpr uint64_t kLookEvery = 1024;

nlohmann::ordered_json json_of(const plan::LatencySummary& s) {
  return {{"count", s.count}, {"mean_ns", s.mean}, {"min_ns", s.min},
          {"p50_ns", s.p50},  {"p90_ns", s.p90},   {"p95_ns", s.p95},
          {"p99_ns", s.p99},  {"p999_ns", s.p999}, {"max_ns", s.max}};
}

class PlanSsdCommand final : public Command {
 public:
  explicit PlanSsdCommand(CLI::App& app) {
    const auto text = [](std::string& into) {
      return [&into](const std::string& value) -> Attempt<void> {
        into = value;
        return {};
      };
    };
    add_value(app, "--profile NAME", "the drive: a profile of Cairn's or a TOML file (laptop-tlc)",
              text(profile_));
    add_value(app, "--config FILE", "the drive as a JSON object of MQSim parameters",
              text(config_));
    add_value(app, "--trace FILE", "replay a trace, plain or gzip, of any size", text(trace_));
    add_value(app, "--format NAME",
              fmt::format("of the trace, if it is not told by its first lines: {}",
                          trace::format_names()),
              text(format_));
    add_number(app, "--time-scale X", shape_.time_scale, 1e-6, 1e6,
               "stretch the trace's times (1)");
    add_size(app, "--space BYTES", shape_.space, "wrap the trace's addresses into so much");
    add_value(app, "--synthetic KIND", "read, write or mix, with seq- before it for sequential",
              [this](const std::string& kind) { return take_kind(kind); });
    add_size(app, "--block BYTES", block_, "size of a synthetic request (4096)");
    add_integer(app, "--qd N", qd_, {.min = 1, .max = 65535}, "requests in flight (32)");
    add_integer(app, "--requests N", requests_, {.min = 1, .max = 1'000'000'000},
                "how many synthetic requests (100000)");
    add_number(app, "--gap-us T", gap_us_, 0, 1e9,
               "open loop instead: mean time between requests (0: closed loop)");
    add_number(app, "--read-percent P", read_percent_, 0, 100, "reads of a mix (70)");
    add_number(app, "--working-set P", working_set_, 1, 100, "percent of the drive used (100)");
    add_number(app, "--precondition P", occupancy_, 0, 100,
               "percent of the drive written before the run (0: new)");
    add_integer(app, "--seed N", seed_, {.min = 0, .max = 1'000'000'000}, "of the workload (798)");
    add_value(app, "--csv FILE", "write each request's times to a file", text(csv_));
    add_value(app, "--html FILE", "write a report with plots, as one page", text(html_));
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app, {"cairn plan ssd --profile pm1725a --synthetic read --qd 64",
                       "cairn plan ssd --synthetic mix --precondition 80 --html report.html",
                       "cairn plan ssd --synthetic write --block 16384 --precondition 80 --json",
                       "cairn plan ssd --config drive.json --trace t.trace.gz --csv times.csv"});
  }

  Attempt<int> run() override {
    Attempt<flash::Parameters> p = drive();
    if (!p) return std::unexpected(p.error());
    if (trace_.empty() == kind_.empty()) {
      return refuse("say what the drive shall do: either --trace FILE or --synthetic KIND");
    }
    FlashModel model(*p);
    Synthetic synthetic = workload(model);
    if (occupancy_ > 0 && !flash::precondition(model, synthetic, occupancy_ / 100)) {
      return refuse(fmt::format(
          "the drive has too few spare blocks to be preconditioned to {} percent; ask for less",
          occupancy_));
    }
    if (!csv_.empty()) {
      Attempt<config::FreshFile> fresh = config::FreshFile::create(csv_);
      if (!fresh) return std::unexpected(fresh.error());
      times_.emplace(std::move(*fresh));
      rows_ = "arrival_ns,lba,sectors,op,complete_ns,latency_ns\n";
    }
    plan::FlashHistory history(model);
    if (trace_.empty()) {
      ProgressLine progress(!json_, kLookEvery);
      flash::run_synthetic(model, synthetic, [&](const Completion& c) {
        take(c);
        history.completed(c);
        progress.at(static_cast<double>(count_) / static_cast<double>(synthetic.requests),
                    [&] { return simulated(c.done); });
      });
    } else if (const Attempt<void> replayed = replay(model, history); !replayed) {
      return std::unexpected(replayed.error());
    }
    history.end();
    if (!html_.empty()) {
      const std::string page = plan::flash_page({.drive = drive_name(),
                                                 .load = load_name(),
                                                 .reads = reads_,
                                                 .writes = writes_,
                                                 .history = history,
                                                 .model = model});
      if (const Attempt<void> written = config::replace_file(html_, page); !written) {
        return std::unexpected(written.error());
      }
    }
    if (const Attempt<void> written = finish_times(); !written) {
      return std::unexpected(written.error());
    }
    say(json_ ? config::json_text(report(model)) : text_of(model));
    return kExitOk;
  }

 private:
  Attempt<void> take_kind(const std::string& kind) {
    static const std::vector<std::string> known = {"read",     "write",     "mix",
                                                   "seq-read", "seq-write", "seq-mix"};
    if (std::ranges::find(known, kind) == known.end()) {
      return refuse(fmt::format("is one of {}{}", comma_list(known), did_you_mean(kind, known)));
    }
    kind_ = kind;
    return {};
  }

  std::string drive_name() const {
    if (!config_.empty()) return config_;
    return profile_.empty() ? "laptop-tlc" : profile_;
  }
  std::string load_name() const {
    if (!trace_.empty()) return fmt::format("The trace {}", trace_);
    std::string name = fmt::format("{} requests of {} bytes ({})", requests_, block_, kind_);
    name += gap_us_ > 0 ? fmt::format(", one every {} us on average", gap_us_)
                        : fmt::format(", {} in flight", qd_);
    if (occupancy_ > 0)
      name += fmt::format(", on a drive written to {} percent before", occupancy_);
    return name;
  }

  Attempt<flash::Parameters> drive() const {
    if (config_.empty()) return plan::load_flash_profile(drive_name());
    if (!profile_.empty()) return refuse("--profile and --config both say what the drive is");
    return plan::load_mqsim_config(config_);
  }

  Synthetic workload(const FlashModel& model) const {
    Synthetic s;
    s.pattern = kind_.starts_with("seq-") ? flash::Pattern::kSequential : flash::Pattern::kRandom;
    s.read_fraction = kind_.ends_with("read")    ? 1.0
                      : kind_.ends_with("write") ? 0.0
                                                 : read_percent_ / 100;
    s.sectors =
        static_cast<uint32_t>(std::clamp<uint64_t>(block_ / flash::kSectorBytes, 1, 1U << 16));
    s.alignment_sectors = s.sectors;
    s.working_set = working_set_ / 100;
    s.requests = static_cast<uint64_t>(requests_);
    s.queue_depth = static_cast<uint32_t>(qd_);
    s.mean_gap_ns = gap_us_ * 1000;
    s.seed = static_cast<uint32_t>(seed_);
    s.sectors =
        static_cast<uint32_t>(std::min<uint64_t>(s.sectors, model.domains()[0].logical_sectors));
    return s;
  }

  static double seconds(flash::Nanos time) { return static_cast<double>(time) * 1e-9; }
  static std::string simulated(flash::Nanos time) {
    return fmt::format("{:.3f} s simulated", seconds(time));
  }

  Attempt<void> replay(FlashModel& model, plan::FlashHistory& history) {
    Attempt<plan::TraceFile> file = plan::TraceFile::open(trace_, {.format = format_});
    if (!file) return std::unexpected(file.error());
    trace::Shaper shaper(shape_);
    Attempt<void> read;
    uint64_t number = 0;
    const auto next = [&]() -> std::optional<TimedRequest> {
      const Attempt<std::optional<trace::Record>> record = file->next();
      if (!record) read = std::unexpected(record.error());
      if (!record || !*record) return std::nullopt;
      return plan::timed_request(shaper.shape(**record), number++);
    };
    ProgressLine progress(!json_, kLookEvery);
    flash::run_open_loop(model, next, [&](const Completion& c) {
      take(c);
      history.completed(c);
      progress.at(file->part_read(), [&] { return simulated(c.done); });
    });
    return read;
  }

  void take(const Completion& c) {
    (c.op == Op::kRead ? reads_ : writes_).add(c.done - c.arrival);
    ++count_;
    first_ = std::min(first_, c.arrival);
    last_ = std::max(last_, c.done);
    bytes_ += static_cast<double>(c.sectors) * flash::kSectorBytes;
    if (!times_) return;
    rows_ += fmt::format("{},{},{},{},{},{}\n", c.arrival, c.lba, c.sectors,
                         c.op == Op::kRead ? 'R' : 'W', c.done, c.done - c.arrival);
    if (rows_.size() > kRowsMax && written_) {
      written_ = times_->append(rows_);
      rows_.clear();
    }
  }

  Attempt<void> finish_times() {
    if (!times_) return {};
    if (!written_) return written_;
    if (Attempt<void> rest = times_->append(rows_); !rest) return rest;
    return times_->finish();
  }

  struct Summary {
    plan::LatencySummary read;
    plan::LatencySummary write;
    double seconds = 0;
    double bytes = 0;
  };
  Summary summary() const {
    return {.read = reads_.summary(),
            .write = writes_.summary(),
            .seconds = count_ == 0 ? 0 : seconds(last_ - first_),
            .bytes = bytes_};
  }

  nlohmann::ordered_json report(const FlashModel& model) const {
    const Summary s = summary();
    const flash::Counters& k = model.counters();
    const double span = std::max(s.seconds, 1e-12);
    nlohmann::ordered_json channels = nlohmann::ordered_json::array();
    for (uint32_t i = 0; i < model.geometry().channels(); ++i) {
      channels.push_back(static_cast<double>(model.channel_busy(i)) * 1e-9 / span);
    }
    double dies = 0;
    for (uint32_t i = 0; i < model.geometry().dies(); ++i) {
      dies += static_cast<double>(model.die_busy(i)) * 1e-9 / span;
    }
    return {{"schema_version", 1},
            {"requests", count_},
            {"lost", k.requests_lost},
            {"simulated_seconds", s.seconds},
            {"iops", static_cast<double>(count_) / span},
            {"bytes_per_second", s.bytes / span},
            {"read", json_of(s.read)},
            {"write", json_of(s.write)},
            {"flash",
             {{"read_commands", k.read_commands},
              {"multiplane_read_commands", k.multiplane_read_commands},
              {"program_commands", k.program_commands},
              {"multiplane_program_commands", k.multiplane_program_commands},
              {"erase_commands", k.erase_commands},
              {"multiplane_erase_commands", k.multiplane_erase_commands},
              {"program_suspensions", k.program_suspensions},
              {"erase_suspensions", k.erase_suspensions},
              {"user_pages_programmed", k.user_pages_programmed},
              {"gc_pages_programmed", k.gc_pages_programmed},
              {"mapping_pages_programmed", k.mapping_pages_programmed},
              {"blocks_erased", k.blocks_erased},
              {"write_amplification", k.write_amplification()}}},
            {"mapping", {{"queries", k.mapping_queries}, {"hits", k.mapping_hits}}},
            {"cache", {{"read_hits", k.cache_read_hits}, {"evictions", k.cache_evictions}}},
            {"gc", {{"executions", k.gc_executions}, {"page_moves", k.gc_page_moves}}},
            {"wear", {{"executions", k.wear_executions}}},
            {"channel_utilisation", channels},
            {"die_utilisation", dies / model.geometry().dies()},
            {"events", k.events},
            {"table_bytes", model.table_bytes()},
            {"pool_bytes", model.pool_bytes()}};
  }

  std::string text_of(const FlashModel& model) const {
    const Summary s = summary();
    const flash::Counters& k = model.counters();
    const double span = std::max(s.seconds, 1e-12);
    std::string out =
        fmt::format("{} requests in {:.6f} simulated seconds: {:.0f} IOPS, {:.1f} MB/s\n", count_,
                    s.seconds, static_cast<double>(count_) / span, s.bytes / span * 1e-6);
    for (const auto& [name, one] : {std::pair{"read ", &s.read}, {"write", &s.write}}) {
      if (one->count == 0) continue;
      out += fmt::format(
          "{}  mean {:.1f} us, p50 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, max {:.1f} us\n", name,
          one->mean * 1e-3, one->p50 * 1e-3, one->p99 * 1e-3, one->p999 * 1e-3, one->max * 1e-3);
    }
    return out + fmt::format(
                     "flash  {} reads, {} programs, {} erases; write amplification {:.3f}, "
                     "{} collections\n",
                     k.user_pages_read + k.gc_pages_read + k.mapping_pages_read,
                     k.user_pages_programmed + k.gc_pages_programmed + k.mapping_pages_programmed,
                     k.blocks_erased, k.write_amplification(), k.gc_executions);
  }

  std::string profile_;
  std::string config_;
  std::string trace_;
  std::string kind_;
  std::string csv_;
  std::string html_;
  uint64_t block_ = 4096;
  int qd_ = 32;
  int requests_ = 100'000;
  int seed_ = 798;
  double gap_us_ = 0;
  double read_percent_ = 70;
  double working_set_ = 100;
  double occupancy_ = 0;
  bool json_ = false;
  std::string format_;
  trace::ShapeOptions shape_;
  plan::LatencyTally reads_;
  plan::LatencyTally writes_;
  uint64_t count_ = 0;
  flash::Nanos first_ = INT64_MAX;
  flash::Nanos last_ = 0;
  double bytes_ = 0;
  std::optional<config::FreshFile> times_;  // --csv, written as the run goes on
  std::string rows_;
  Attempt<void> written_;
};

}  // namespace

std::unique_ptr<Command> make_plan_ssd(CLI::App& app) {
  return std::make_unique<PlanSsdCommand>(app);
}

}  // namespace cairn::apps
