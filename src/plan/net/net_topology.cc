// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_topology.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <vector>

#include "base/words.h"
#include "config/files.h"
#include "config/toml.h"
#include "plan/common/with_unit.h"

namespace cairn::plan {

namespace {

constexpr size_t kFileMax = 16 << 20;
constexpr std::array<Unit, 4> kRates = {{{"b/s", 1}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"Tb/s", 1e12}}};
constexpr std::array<Unit, 4> kDelays = {{{"ps", 1}, {"us", 1e6}, {"ns", 1e3}, {"ms", 1e9}}};

std::string at(config::Position place) {
  return fmt::format("line {}, column {}", place.line, place.column);
}

std::unexpected<Problem> refuse_at(config::Position place, const std::string& text) {
  return refuse(fmt::format("{}: {}", at(place), text));
}

class Reader {
 public:
  Attempt<net::Topology> read(const config::TomlValue::Table& root) {
    const config::TomlValue* links = nullptr;
    for (const config::TomlEntry& entry : root) {
      Attempt<void> taken;
      if (entry.key == "hosts") {
        taken = add_nodes(entry, false);
      } else if (entry.key == "switches") {
        taken = add_nodes(entry, true);
      } else if (entry.key == "link") {
        links = &entry.value;
      } else {
        taken = unknown(entry, {"hosts", "switches", "link"});
      }
      if (!taken) return std::unexpected(taken.error());
    }
    if (links != nullptr) {
      const auto* list = links->get<config::TomlValue::List>();
      if (list == nullptr) {
        return refuse_at(links->place, "link is a list of tables: begin each with [[link]]");
      }
      for (const config::TomlValue& link : *list) {
        if (Attempt<void> added = add_link(link); !added) return std::unexpected(added.error());
      }
    }
    if (const auto problem = topology_.problem()) return refuse(*problem);
    return std::move(topology_);
  }

 private:
  static Attempt<void> unknown(const config::TomlEntry& entry,
                               const std::vector<std::string>& known) {
    return refuse_at(entry.place, fmt::format("there is no key {}{}", in_quotes(entry.key),
                                              did_you_mean(entry.key, known)));
  }

  Attempt<void> add_nodes(const config::TomlEntry& entry, bool switches) {
    const auto* names = entry.value.get<config::TomlValue::List>();
    if (names == nullptr) {
      return refuse_at(entry.value.place, fmt::format("{} is a list of names", entry.key));
    }
    for (const config::TomlValue& name : *names) {
      const std::string* text = name.get<std::string>();
      if (text == nullptr || text->empty()) {
        return refuse_at(name.place, fmt::format("{} is a list of names", entry.key));
      }
      const uint32_t node = switches ? topology_.add_switch(*text) : topology_.add_host(*text);
      if (!nodes_.emplace(*text, node).second) {
        return refuse_at(name.place,
                         fmt::format("{} is already the name of another node", in_quotes(*text)));
      }
    }
    return {};
  }

  Attempt<void> add_link(const config::TomlValue& value) {
    const auto* table = value.get<config::TomlValue::Table>();
    if (table == nullptr) {
      return refuse_at(value.place, "a link is a table with between, rate and delay");
    }
    std::vector<uint32_t> ends;
    double rate = 0;
    double delay = -1;
    for (const config::TomlEntry& entry : *table) {
      Attempt<void> taken;
      if (entry.key == "between") {
        taken = ends_of(entry, ends);
      } else if (entry.key == "rate") {
        taken = number(entry, kRates, rate);
      } else if (entry.key == "delay") {
        taken = number(entry, kDelays, delay);
      } else {
        taken = unknown(entry, {"between", "rate", "delay"});
      }
      if (!taken) return taken;
    }
    if (ends.empty() || rate == 0 || delay < 0) {
      return refuse_at(value.place, fmt::format("this link has no {}", ends.empty() ? "between"
                                                                       : rate == 0  ? "rate"
                                                                                    : "delay"));
    }
    // What is too large for a link is refused with the topology, by the names of its ends.
    topology_.connect(ends[0], ends[1],
                      {.bits_per_s = static_cast<uint64_t>(std::min(rate, 1e18)),
                       .delay = static_cast<net::Picos>(std::min(delay, 1e18))});
    return {};
  }

  Attempt<void> ends_of(const config::TomlEntry& entry, std::vector<uint32_t>& ends) {
    const auto* names = entry.value.get<config::TomlValue::List>();
    if (names == nullptr || names->size() != 2) {
      return refuse_at(entry.value.place, "between lists two names");
    }
    for (const config::TomlValue& name : *names) {
      const std::string* text = name.get<std::string>();
      const auto found = text == nullptr ? nodes_.end() : nodes_.find(*text);
      if (found == nodes_.end()) {
        std::vector<std::string> known;
        for (const auto& [node, index] : nodes_) known.push_back(node);
        return refuse_at(name.place,
                         fmt::format("between: there is no host or switch {}{}",
                                     text == nullptr ? "here" : in_quotes(*text),
                                     text == nullptr ? "" : did_you_mean(*text, known)));
      }
      ends.push_back(found->second);
    }
    return {};
  }

  template <size_t N>
  static Attempt<void> number(const config::TomlEntry& entry, const std::array<Unit, N>& units,
                              double& into) {
    const Attempt<double> read = with_unit(entry.value, units);
    if (!read) {
      return refuse_at(entry.value.place, fmt::format("{} {}", entry.key, read.error().text));
    }
    into = *read;
    return {};
  }

  net::Topology topology_;
  std::map<std::string, uint32_t> nodes_;
};

}  // namespace

Attempt<net::Topology> parse_topology(std::string_view text) {
  const std::expected<config::TomlValue, config::TomlError> root = config::parse_toml(text);
  if (!root) return refuse_at(root.error().place, root.error().text);
  return Reader().read(*root->get<config::TomlValue::Table>());
}

Attempt<net::Topology> load_topology(const std::string& name_or_path) {
  if (!name_or_path.contains('/') && !name_or_path.ends_with(".toml")) {
    std::expected<net::Topology, std::string> named = net::named_topology(name_or_path);
    if (named) return std::move(*named);
    return refuse(named.error() + "; or give the path of a TOML file");
  }
  const Attempt<std::string> text = config::read_file(name_or_path, kFileMax);
  if (!text) return std::unexpected(text.error());
  Attempt<net::Topology> topology = parse_topology(*text);
  if (!topology) {
    return refuse(fmt::format("{}: {}", in_quotes(name_or_path), topology.error().text));
  }
  return topology;
}

}  // namespace cairn::plan
