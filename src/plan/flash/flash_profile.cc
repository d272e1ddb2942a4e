// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_profile.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/words.h"
#include "config/files.h"
#include "config/toml.h"
#include "plan/common/with_unit.h"
#include "plan/flash/flash_profiles.h"

namespace cairn::plan {

namespace {

using flash::Parameters;

constexpr size_t kProfileMax = 1 << 20;

constexpr std::array<Unit, 4> kTimes = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 4> kSizes = {
    {{"B", 1}, {"KiB", 1024}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1024 * 1024}}};

using Take = std::function<Attempt<void>(const config::TomlValue&)>;

template <class T>
Take count(T& into) {
  return [&into](const config::TomlValue& value) -> Attempt<void> {
    const int64_t* number = value.get<int64_t>();
    if (number == nullptr || *number < 0 || *number > INT32_MAX) {
      return refuse(fmt::format("is a whole number from 0 to {}", INT32_MAX));
    }
    into = static_cast<T>(*number);
    return {};
  };
}

Take fraction(double& into, double max) {
  return [&into, max](const config::TomlValue& value) -> Attempt<void> {
    const double* real = value.get<double>();
    const int64_t* whole = value.get<int64_t>();
    const double number = real != nullptr    ? *real
                          : whole != nullptr ? static_cast<double>(*whole)
                                             : -1;
    if (!(number >= 0 && number <= max))
      return refuse(fmt::format("is a number from 0 to {}", max));
    into = number;
    return {};
  };
}

Take flag(bool& into) {
  return [&into](const config::TomlValue& value) -> Attempt<void> {
    const bool* given = value.get<bool>();
    if (given == nullptr) return refuse("is true or false");
    into = *given;
    return {};
  };
}

Take time(flash::Nanos& into) {
  return [&into](const config::TomlValue& value) -> Attempt<void> {
    const Attempt<double> ns = with_unit(value, kTimes);
    if (!ns) return std::unexpected(ns.error());
    into = static_cast<flash::Nanos>(std::min(*ns, 1e15));
    return {};
  };
}

template <class T>
Take size(T& into) {
  return [&into](const config::TomlValue& value) -> Attempt<void> {
    const Attempt<double> bytes = with_unit(value, kSizes);
    if (!bytes) return std::unexpected(bytes.error());
    if (*bytes > static_cast<double>(std::numeric_limits<T>::max())) return refuse("is too large");
    into = static_cast<T>(*bytes);
    return {};
  };
}

// One time for all page types, or one for each, lower bit first.
Take times(std::array<flash::Nanos, 4>& into) {
  return [&into](const config::TomlValue& value) -> Attempt<void> {
    const auto* list = value.get<config::TomlValue::List>();
    if (list == nullptr) {
      flash::Nanos one = 0;
      if (Attempt<void> taken = time(one)(value); !taken) return taken;
      into.fill(one);
      return {};
    }
    if (list->empty() || list->size() > 4) return refuse("lists one to four times");
    for (size_t i = 0; i < 4; ++i) {
      if (i < list->size()) {
        if (Attempt<void> taken = time(into[i])((*list)[i]); !taken) return taken;
      } else {
        into[i] = into[i - 1];
      }
    }
    return {};
  };
}

template <class T>
Take word(T& into, std::map<std::string, T> choices) {
  return [&into, choices = std::move(choices)](const config::TomlValue& value) -> Attempt<void> {
    std::vector<std::string> known;
    for (const auto& [name, meaning] : choices) known.push_back(name);
    const std::string* text = value.get<std::string>();
    if (text != nullptr && choices.contains(*text)) {
      into = choices.at(*text);
      return {};
    }
    return refuse(fmt::format("is one of {}", comma_list(known)));
  };
}

Take spread(Parameters& p) {
  return [&p](const config::TomlValue& value) -> Attempt<void> {
    const std::string* text = value.get<std::string>();
    if (text != nullptr && *text == "dynamic") {
      p.dynamic_spread = true;
      return {};
    }
    const auto order = text == nullptr ? std::nullopt : flash::parse_spread(*text);
    if (!order) return refuse("is \"dynamic\" or an order of C, W, D and P like \"CWDP\"");
    p.spread = *order;
    return {};
  };
}

// Keys are those of Parameters, without unit, so that check() can name them.
std::map<std::string, Take> keys_of(Parameters& p, std::string& name) {
  using flash::CacheMode;
  using flash::GcPolicy;
  using flash::Technology;
  return {
      {"name",
       [&name](const config::TomlValue& value) -> Attempt<void> {
         const std::string* text = value.get<std::string>();
         if (text == nullptr) return refuse("is a text");
         name = *text;
         return {};
       }},
      {"compat",
       [&p](const config::TomlValue& value) -> Attempt<void> {
         const std::string* text = value.get<std::string>();
         if (text == nullptr || (*text != "mqsim" && *text != "none")) {
           return refuse("is \"mqsim\" or \"none\"");
         }
         p.mqsim = *text == "mqsim";
         return {};
       }},
      {"lane_gb_per_s", fraction(p.lane_gb_per_s, 64)},
      {"lanes", count(p.lanes)},
      {"queue_depth", count(p.queue_depth)},
      {"queue_fetch", count(p.queue_fetch)},
      {"command_ns", time(p.command_ns)},
      {"cache_bytes", size(p.cache_bytes)},
      {"cache", word<CacheMode>(p.streams[0].cache, {{"off", CacheMode::kOff},
                                                     {"write", CacheMode::kWrite},
                                                     {"read", CacheMode::kRead},
                                                     {"read-write", CacheMode::kReadWrite}})},
      {"cache_protected", flag(p.cache_protected)},
      {"dram_row_bytes", size(p.dram_row_bytes)},
      {"dram_mt_per_s", count(p.dram_mt_per_s)},
      {"dram_burst_bytes", size(p.dram_burst_bytes)},
      {"dram_trcd_ns", time(p.dram_trcd_ns)},
      {"dram_tcl_ns", time(p.dram_tcl_ns)},
      {"dram_trp_ns", time(p.dram_trp_ns)},
      {"write_back_pages", count(p.write_back_pages)},
      {"cache_evicts_dirty_only", flag(p.cache_evicts_dirty_only)},
      {"ideal_mapping", flag(p.ideal_mapping)},
      {"mapping_cache_bytes", size(p.mapping_cache_bytes)},
      {"spread", spread(p)},
      {"over_provisioning", fraction(p.over_provisioning, 1)},
      {"gc_policy", word<GcPolicy>(p.gc_policy, {{"greedy", GcPolicy::kGreedy},
                                                 {"rga", GcPolicy::kRga},
                                                 {"random", GcPolicy::kRandom},
                                                 {"random-p", GcPolicy::kRandomP},
                                                 {"random-pp", GcPolicy::kRandomPp},
                                                 {"fifo", GcPolicy::kFifo}})},
      {"gc_threshold", fraction(p.gc_threshold, 1)},
      {"gc_hard_threshold", fraction(p.gc_hard_threshold, 1)},
      {"gc_preemptible", flag(p.gc_preemptible)},
      {"copyback", flag(p.copyback)},
      {"dynamic_wear_levelling", flag(p.dynamic_wear_levelling)},
      {"static_wear_levelling", flag(p.static_wear_levelling)},
      {"static_wear_threshold", count(p.static_wear_threshold)},
      {"pe_cycles", count(p.pe_cycles)},
      {"suspend_program", flag(p.suspend_program)},
      {"suspend_erase", flag(p.suspend_erase)},
      {"suspend_program_ns", time(p.suspend_program_ns)},
      {"suspend_erase_ns", time(p.suspend_erase_ns)},
      {"worth_suspending_program_ns", time(p.worth_suspending_program_ns)},
      {"worth_suspending_erase_ns", time(p.worth_suspending_erase_ns)},
      {"channels", count(p.channels)},
      {"channel_width_bytes", size(p.channel_width_bytes)},
      {"channel_mt_per_s", count(p.channel_mt_per_s)},
      {"chips_per_channel", count(p.chips_per_channel)},
      {"dies_per_chip", count(p.dies_per_chip)},
      {"planes_per_die", count(p.planes_per_die)},
      {"blocks_per_plane", count(p.blocks_per_plane)},
      {"pages_per_block", count(p.pages_per_block)},
      {"page_bytes", size(p.page_bytes)},
      {"technology", word<Technology>(p.technology, {{"slc", Technology::kSlc},
                                                     {"mlc", Technology::kMlc},
                                                     {"tlc", Technology::kTlc},
                                                     {"qlc", Technology::kQlc}})},
      {"read_ns", times(p.read_ns)},
      {"program_ns", times(p.program_ns)},
      {"erase_ns", time(p.erase_ns)},
      {"seed", count(p.seed)},
  };
}

std::string at(config::Position place) {
  return fmt::format("line {}, column {}", place.line, place.column);
}

// A key without the unit of its member: "read" and "read_ns" are the same, and so on.
std::string member_of(const std::string& key, const std::map<std::string, Take>& keys) {
  for (const char* unit : {"", "_ns", "_bytes"}) {
    if (keys.contains(key + unit)) return key + unit;
  }
  return {};
}

}  // namespace

