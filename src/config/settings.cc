// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/duration.h"
#include "base/words.h"

namespace cairn::config {

namespace {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

const Choices<IoChoice>& io_choices() {
  static const Choices<IoChoice> kChoices = {
      {"auto", IoChoice::kAuto}, {"uring", IoChoice::kUring}, {"epoll", IoChoice::kEpoll}};
  return kChoices;
}

const Choices<LogLevel>& log_level_choices() {
  static const Choices<LogLevel> kChoices = {{"debug", LogLevel::kDebug},
                                             {"info", LogLevel::kInfo},
                                             {"warn", LogLevel::kWarn},
                                             {"error", LogLevel::kError}};
  return kChoices;
}

template <class T>
std::string_view word_for(const Choices<T>& choices, T wanted) {
  return std::ranges::find(choices, wanted, &std::pair<std::string, T>::second)->first;
}

template <class T>
Attempt<T> parse_choice(const Choices<T>& choices, std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [word, value] : choices) {
    if (word == text) return value;
    known.push_back(word);
  }
  return refuse(fmt::format("{} is not one of {}{}", in_quotes(text), comma_list(known),
                            did_you_mean(text, known)));
}

// The number that starts `text`, which is then moved past it.
std::optional<int> take_cpu(std::string_view& text) {
  int cpu = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc{} || cpu < 0 || cpu > kCpuMax) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return cpu;
}

template <class T>
std::function<Attempt<void>(const std::string&)> into(T& target,
                                                      Attempt<T> (*parse)(std::string_view)) {
  return [&target, parse](const std::string& text) -> Attempt<void> {
    const Attempt<T> time = parse(text);
    if (!time) return std::unexpected(time.error());
    target = *time;
    return {};
  };
}

}  // namespace

std::string_view name(IoChoice choice) { return word_for(io_choices(), choice); }
std::string_view name(LogLevel level) { return word_for(log_level_choices(), level); }

Section settings_keys(Settings& settings) {
  Section runtime;
  runtime.choice("io", settings.io, io_choices());
  runtime.integers("cores", settings.cores, {.min = 0, .max = kCpuMax});
  runtime.boolean("poll", settings.poll);
  runtime.integers("poll_cores", settings.poll_cores, {.min = 0, .max = kCpuMax});
  runtime.taken("spin", into(settings.spin, &parse_short_duration));
  runtime.taken("nap", into(settings.nap, &parse_nap));
  Section log;
  log.choice("level", settings.log_level, log_level_choices());
  Section root;
  root.table("runtime", std::move(runtime)).table("log", std::move(log));
  return root;
}

Attempt<IoChoice> parse_io(std::string_view text) { return parse_choice(io_choices(), text); }
Attempt<LogLevel> parse_log_level(std::string_view text) {
  return parse_choice(log_level_choices(), text);
}

Attempt<std::optional<Duration>> parse_nap(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "never") return Duration{0};
  const Attempt<Duration> time = parse_short_duration(text);
  if (time) return *time;
  return refuse(fmt::format("{}; or write auto or never", time.error().text));
}

Attempt<std::vector<int>> parse_cores(std::string_view text) {
  const auto wrong = [text] {
    return refuse(
        fmt::format("{} is not a list of CPUs from 0 to {}: write something like 0,1 "
                    "or 2-5",
                    in_quotes(text), kCpuMax));
  };
  std::vector<int> cores;
  std::string_view rest = text;
  while (true) {
    const std::optional<int> first = take_cpu(rest);
    std::optional<int> last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_cpu(rest);
    }
    if (!first || !last || *last < *first) return wrong();
    for (int cpu = *first; cpu <= *last; ++cpu) {
      if (std::ranges::find(cores, cpu) != cores.end()) {
        return refuse(
            fmt::format("{} names CPU {} twice: one reactor runs on a CPU", in_quotes(text), cpu));
      }
      cores.push_back(cpu);
    }
    if (rest.empty()) return cores;
    if (!rest.starts_with(',')) return wrong();
    rest.remove_prefix(1);
  }
}

Attempt<Settings> resolve(const SettingsOptions& options,
                          const std::function<void(Section&)>& more) {
  Settings settings;
  if (options.config) {
    Section root = settings_keys(settings);
    if (more) more(root);
    const Attempt<void> read = read_config(*options.config, root);
    if (!read) return std::unexpected(read.error());
  }
  if (options.io) settings.io = *options.io;
  if (options.cores) settings.cores = *options.cores;
  if (options.poll) settings.poll = true;
  if (options.poll_cores) settings.poll_cores = *options.poll_cores;
  if (options.spin) settings.spin = *options.spin;
  if (options.nap) settings.nap = *options.nap;
  for (const int cpu : settings.poll_cores) {
    if (std::ranges::find(settings.cores, cpu) != settings.cores.end()) continue;
    return refuse(fmt::format("CPU {} is to poll but runs nothing: name it in --cores too", cpu));
  }
  if (options.log_level) settings.log_level = *options.log_level;
  return settings;
}

env::WorldOptions world_options(const Settings& settings) {
  env::WorldOptions options;
  if (!settings.cores.empty()) options.cpus = settings.cores;
  options.poll = settings.poll;
  options.poll_cpus = settings.poll_cores;
  options.spin = settings.spin;
  options.nap = settings.nap;
  options.handle_signals = true;
  return options;
}

}  // namespace cairn::config
