// SPDX-License-Identifier: Apache-2.0
// What every long-running command can be told, in a file and on the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "config/config.h"
#include "env/world.h"

namespace cairn::config {

enum class IoChoice : uint8_t { kAuto, kUring, kEpoll };
enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError };

std::string_view name(IoChoice choice);
std::string_view name(LogLevel level);

struct Settings {
  IoChoice io = IoChoice::kAuto;
  std::vector<int> cores;  // CPUs to pin to, one reactor each; none: one reactor, unpinned
  bool poll = false;
  std::vector<int> poll_cores;  // of `cores`
  Duration spin{0};
  std::optional<Duration> nap;  // none: found out by each core
  LogLevel log_level = LogLevel::kInfo;
};

// What was said on the command line; it wins over the file.
struct SettingsOptions {
  std::optional<std::string> config;
  std::optional<IoChoice> io;
  std::optional<std::vector<int>> cores;
  bool poll = false;
  std::optional<std::vector<int>> poll_cores;
  std::optional<Duration> spin;
  // The outer: whether it was said.
  std::optional<std::optional<Duration>> nap;
  std::optional<LogLevel> log_level;
};

inline constexpr int kCpuMax = 1023;

// The keys of a configuration file that end in `settings`, which must outlive the section.
Section settings_keys(Settings& settings);

// Each parses one option's text; the Problem says what is allowed, without the option's name.
Attempt<IoChoice> parse_io(std::string_view text);
Attempt<LogLevel> parse_log_level(std::string_view text);
// "auto" (none), "never" (zero) or a time.
Attempt<std::optional<Duration>> parse_nap(std::string_view text);
// "0,1" or "2-5,8": CPUs in the order given, none twice.
Attempt<std::vector<int>> parse_cores(std::string_view text);

// The file, if any, and over it the command line. The Problem names file, line and column. `more`
// declares what else the file may have.
Attempt<Settings> resolve(const SettingsOptions& options,
                          const std::function<void(Section&)>& more = {});

// What a world is made from.
env::WorldOptions world_options(const Settings& settings);

}  // namespace cairn::config
