// SPDX-License-Identifier: Apache-2.0
// `cairn nvme lanes`: a host's connections to a target, under a short load or none.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/lanes_report.h"
#include "apps/nvme/perf_report.h"
#include "config/json_text.h"
#include "loadgen/load_jobs.h"
#include "loadgen/meters.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

class LanesCommand final : public Command {
 public:
  explicit LanesCommand(CLI::App& app) {
    report_.pattern = "randread";
    add_place(app, "URI", report_.uri, server::Needs::kNamespace, "the namespace");
    add_number(app, "--seconds S", seconds_, 0, 1e6, "how long the load lasts; 0: none (1)");
    add_integer(app, "--depth N", depth_, {.min = 1, .max = loadgen::kLoadDepthMax},
                "requests outstanding on each core (128)");
    add_size(app, "--bs SIZE", report_.load.request_size, "bytes of a request (4K)");
    add_value(app, "--rw PATTERN", "randread (the default), randwrite, read, write, mixed:70",
              [this](const std::string& text) {
                report_.pattern = text;
                return parse_pattern(text, report_.load);
              });
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme lanes nvme-tcp://127.0.0.1/NQN",
                       "cairn nvme lanes nvme-tcp://127.0.0.1/NQN --seconds 0",
                       "cairn nvme lanes 'nvme-tcp://box1/NQN?batching=fixed' --depth 32 --json",
                       "Patterns that write overwrite what the namespace holds."});
  }

  Attempt<int> run() override {
    Attempt<fabric::Uri> uri = server::find_target_uri(report_.uri, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    loadgen::DriveLoad& load = report_.load;
    load.depth = static_cast<uint32_t>(depth_);
    load.duration = Duration::from_seconds(seconds_);
    load.clock = &loadgen::now;
    if (load.duration > 0_s) {
      const auto wanted =
          static_cast<uint16_t>(std::min<uint32_t>(load.depth, fabric::kHostDepthMax));
      uri->options.depth = std::max(uri->options.depth, wanted);
    }
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return look(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json_of(report_)) : text_of(report_));
    if (!report_.result.error) return kExitOk;
    return std::unexpected(server::cannot_do("the load", *report_.result.error));
  }

 private:
  task::Task<Attempt<void>> look(env::Env& env, const fabric::Uri& uri) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> first = co_await server::open_drive(env, uri);
    if (!first) co_return std::unexpected(first.error());
    const bool has_load = report_.load.duration > 0_s;
    if (!has_load) report_.lanes = (*first)->lanes();
    const drive::Geometry geometry = (*first)->geometry();
    co_await (*first)->close();
    if (!has_load) co_return Attempt<void>{};
    if (const Result<void> checked = loadgen::check_load(report_.load, geometry); !checked) {
      co_return refuse(fmt::format("{}, which has {} in blocks of {}: change --bs",
                                   checked.error().what(), text_bytes(geometry.bytes()),
                                   geometry.block_size));
    }
    std::vector<std::vector<fabric::HostLane>> lanes(env.core_count());
    const loadgen::LoadJobs jobs{
        .open = [&uri](env::Env& there) { return open_for_load(there, uri); },
        .jobs = env.core_count(),
        .look =
            [&lanes](uint32_t job, drive::Drive& drive) {
              lanes[job] = static_cast<fabric::RemoteDrive&>(drive).lanes();
            }};
    Result<loadgen::LoadResult> result = co_await loadgen::run_load_jobs(env, report_.load, jobs);
    if (!result)
      co_return std::unexpected(server::cannot_connect(result.error(), uri, uri.paths.front()));
    report_.result = std::move(*result);
    for (const std::vector<fabric::HostLane>& each : lanes) {
      report_.lanes.insert(report_.lanes.end(), each.begin(), each.end());
    }
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  LanesReport report_;
  int depth_ = 128;
  double seconds_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_nvme_lanes(CLI::App& app) {
  return std::make_unique<LanesCommand>(app);
}

}  // namespace cairn::apps
