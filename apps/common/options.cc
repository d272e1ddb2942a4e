// SPDX-License-Identifier: Apache-2.0
// What command.h offers for declaring options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "apps/common/command.h"
#include "base/duration.h"
#include "base/words.h"
#include "config/bytes_text.h"
#include "drive/source.h"

namespace cairn::apps {

namespace {

// Stores what a parser returns.
template <class T>
std::function<Attempt<void>(const std::string&)> into(std::optional<T>& target,
                                                      Attempt<T> (*parse)(std::string_view)) {
  return [&target, parse](const std::string& text) -> Attempt<void> {
    Attempt<T> value = parse(text);
    if (!value) return std::unexpected(value.error());
    target = std::move(*value);
    return {};
  };
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// CLI11's way to refuse a value is an exception; parse_command_line catches it. What shows a place
// with a caret has lines of its own.
[[noreturn]] void refuse_value(const std::string& option, const Problem& problem) {
  const bool is_shown = problem.text.find('\n') != std::string::npos;
  throw CLI::ValidationError(fmt::format("{}{}{}", option, is_shown ? ":\n" : " ", problem.text));
}

}  // namespace

CLI::Option* add_value(CLI::App& app, std::string_view spec, std::string help,
                       std::function<Attempt<void>(const std::string&)> take) {
  const size_t space = spec.find(' ');
  const std::string option(spec.substr(0, space));
  auto callback = [option, take = std::move(take)](const std::string& text) {
    if (const Attempt<void> taken = take(text); !taken) refuse_value(option, taken.error());
  };
  return app.add_option_function<std::string>(option, std::move(callback), std::move(help))
      ->take_last()
      ->option_text(std::string(space == spec.npos ? "" : spec.substr(space + 1)));
}

CLI::Option* add_values(CLI::App& app, std::string_view spec, std::string help,
                        std::function<Attempt<void>(const std::string&)> take) {
  const size_t space = spec.find(' ');
  const std::string option(spec.substr(0, space));
  auto callback = [option, take = std::move(take)](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (const Attempt<void> taken = take(text); !taken) refuse_value(option, taken.error());
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(option, std::move(callback), std::move(help))
      ->expected(1)
      ->take_all()
      // The word behind the value of an option is not another value.
      ->allow_extra_args(!option.starts_with('-'))
      ->option_text(std::string(space == spec.npos ? "" : spec.substr(space + 1)));
}

CLI::Option* add_text(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
  return add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
    into = text;
    return {};
  });
}

CLI::Option* add_argument(CLI::App& app, const std::string& name, std::string help,
                          std::function<Attempt<void>(const std::string&)> take) {
  auto callback = [take = std::move(take)](const std::string& text) {
    if (const Attempt<void> taken = take(text); !taken) {
      throw CLI::ValidationError(taken.error().text);
    }
  };
  return app.add_option_function<std::string>(name, std::move(callback), std::move(help))
      ->required();
}

CLI::Option* add_switch(CLI::App& app, std::string name, bool& into, std::string help) {
  return app.add_flag(std::move(name), into, std::move(help))->disable_flag_override();
}

CLI::Option* add_number(CLI::App& app, std::string_view spec, double& into, double min, double max,
                        std::string help) {
  return add_value(
      app, spec, std::move(help), [&into, min, max](const std::string& text) -> Attempt<void> {
        double value = 0;
        if (!parse_number(text, value) || !(value >= min && value <= max)) {
          return refuse(
              fmt::format("takes a number from {} to {}, not {}", min, max, in_quotes(text)));
        }
        into = value;
        return {};
      });
}

CLI::Option* add_integer(CLI::App& app, std::string_view spec, int& into,
                         config::IntegerRange range, std::string help) {
  return add_value(app, spec, std::move(help),
                   [&into, range](const std::string& text) -> Attempt<void> {
                     int value = 0;
                     if (!parse_number(text, value) || value < range.min || value > range.max) {
                       return refuse(fmt::format("takes a whole number from {} to {}, not {}",
                                                 range.min, range.max, in_quotes(text)));
                     }
                     into = value;
                     return {};
                   });
}

CLI::Option* add_size(CLI::App& app, std::string_view spec, uint64_t& into, std::string help) {
  return add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
    const Attempt<uint64_t> size = config::parse_bytes(text);
    if (!size) return std::unexpected(size.error());
    into = *size;
    return {};
  });
}

void add_io(CLI::App& app, std::optional<config::IoChoice>& io) {
  add_value(app, "--io BACKEND", "uring, epoll or auto (the default): how to talk to the kernel",
            into(io, &config::parse_io));
}

void add_settings(CLI::App& app, config::SettingsOptions& options) {
  add_io(app, options.io);
  add_value(app, "--cores LIST", "CPUs to run on, one reactor each, such as 0,1 or 2-5",
            into(options.cores, &config::parse_cores));
  add_switch(app, "--poll", options.poll, "spin for work: lowest latency, whole cores");
  add_value(app, "--poll-cores LIST", "only these of --cores spin",
            into(options.poll_cores, &config::parse_cores));
  add_value(app, "--spin TIME", "spin so long, such as 50us, before sleeping; less when idle",
            into(options.spin, &parse_short_duration));
  add_value(app, "--nap TIME",
            "under steady load sleep so long at a time, such as 100us: less CPU, more latency; "
            "never; or auto (the default): some 20 us where that is found to pay",
            into(options.nap, &config::parse_nap));
  add_value(app, "--config FILE", "settings in TOML; options given here win",
            [&options](const std::string& path) -> Attempt<void> {
              options.config = path;
              return {};
            });
  add_value(app, "--log-level LEVEL", "debug, info (the default), warn or error",
            into(options.log_level, &config::parse_log_level));
}

CLI::Option* required(CLI::Option* option) { return option->required(); }
CLI::Option* optional(CLI::Option* option) { return option->required(false); }
CLI::Option* any_number(CLI::Option* option) { return option->expected(-1); }
CLI::Option* value_optional(CLI::Option* option) { return option->expected(0, 1); }
void not_both(CLI::Option* one, CLI::Option* other) { one->excludes(other); }
bool was_given(const CLI::Option& option) { return option.count() > 0; }

std::string name_of(const CLI::App& app) { return app.get_name(); }

void set_examples(CLI::App& app, const std::vector<std::string>& lines) {
  app.footer(fmt::format("Examples:\n  {}", fmt::join(lines, "\n  ")));
}

}  // namespace cairn::apps