Attempt<flash::Parameters> parse_flash_profile(std::string_view text) {
  const std::expected<config::TomlValue, config::TomlError> root = config::parse_toml(text);
  if (!root) return refuse(fmt::format("{}: {}", at(root.error().place), root.error().text));
  const auto* table = root->get<config::TomlValue::Table>();
  Parameters p;
  std::string name;
  const std::map<std::string, Take> keys = keys_of(p, name);
  std::map<std::string, config::Position> places;
  for (const config::TomlEntry& entry : *table) {
    const std::string member = member_of(entry.key, keys);
    if (member.empty()) {
      std::vector<std::string> known;
      for (const auto& [key, take] : keys) known.push_back(key);
      return refuse(fmt::format("{}: there is no key {}{}", at(entry.place), in_quotes(entry.key),
                                did_you_mean(entry.key, known)));
    }
    if (const Attempt<void> taken = keys.at(member)(entry.value); !taken) {
      return refuse(fmt::format("{}: {} {}", at(entry.value.place), entry.key, taken.error().text));
    }
    places[member] = entry.place;
  }
  if (const auto problem = flash::check(p)) {
    std::vector<std::string> involved = problem->others;
    involved.insert(involved.begin(), problem->member);
    std::string where;
    for (const std::string& member : involved) {
      const auto place = places.find(member);
      if (place == places.end()) continue;
      where = at(place->second) + ": ";
      if (member != problem->member) where += fmt::format("with this {} ", member);
      break;
    }
    return refuse(fmt::format("{}{} {}", where, problem->member, problem->text));
  }
  return p;
}

Attempt<flash::Parameters> load_flash_profile(const std::string& name_or_path) {
  for (const FlashProfile& profile : kFlashProfiles) {
    if (profile.name == name_or_path) return parse_flash_profile(profile.text);
  }
  const bool path = name_or_path.contains('/') || name_or_path.contains('.');
  if (!path) {
    const std::vector<std::string> names = flash_profile_names();
    return refuse(fmt::format("there is no profile {}{}; there are {}, or give the path of a file",
                              in_quotes(name_or_path), did_you_mean(name_or_path, names),
                              comma_list(names)));
  }
  const Attempt<std::string> text = config::read_file(name_or_path, kProfileMax);
  if (!text) return std::unexpected(text.error());
  Attempt<flash::Parameters> p = parse_flash_profile(*text);
  if (!p) return refuse(fmt::format("{}: {}", in_quotes(name_or_path), p.error().text));
  return p;
}

std::vector<std::string> flash_profile_names() {
  std::vector<std::string> names;
  for (const FlashProfile& profile : kFlashProfiles) names.emplace_back(profile.name);
  return names;
}

}  // namespace cairn::plan
