// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/percent.h"
#include "base/units.h"
#include "base/uuid.h"
#include "fabric/host/uri_duration.h"
#include "nvme/format/command_format.h"
#include "nvme/format/nqn.h"

namespace cairn::fabric {

namespace {

using Problem = std::unexpected<std::string>;

constexpr std::string_view kScheme = "nvme-tcp://";
constexpr std::string_view kLanePrefix = "lane.";

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// --- parts --------------------------------------------------------------------------------------

std::expected<env::Address, std::string> parse_host(std::string_view text, uint16_t port) {
  std::string host(text);
  if (host == "localhost" || host.starts_with("localhost:")) host.replace(0, 9, "127.0.0.1");
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  if (!has_port) host += fmt::format(":{}", port);
  Result<env::Address> address = env::Address::parse(host);
  if (!address || address->family == env::Address::Family::kLocal) {
    return Problem(fmt::format(
        "'{}' is not HOST or HOST:PORT with an IP address (IPv6 in brackets; names are not looked "
        "up)",
        text));
  }
  if (address->port == 0) return Problem(fmt::format("'{}' has port 0", text));
  return *address;
}

std::expected<std::string, std::string> parse_nqn(std::string_view text, const char* what) {
  std::optional<std::string> nqn = percent_decode(text);
  if (!nqn) return Problem(fmt::format("'{}' has a '%' without two hexadecimal digits", text));
  const bool sound =
      !nqn->empty() && nqn->size() <= nvme::kNqnMax && nqn->find('\0') == std::string::npos;
  if (!sound) {
    return Problem(
        fmt::format("'{}' is no {}: 1 to {} bytes, none of them zero", text, what, nvme::kNqnMax));
  }
  return std::move(*nqn);
}

// --- options ------------------------------------------------------------------------------------

struct Option {
  std::string_view key;
  std::string_view value;
};

Problem out_of_range(const Option& option, uint64_t low, uint64_t high) {
  return Problem(
      fmt::format("{}='{}' is not a number from {} to {}", option.key, option.value, low, high));
}

// `to` is a number or an optional one.
template <class T>
std::expected<void, std::string> set_number(const Option& option, T& to, uint64_t low,
                                            uint64_t high) {
  using Number = typename decltype(std::optional(to))::value_type;
  const auto number = parse_number(option.value);
  if (!number || *number < low || *number > high) return out_of_range(option, low, high);
  to = static_cast<Number>(*number);
  return {};
}

std::expected<void, std::string> set_switch(const Option& option, bool& to) {
  if (option.value != "on" && option.value != "off") {
    return Problem(fmt::format("{}='{}' is neither 'on' nor 'off'", option.key, option.value));
  }
  to = option.value == "on";
  return {};
}

std::expected<void, std::string> set_file(const Option& option, std::string& to) {
  std::optional<std::string> name = percent_decode(option.value);
  if (!name || name->empty() || name->find('\0') != std::string::npos) {
    return Problem(fmt::format("{}='{}' is not the name of a file", option.key, option.value));
  }
  // A key in the URI would be seen by everybody who lists processes.
  if (name->starts_with("DHHC-1:") || name->starts_with("NVMeTLSkey-1:")) {
    return Problem(
        fmt::format("{} takes the name of a file with the key, not the key itself: put "
                    "the key into a file, and make another, for this one is known now",
                    option.key));
  }
  to = std::move(*name);
  return {};
}

std::expected<void, std::string> set_tls(const Option& option, bool& to) {
  if (option.value != "required" && option.value != "refused") {
    return Problem(fmt::format("tls='{}' is neither 'required' nor 'refused'", option.value));
  }
  to = option.value == "required";
  return {};
}

std::expected<void, std::string> set_duration(const Option& option, const DurationOption& which,
                                              HostOptions& options) {
  if (which.may_be_never && option.value == "never") {
    options.*which.member = Duration::max();
    return {};
  }
  const auto duration = parse_uri_duration(option.value);
  if (!duration || (*duration == 0_s && !which.may_be_zero)) {
    return Problem(fmt::format("{}='{}' is not a time such as '500ms', '5s' or '2m'{}", option.key,
                               option.value, which.may_be_zero ? ", or '0'" : " above 0"));
  }
  options.*which.member = *duration;
  return {};
}

// `to` is a mode or an optional one.
template <class T>
std::expected<void, std::string> set_batching(const Option& option, T& to) {
  const std::optional<DoorbellOptions::Mode> mode = parse_batching(option.value);
  if (!mode) {
    return Problem(
        fmt::format("{}='{}' is none of 'off', 'fixed' and 'adaptive'", option.key, option.value));
  }
  const DoorbellOptions::Mode chosen = *mode;
  to = chosen;
  return {};
}

template <class T>
std::expected<void, std::string> set_delay(const Option& option, T& to) {
  const std::optional<Duration> delay = parse_uri_duration(option.value);
  if (!delay) {
    return Problem(fmt::format("{}='{}' is not a time such as '50us'", option.key, option.value));
  }
  to = *delay;
  return {};
}

// lane.N.batching and the like.
std::expected<void, std::string> set_lane(const Option& option, HostOptions& options) {
  const size_t dot = option.key.find('.', kLanePrefix.size());
  const auto lane = parse_number(option.key.substr(
      kLanePrefix.size(), dot == std::string_view::npos ? 0 : dot - kLanePrefix.size()));
  if (!lane || *lane < 1 || *lane > kHostQueuesMax) {
    return Problem(
        fmt::format("'{}' is not lane.N.OPTION with N from 1 to {}", option.key, kHostQueuesMax));
  }
  LaneOptions& own = options.lanes[static_cast<uint16_t>(*lane)];
  const std::string_view key = option.key.substr(dot + 1);
  if (key == "batching") return set_batching(option, own.batching);
  if (key == "caravan") return set_number(option, own.caravan, 1, kHostDepthMax);
  if (key == "caravan_bytes") return set_number(option, own.caravan_bytes, 1, kHostTransferMax);
  if (key == "doorbell") return set_delay(option, own.doorbell);
  if (key == "urgent") return set_switch(option, own.urgent);
  return Problem(fmt::format(
      "'{}' is none of batching, caravan, caravan_bytes, doorbell and urgent, which lanes have",
      key));
}

std::expected<void, std::string> set_option(const Option& option, uint16_t port, Uri& uri) {
  HostOptions& options = uri.options;
  const std::string_view key = option.key;
  if (key == "nsid") return set_number(option, uri.nsid, 1, nvme::kBroadcastNsid - 1);
  if (key == "uuid") {
    const auto id = parse_uuid(option.value);
    if (!id || *id == Uuid{}) {
      return Problem(fmt::format("uuid='{}' is not the UUID of a namespace", option.value));
    }
    uri.uuid = *id;
    return {};
  }
  if (key == "queues") return set_number(option, options.queues, 1, kHostQueuesMax);
  if (key == "depth") return set_number(option, options.depth, 1, kHostDepthMax);
  if (key == "batching") return set_batching(option, options.doorbell.mode);
  if (key == "caravan") return set_number(option, options.doorbell.count, 1, kHostDepthMax);
  if (key == "caravan_bytes") {
    return set_number(option, options.doorbell.bytes, 1, kHostTransferMax);
  }
  if (key == "doorbell") return set_delay(option, options.doorbell.delay);
  if (key.starts_with(kLanePrefix)) return set_lane(option, options);
  if (key == "retries") return set_number(option, options.retries_max, 0, 1000);
  if (key == "hdgst") return set_switch(option, options.header_digest);
  if (key == "ddgst") return set_switch(option, options.data_digest);
  if (key == "hostnqn") {
    auto nqn = parse_nqn(option.value, "host NQN");
    if (!nqn) return Problem(nqn.error());
    options.host_nqn = std::move(*nqn);
    return {};
  }
  if (key == "tls") return set_tls(option, options.tls);
  if (key == "tls_key") return set_file(option, options.tls_key_file);
  if (key == "tls_identity") return set_number(option, options.tls_identity, 0, 1);
  if (key == "dhchap_key") return set_file(option, options.key_file);
  if (key == "dhchap_ctrl_key") return set_file(option, options.controller_key_file);
  if (key == "hostid") {
    const auto id = parse_uuid(option.value);
    if (!id) return Problem(fmt::format("hostid='{}' is not a UUID", option.value));
    options.host_id = *id;
    return {};
  }
  if (key == "path") {
    auto address = parse_host(option.value, port);
    if (!address) return Problem(address.error());
    if (uri.paths.size() == kHostPathsMax) {
      return Problem(fmt::format("there are more than {} paths", kHostPathsMax));
    }
    uri.paths.push_back(std::move(*address));
    return {};
  }
  for (const DurationOption& each : kDurations) {
    if (each.name == key) return set_duration(option, each, options);
  }
  return Problem(fmt::format("'{}' is not an option of an nvme-tcp URI", key));
}

}  // namespace

bool Uri::is_discovery() const { return nqn == nvme::kDiscoveryNqn; }

std::expected<Uri, std::string> Uri::parse(std::string_view text) {
  if (!text.starts_with(kScheme)) {
    return Problem(fmt::format("'{}' does not begin with '{}'", text, kScheme));
  }
  std::string_view rest = text.substr(kScheme.size());
  std::string_view query;
  if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  const size_t slash = rest.find('/');
  const std::string_view name =
      slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  const uint16_t port = name.empty() ? kDiscoveryPort : kNvmePort;

  Uri uri;
  auto address = parse_host(rest.substr(0, slash), port);
  if (!address) return Problem(address.error());
  uri.paths.push_back(std::move(*address));
  uri.nqn = nvme::kDiscoveryNqn;
  if (!name.empty()) {
    auto nqn = parse_nqn(name, "NQN");
    if (!nqn) return Problem(nqn.error());
    uri.nqn = std::move(*nqn);
  }
  bool has_nsid = false;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Problem(fmt::format("'{}' is not KEY=VALUE", pair));
    }
    const Option option{.key = pair.substr(0, equals), .value = pair.substr(equals + 1)};
    if (auto set = set_option(option, port, uri); !set) return Problem(set.error());
    has_nsid = has_nsid || option.key == "nsid";
  }
  if (has_nsid && uri.uuid != Uuid{}) {
    return Problem("nsid and uuid both say which namespace is meant: leave one out");
  }
  if (!uri.options.controller_key_file.empty() && uri.options.key_file.empty()) {
    return Problem(
        "dhchap_ctrl_key needs dhchap_key too: a target proves itself to a host that does");
  }
  if (!uri.options.lanes.empty() && uri.options.lanes.rbegin()->first > uri.options.queues) {
    return Problem(fmt::format("lane {} is set, and there are only {}: write queues={}",
                               uri.options.lanes.rbegin()->first, uri.options.queues,
                               uri.options.lanes.rbegin()->first));
  }
  if (uri.options.tls != !uri.options.tls_key_file.empty()) {
    return Problem(uri.options.tls
                       ? "tls=required needs tls_key=FILE too: 'cairn key new tls' makes one"
                       : "tls_key is used with tls=required alone: add it, or leave the key out");
  }
  return uri;
}

