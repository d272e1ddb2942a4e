// SPDX-License-Identifier: Apache-2.0
// `cairn nvme perf`: a load on a namespace, and how it did.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/perf_report.h"
#include "config/json_text.h"
#include "loadgen/load_jobs.h"
#include "loadgen/meters.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

class PerfCommand final : public Command {
 public:
  explicit PerfCommand(CLI::App& app) {
    loadgen::DriveLoad& load = report_.load;
    load.warm_up = 500_ms;
    report_.pattern = "randread";
    add_place(app, "URI", report_.uri, server::Needs::kNamespace, "the namespace");
    add_value(app, "--rw PATTERN", "randread (the default), randwrite, read, write, mixed:70",
              [this](const std::string& text) {
                report_.pattern = text;
                return parse_pattern(text, report_.load);
              });
    add_size(app, "--bs SIZE", load.request_size, "bytes of a request (4K)");
    add_integer(app, "--depth N", depth_, {.min = 1, .max = loadgen::kLoadDepthMax},
                "requests outstanding in each job (128)");
    add_number(app, "--seconds S", seconds_, 0.01, 1e6, "how long to measure (5)");
    add_number(app, "--warmup S", warm_up_, 0, 1e6, "how long to run before (0.5)");
    add_integer(app, "--jobs N", jobs_, {.min = 1, .max = 1024},
                "connections with a load each (one per core)");
    add_number(app, "--rate N", load.rate, 0, 1e9,
               "requests per second at even distances, instead of as many as possible");
    add_size(app, "--offset SIZE", load.offset, "where the range that is used begins (0)");
    add_size(app, "--length SIZE", load.length, "its size (up to the end)");
    add_switch(app, "--fua", load.durable, "writes are durable when they complete");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme perf nvme-tcp://127.0.0.1/NQN --bs 4K --depth 32 --seconds 10",
                       "cairn nvme perf nvme-tcp://box1/NQN --rw mixed:70 --cores 0,1 --json",
                       "cairn nvme perf nvme-tcp://box1/NQN --rate 50000",
                       "Patterns that write overwrite what the range holds."});
  }

  Attempt<int> run() override {
    Attempt<fabric::Uri> uri = server::find_target_uri(report_.uri, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    loadgen::DriveLoad& load = report_.load;
    load.depth = static_cast<uint32_t>(depth_);
    load.duration = Duration::from_seconds(seconds_);
    load.warm_up = Duration::from_seconds(warm_up_);
    load.clock = &loadgen::now;
    uri->options.depth = std::max<uint16_t>(uri->options.depth,
                                            std::min<uint32_t>(load.depth, fabric::kHostDepthMax));
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return measure(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json_of(report_)) : text_of(report_));
    if (!report_.result.error) return kExitOk;
    return std::unexpected(server::cannot_do("the load", *report_.result.error));
  }

 private:
  task::Task<Attempt<void>> measure(env::Env& env, const fabric::Uri& uri) {
    report_.jobs = jobs_ > 0 ? static_cast<uint32_t>(jobs_) : env.core_count();
    Duration cpu;
    loadgen::LoadJobs jobs{.open = [&uri](env::Env& there) { return open_for_load(there, uri); },
                           .jobs = report_.jobs,
                           .watch = {.begins = [&cpu] { cpu = loadgen::cpu_time(); },
                                     .ended = [&cpu] { cpu = loadgen::cpu_time() - cpu; }},
                           .look =
                               [this](uint32_t job, drive::Drive& drive) {
                                 report_.lanes[job] =
                                     static_cast<fabric::RemoteDrive&>(drive).lanes();
                               }};
    report_.lanes.resize(report_.jobs);
    // What is wrong with the URI is best said by the first connection alone, and what is wrong
    // with the load by the drive it is for.
    Attempt<std::unique_ptr<fabric::RemoteDrive>> first = co_await server::open_drive(env, uri);
    if (!first) co_return std::unexpected(first.error());
    const Result<void> checked = loadgen::check_load(report_.load, (*first)->geometry());
    const drive::Geometry geometry = (*first)->geometry();
    co_await (*first)->close();
    if (!checked) {
      co_return refuse(
          fmt::format("{}, which has {} in blocks of {}: change --bs, --offset or --length",
                      checked.error().what(), text_bytes(geometry.bytes()), geometry.block_size));
    }
    Result<loadgen::LoadResult> result = co_await loadgen::run_load_jobs(env, report_.load, jobs);
    if (!result)
      co_return std::unexpected(server::cannot_connect(result.error(), uri, uri.paths.front()));
    report_.result = std::move(*result);
    report_.interrupted = env.stop_token().requested();
    if (report_.result.completed > 0) {
      report_.cpu_us_per_io = cpu.us() / static_cast<double>(report_.result.completed);
    }
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  PerfReport report_;
  int depth_ = 128;
  int jobs_ = 0;
  double seconds_ = 5;
  double warm_up_ = 0.5;
};

}  // namespace

std::unique_ptr<Command> make_nvme_perf(CLI::App& app) {
  return std::make_unique<PerfCommand>(app);
}

}  // namespace cairn::apps
