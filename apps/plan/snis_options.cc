// SPDX-License-Identifier: Apache-2.0
#include "apps/plan/snis_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/command.h"
#include "base/words.h"

namespace cairn::apps {

namespace {

void add_moments(CLI::App& app, std::string_view spec, std::optional<trace::Moments>& into,
                 std::string help) {
  add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
    const Attempt<trace::Moments> moments = plan::parse_moments(text);
    if (!moments) return std::unexpected(moments.error());
    into = *moments;
    return {};
  });
}

}  // namespace

void add_system_options(CLI::App& app, plan::SnisSystemOptions& options) {
  const auto text = [](std::string& into) {
    return [&into](const std::string& value) -> Attempt<void> {
      into = value;
      return {};
    };
  };
  add_value(app, "--profile NAME", "the drives: a profile of Cairn's or a TOML file (snis-authors)",
            text(options.profile));
  add_value(app, "--config FILE", "the drives as a JSON object of MQSim parameters",
            text(options.config));
  add_number(app, "--precondition P", options.precondition_percent, 0, 100,
             "percent of each drive written before the run (0: new)");
  add_value(app, "--network NAME",
            "star:N, leaf-spine:LxHxS, clos256 (the default), or a TOML file",
            text(options.network));
  add_value(app, "--transport NAME", "how hosts send: dcqcn (the default), pfc, dctcp, cubic",
            [&options](const std::string& name) -> Attempt<void> {
              static const std::vector<std::string> known = {"dcqcn", "pfc", "dctcp", "cubic"};
              if (std::ranges::find(known, name) == known.end()) {
                return refuse(
                    fmt::format("is one of {}{}", comma_list(known), did_you_mean(name, known)));
              }
              options.transport = name;
              return {};
            });
  add_switch(app, "--fluid", options.fluid, "flows as rates instead of packets: fast, rough");
  add_switch(app, "--hpcc", options.hpcc, "the network with the reference's peculiarities");
  add_integer(app, "--targets N", options.targets, {.min = 1, .max = 100'000}, "drives (1)");
  add_integer(app, "--initiators N", options.initiators, {.min = 1, .max = 100'000}, "hosts (10)");
}

void add_load_options(CLI::App& app, plan::SnisLoadOptions& options) {
  const auto text = [](std::string& into) {
    return [&into](const std::string& value) -> Attempt<void> {
      into = value;
      return {};
    };
  };
  add_value(app, "--trace FILE", "requests from a trace, plain or gzip", text(options.trace));
  add_value(app, "--format NAME", "of the trace, if its first lines do not tell",
            text(options.format));
  add_value(app, "--synthetic NAME",
            "requests as in the paper: F_t_l, F_t_m, F_t_h, F_s_m, F_s_h, or custom",
            [&options](const std::string& name) -> Attempt<void> {
              const std::vector<std::string> known = plan::synthetic_names();
              if (std::ranges::find(known, name) == known.end()) {
                return refuse(
                    fmt::format("is one of {}{}", comma_list(known), did_you_mean(name, known)));
              }
              options.synthetic = name;
              return {};
            });
  add_moments(app, "--read-gap MEAN[,SCV[,R]]", options.read_gap_us,
              "us between reads, variance / mean^2, autocorrelation");
  add_moments(app, "--write-gap MEAN[,SCV[,R]]", options.write_gap_us, "the same of writes");
  add_moments(app, "--read-size MEAN[,SCV]", options.read_size, "bytes of reads");
  add_moments(app, "--write-size MEAN[,SCV]", options.write_size, "bytes of writes");
  add_integer(app, "--requests N", options.requests, {.min = 1, .max = 100'000'000},
              fmt::format("how many ({} synthetic; the first {} of a trace)",
                          options.synthetic_requests, options.trace_requests));
  add_integer(app, "--seed N", options.seed, {.min = 0, .max = 1'000'000'000},
              "of synthetic requests (1)");
  add_number(app, "--time-scale X", options.shape.time_scale, 1e-6, 1e6,
             "stretch all times (1); 0.5 is twice the load");
  add_size(app, "--space BYTES", options.shape.space, "wrap addresses into so much of a target");
  add_value(
      app, "--place HOW", "requests on targets: by volume (the default) or stripe[:BYTES]",
      [&options](const std::string& how) { return plan::take_placement(how, options.shape); });
  add_value(
      app, "--choose HOW", "who sends: least-loaded (the default), volume, round-robin",
      [&options](const std::string& how) { return plan::take_choice(how, options.shape.choice); });
}

}  // namespace cairn::apps