std::string Uri::text() const {
  const HostOptions defaults;
  std::string query;
  const auto add = [&](std::string_view key, std::string_view value) {
    query += fmt::format("{}{}={}", query.empty() ? '?' : '&', key, value);
  };
  if (uuid != Uuid{}) {
    add("uuid", uuid_text(uuid));
  } else if (!is_discovery() || nsid != 1) {
    add("nsid", fmt::to_string(nsid));
  }
  for (size_t i = 1; i < paths.size(); ++i) add("path", paths[i].text());
  if (!options.host_nqn.empty()) add("hostnqn", percent_encode(options.host_nqn));
  if (options.host_id != defaults.host_id) add("hostid", uuid_text(options.host_id));
  if (!options.key_file.empty()) add("dhchap_key", percent_encode(options.key_file));
  if (!options.controller_key_file.empty()) {
    add("dhchap_ctrl_key", percent_encode(options.controller_key_file));
  }
  if (options.tls) add("tls", "required");
  if (!options.tls_key_file.empty()) add("tls_key", percent_encode(options.tls_key_file));
  if (options.tls_identity != defaults.tls_identity) {
    add("tls_identity", fmt::to_string(static_cast<int>(options.tls_identity)));
  }
  if (options.header_digest) add("hdgst", "on");
  if (options.data_digest) add("ddgst", "on");
  if (options.queues != defaults.queues) add("queues", fmt::to_string(options.queues));
  if (options.depth != defaults.depth) add("depth", fmt::to_string(options.depth));
  const DoorbellOptions& doorbell = options.doorbell;
  const DoorbellOptions& usual = defaults.doorbell;
  if (doorbell.mode != usual.mode) add("batching", std::string(name(doorbell.mode)));
  if (doorbell.count != usual.count) add("caravan", fmt::to_string(doorbell.count));
  if (doorbell.bytes != usual.bytes) add("caravan_bytes", fmt::to_string(doorbell.bytes));
  if (doorbell.delay != usual.delay) add("doorbell", uri_duration_text(doorbell.delay));
  for (const auto& [id, own] : options.lanes) {
    const auto add_own = [&](std::string_view key, std::string_view value) {
      add(fmt::format("{}{}.{}", kLanePrefix, id, key), value);
    };
    if (own.batching) add_own("batching", fabric::name(*own.batching));
    if (own.caravan) add_own("caravan", fmt::to_string(*own.caravan));
    if (own.caravan_bytes) add_own("caravan_bytes", fmt::to_string(*own.caravan_bytes));
    if (own.doorbell) add_own("doorbell", uri_duration_text(*own.doorbell));
    if (own.urgent) add_own("urgent", "on");
  }
  if (options.retries_max != defaults.retries_max) {
    add("retries", fmt::to_string(options.retries_max));
  }
  for (const DurationOption& each : kDurations) {
    const Duration value = options.*each.member;
    if (value != defaults.*each.member) add(each.name, uri_duration_text(value));
  }
  const std::string name = is_discovery() ? "" : "/" + percent_encode(nqn);
  return fmt::format("{}{}{}{}", kScheme, paths.front().text(), name, query);
}

}  // namespace cairn::fabric
