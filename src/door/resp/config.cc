// SPDX-License-Identifier: Apache-2.0
#include "door/resp/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"
#include "base/units.h"
#include "door/resp/command.h"
#include "door/resp/number.h"
#include "door/resp/wire_format.h"

namespace cairn::door::resp {

namespace {

// kFixed: cannot be set; kKept: without effect.
enum class Kind : uint8_t { kFixed, kKept, kYesNo, kNumber, kSize };

struct Known {
  std::string_view name;
  Kind kind;
  std::string_view value;
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

constexpr std::array kKnown = {
    Known{"active-expire-effort", Kind::kNumber, "1", 1, 10},
    Known{"activedefrag", Kind::kYesNo, "no"},
    Known{"appendfsync", Kind::kKept, "everysec"},
    Known{"appendonly", Kind::kYesNo, "no"},
    Known{"auto-aof-rewrite-percentage", Kind::kNumber, "100"},
    Known{"bind", Kind::kFixed, ""},
    Known{"busy-reply-threshold", Kind::kNumber, "5000"},
    Known{"client-output-buffer-limit", Kind::kKept,
          "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
    Known{"client-query-buffer-limit", Kind::kFixed, ""},
    Known{"cluster-enabled", Kind::kFixed, "no"},
    Known{"databases", Kind::kFixed, "1"},
    Known{"hash-max-listpack-entries", Kind::kNumber, "512"},
    Known{"hash-max-listpack-value", Kind::kSize, "64"},
    Known{"hash-max-ziplist-entries", Kind::kNumber, "512"},
    Known{"hash-max-ziplist-value", Kind::kSize, "64"},
    Known{"hz", Kind::kNumber, "10", 0, INT32_MAX},
    Known{"latency-monitor-threshold", Kind::kNumber, "0"},
    Known{"latency-tracking", Kind::kYesNo, "yes"},
    Known{"lazyfree-lazy-eviction", Kind::kYesNo, "no"},
    Known{"lazyfree-lazy-expire", Kind::kYesNo, "no"},
    Known{"lazyfree-lazy-server-del", Kind::kYesNo, "no"},
    Known{"lazyfree-lazy-user-del", Kind::kYesNo, "no"},
    Known{"lazyfree-lazy-user-flush", Kind::kYesNo, "no"},
    Known{"list-compress-depth", Kind::kNumber, "0"},
    Known{"list-max-listpack-size", Kind::kNumber, "-2", INT32_MIN, INT32_MAX},
    Known{"list-max-ziplist-size", Kind::kNumber, "-2", INT32_MIN, INT32_MAX},
    Known{"loglevel", Kind::kKept, "notice"},
    Known{"lua-time-limit", Kind::kNumber, "5000"},
    Known{"maxclients", Kind::kNumber, "", 1, UINT32_MAX},
    Known{"maxmemory", Kind::kFixed, "0"},
    Known{"maxmemory-clients", Kind::kSize, ""},
    Known{"maxmemory-policy", Kind::kFixed, "noeviction"},
    Known{"maxmemory-samples", Kind::kNumber, "5", 1, INT32_MAX},
    Known{"min-replicas-to-write", Kind::kFixed, "0"},
    Known{"notify-keyspace-events", Kind::kKept, ""},
    Known{"port", Kind::kFixed, "0"},
    Known{"proto-max-bulk-len", Kind::kFixed, ""},
    Known{"rdbcompression", Kind::kYesNo, "yes"},
    Known{"requirepass", Kind::kFixed, ""},
    Known{"save", Kind::kKept, ""},
    Known{"set-max-intset-entries", Kind::kNumber, "512"},
    Known{"slowlog-log-slower-than", Kind::kNumber, "10000", -1, INT64_MAX},
    Known{"slowlog-max-len", Kind::kNumber, "128"},
    Known{"stop-writes-on-bgsave-error", Kind::kYesNo, "yes"},
    Known{"tcp-keepalive", Kind::kNumber, "300", 0, INT32_MAX},
    Known{"timeout", Kind::kNumber, "", 0, INT32_MAX},
    Known{"zset-max-listpack-entries", Kind::kNumber, "128"},
    Known{"zset-max-listpack-value", Kind::kSize, "64"},
    Known{"zset-max-ziplist-entries", Kind::kNumber, "128"},
    Known{"zset-max-ziplist-value", Kind::kSize, "64"},
};

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr std::array kUnits = {
    Unit{"", 1},         Unit{"b", 1},      Unit{"k", 1000},         Unit{"kb", 1_KiB},
    Unit{"m", 1000'000}, Unit{"mb", 1_MiB}, Unit{"g", 1000'000'000}, Unit{"gb", 1_GiB},
};

std::optional<uint64_t> parse_size(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> number = parse_unsigned(text.substr(0, digits));
  for (const Unit& unit : kUnits) {
    uint64_t bytes = 0;
    if (!number || !is_word(text.substr(digits), unit.name)) continue;
    if (__builtin_mul_overflow(*number, unit.bytes, &bytes)) return std::nullopt;
    return bytes;
  }
  return std::nullopt;
}

const Known& known(std::string_view name) {
  const auto found = std::ranges::find(kKnown, name, &Known::name);
  CHECK(found != kKnown.end());
  return *found;
}

}  // namespace

Config::Config(const RespOptions& options)
    : clients_max_(options.clients_max),
      client_bytes_max_(options.client_bytes_max),
      idle_timeout_(options.idle_timeout) {
  for (const Known& each : kKnown) parameters_.push_back({each.name, std::string(each.value)});
  find("client-query-buffer-limit")->value = std::to_string(kRequestBytesMax);
  find("proto-max-bulk-len")->value = std::to_string(kBulkBytesMax);
  find("maxclients")->value = std::to_string(clients_max_);
  find("maxmemory-clients")->value = std::to_string(client_bytes_max_);
  find("timeout")->value = std::to_string(idle_timeout_ / 1_s);
  if (options.cluster) find("cluster-enabled")->value = "yes";
}

void Config::note_address(std::string_view host, uint16_t port) {
  find("bind")->value = host;
  find("port")->value = std::to_string(port);
}

Config::Parameter* Config::find(std::string_view name) {
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  return found != parameters_.end() ? &*found : nullptr;
}

bool Config::has(std::string_view name) const {
  return std::ranges::find(parameters_, name, &Parameter::name) != parameters_.end();
}

std::string Config::set(std::string_view name, std::string_view value) {
  Parameter* const parameter = find(name);
  CHECK(parameter != nullptr, "has() was asked first");
  const Known& its = known(name);
  std::string text(value);
  if (its.kind == Kind::kFixed) return "can't set immutable config";
  if (its.kind == Kind::kYesNo && !is_word(value, "yes") && !is_word(value, "no")) {
    return "argument must be 'yes' or 'no'";
  }
  if (its.kind == Kind::kNumber) {
    const std::optional<int64_t> number = parse_integer(value);
    if (!number) return "argument couldn't be parsed into an integer";
    if (*number < its.min || *number > its.max) {
      return fmt::format("argument must be between {} and {} inclusive", its.min, its.max);
    }
    if (name == "maxclients") clients_max_ = static_cast<uint32_t>(*number);
    if (name == "timeout") idle_timeout_ = 1_s * *number;
  }
  if (its.kind == Kind::kSize) {
    const std::optional<uint64_t> size = parse_size(value);
    if (!size && name == "maxmemory-clients") return "argument must be a memory or percent value";
    if (!size) return "argument must be a memory value";
    if (name == "maxmemory-clients") client_bytes_max_ = *size;
    text = std::to_string(*size);
  }
  parameter->value = std::move(text);
  return {};
}

}  // namespace cairn::door::resp
