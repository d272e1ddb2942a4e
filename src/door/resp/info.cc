// SPDX-License-Identifier: Apache-2.0
#include "door/resp/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "door/resp/identity.h"

namespace cairn::door::resp {

namespace {

void line(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("{}:{}\r\n", name, value);
}

void line(std::string& text, std::string_view name, uint64_t value) {
  line(text, name, std::to_string(value));
}

std::vector<std::pair<std::string, uint64_t>> counters_of(const DoorState& door) {
  if (!door.options.cluster || !door.options.cluster->counters) return {};
  return door.options.cluster->counters();
}

uint64_t uptime_s(const DoorState& door) {
  return static_cast<uint64_t>((door.env.now() - door.since) / 1_s);
}

void tell_server(const DoorState& door, std::string& text) {
  line(text, "redis_version", kRedisVersion);
  line(text, "redis_mode", door.options.cluster ? "cluster" : "standalone");
  line(text, "cairn_version", door.options.version);
  line(text, "tcp_port", door.port);
  line(text, "server_time_usec", static_cast<uint64_t>(door.env.wall_now().ns / 1000));
  line(text, "uptime_in_seconds", uptime_s(door));
  line(text, "uptime_in_days", uptime_s(door) / 86400);
}

void tell_clients(const DoorState& door, std::string& text) {
  line(text, "connected_clients", door.client_count);
  line(text, "maxclients", door.config.clients_max());
  line(text, "blocked_clients", uint64_t{0});
}

void tell_memory(const DoorState& door, std::string& text) {
  line(text, "mem_clients_normal", door.client_bytes);
  line(text, "maxmemory", uint64_t{0});
  line(text, "maxmemory_policy", "noeviction");
}

void tell_persistence(const DoorState& door, std::string& text) {
  line(text, "loading", uint64_t{0});
  line(text, "keys_are_kept_in", door.options.keeper);
  line(text, "durability", door.options.durability);
}

void tell_stats(const DoorState& door, std::string& text) {
  const DoorStats& stats = door.stats;
  line(text, "total_connections_received", stats.connections_received);
  line(text, "total_commands_processed", stats.commands);
  line(text, "total_net_input_bytes", stats.bytes_in);
  line(text, "total_net_output_bytes", stats.bytes_out);
  line(text, "rejected_connections", stats.connections_rejected);
  line(text, "evicted_keys", uint64_t{0});
  line(text, "evicted_clients", stats.clients_evicted);
  line(text, "keyspace_hits", stats.hits);
  line(text, "keyspace_misses", stats.misses);
  line(text, "total_error_replies", stats.errors);
}

void tell_replication(const DoorState&, std::string& text) {
  line(text, "role", "master");
  line(text, "connected_slaves", uint64_t{0});
}

void tell_commandstats(const DoorState& door, std::string& text) {
  for (size_t i = 0; i < door.calls.size(); ++i) {
    if (door.calls[i] == 0) continue;
    text += fmt::format("cmdstat_{}:calls={}\r\n", door.commands.all()[i]->name, door.calls[i]);
  }
}

void tell_cluster(const DoorState& door, std::string& text) {
  line(text, "cluster_enabled", uint64_t{door.options.cluster ? 1U : 0U});
  for (const auto& [name, value] : counters_of(door)) line(text, "cluster_" + name, value);
}

void tell_keyspace(const DoorState& door, std::string& text) {
  // Those of a cluster are counted when somebody asks for that (DBSIZE).
  if (door.options.cluster || door.keys.size() == 0) return;
  line(text, "db0", fmt::format("keys={},expires=0,avg_ttl=0", door.keys.size()));
}

struct Section {
  std::string_view name;
  std::string_view title;
  void (*tell)(const DoorState&, std::string&);
};

constexpr std::array kSections = {
    Section{"server", "Server", tell_server},
    Section{"clients", "Clients", tell_clients},
    Section{"memory", "Memory", tell_memory},
    Section{"persistence", "Persistence", tell_persistence},
    Section{"stats", "Stats", tell_stats},
    Section{"replication", "Replication", tell_replication},
    Section{"commandstats", "Commandstats", tell_commandstats},
    Section{"cluster", "Cluster", tell_cluster},
    Section{"keyspace", "Keyspace", tell_keyspace},
};

bool is_asked(std::span<const std::string_view> asked, std::string_view section) {
  const bool is_default = section != "commandstats";
  if (asked.empty()) return is_default;
  return std::ranges::any_of(asked, [&](std::string_view each) {
    if (is_word(each, "all") || is_word(each, "everything")) return true;
    return is_word(each, "default") ? is_default : is_word(each, section);
  });
}

}  // namespace

std::string info_text(const DoorState& door, std::span<const std::string_view> sections) {
  std::string text;
  for (const Section& section : kSections) {
    if (!is_asked(sections, section.name)) continue;
    if (!text.empty()) text += "\r\n";
    text += fmt::format("# {}\r\n", section.title);
    section.tell(door, text);
  }
  return text;
}

void add_metrics(MetricsText& text, const DoorState& door) {
  using Type = MetricsText::Type;
  const DoorStats& stats = door.stats;
  const auto one = [&](Type type, std::string_view name, std::string_view help, uint64_t value) {
    text.family(type, name, help);
    text.sample({}, value);
  };
  if (!door.options.cluster) {
    one(Type::kGauge, "cairn_kv_keys", "Keys that are there.", door.keys.size());
  }
  one(Type::kGauge, "cairn_kv_clients", "Clients that are connected.", door.client_count);
  one(Type::kGauge, "cairn_kv_client_bytes", "Memory of requests and replies.", door.client_bytes);
  one(Type::kCounter, "cairn_kv_connections_total", "Connections that came in.",
      stats.connections_received);
  one(Type::kCounter, "cairn_kv_connections_refused_total", "Connections without a place.",
      stats.connections_rejected);
  one(Type::kCounter, "cairn_kv_clients_evicted_total", "Clients that had too much memory.",
      stats.clients_evicted);
  one(Type::kCounter, "cairn_kv_received_bytes_total", "Bytes of requests.", stats.bytes_in);
  one(Type::kCounter, "cairn_kv_sent_bytes_total", "Bytes of replies.", stats.bytes_out);
  one(Type::kCounter, "cairn_kv_hits_total", "Keys that were read and there.", stats.hits);
  one(Type::kCounter, "cairn_kv_misses_total", "Keys that were read and not there.", stats.misses);
  one(Type::kCounter, "cairn_kv_errors_total", "Replies that are errors.", stats.errors);
  for (const auto& [name, value] : counters_of(door)) {
    one(Type::kCounter, "cairn_kv_cluster_" + name + "_total", "Of this node of a cluster.", value);
  }
  text.family(Type::kCounter, "cairn_kv_commands_total", "Commands that were served.");
  for (size_t i = 0; i < door.calls.size(); ++i) {
    if (door.calls[i] == 0) continue;
    text.sample({{"command", door.commands.all()[i]->name}}, door.calls[i]);
  }
  text.family(Type::kHistogram, "cairn_kv_command_duration_seconds",
              "How long commands took, from when each began to its reply.");
  text.histogram({}, stats.latency);
}

std::string metrics_text(const DoorState& door) {
  MetricsText text;
  add_metrics(text, door);
  return text.text();
}

}  // namespace cairn::door::resp
