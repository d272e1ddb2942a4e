// SPDX-License-Identifier: Apache-2.0
#include "rest/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "drive/source.h"

namespace cairn::rest {

namespace {

using Wrong = std::unexpected<std::string>;

constexpr std::string_view kScheme = "http://";
constexpr uint32_t kBlockMin = 512;
constexpr uint32_t kBlockMax = 65536;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_path(std::string_view path) {
  constexpr std::string_view kMore = "/-._~%:@!$'*+;=";
  return std::ranges::all_of(path, [&](char c) { return is_letter(c) || kMore.contains(c); });
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || c == '-' || c == '.'; });
}

// Fit to stand in a Host field.
bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 259 && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']';
  });
}

// "10.0.0.7:8080", "[::1]", "store.example:8080".
std::expected<void, std::string> read_host(std::string_view text, Endpoint& place) {
  place.host = text;
  size_t name_end = text.find(':');
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return Wrong("']' is missing after the IPv6 address");
    name_end = text.find(':', bracket);
  }
  const std::string_view name = text.substr(0, name_end);
  if (name_end != std::string_view::npos) {
    const std::string_view port = text.substr(name_end + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), place.port);
    if (error != std::errc{} || end != port.data() + port.size() || place.port == 0) {
      return Wrong(fmt::format("'{}' is no port: it is 1 to 65535", port));
    }
  }
  const std::string_view known = name == "localhost" ? "127.0.0.1" : name;
  if (const auto address = env::Address::parse(fmt::format("{}:{}", known, place.port))) {
    place.address = *address;
    return {};
  }
  if (!is_name(name)) return Wrong(fmt::format("'{}' is neither an address nor a name", name));
  place.name = name;
  return {};
}

struct Number {
  std::string_view key;
  uint64_t min = 0;
  uint64_t max = 0;
  bool is_power = false;
};
constexpr Number kNumbers[] = {
    {"size", kBlockMin, UINT64_MAX / 2},
    {"object", kBlockMin, kObjectSizeMax, true},
    {"block", kBlockMin, kBlockMax, true},
    {"connections", 1, 64},
    {"timeout_ms", 1, 3'600'000},
    {"retries", 0, 16},
    {"check_ms", 0, 3'600'000},
};

void set(Endpoint& place, std::string_view key, uint64_t value) {
  const auto small = static_cast<uint32_t>(value);
  if (key == "size") place.size = value;
  if (key == "object") place.object_size = small;
  if (key == "block") place.block_size = small;
  if (key == "connections") place.connections = small;
  if (key == "timeout_ms") place.timeout = 1_ms * small;
  if (key == "retries") place.retries = small;
  if (key == "check_ms") place.check = 1_ms * small;
}

std::expected<void, std::string> read_option(std::string_view text, Endpoint& place) {
  const size_t equal = text.find('=');
  const std::string_view key = text.substr(0, equal);
  if (key == "host" && equal != std::string_view::npos) {
    place.host = text.substr(equal + 1);
    if (is_host(place.host)) return {};
    return Wrong(fmt::format("'{}' is wrong: host is a name, or an address", text));
  }
  const auto* number = std::ranges::find(kNumbers, key, &Number::key);
  if (number == std::end(kNumbers)) {
    return Wrong(
        fmt::format("'{}' is no option: there are size, object, block, connections, "
                    "timeout_ms, retries and check_ms",
                    key));
  }
  uint64_t value = 0;
  const bool is_number =
      equal != std::string_view::npos && drive::parse_size(text.substr(equal + 1), value);
  if (!is_number || value < number->min || value > number->max ||
      (number->is_power && !std::has_single_bit(value))) {
    return Wrong(fmt::format("'{}' is wrong: {} is {} {} to {}", text, key,
                             number->is_power ? "a power of two," : "a number,", number->min,
                             number->max));
  }
  set(place, key, value);
  return {};
}

}  // namespace

std::expected<Endpoint, std::string> Endpoint::parse(std::string_view text) {
  if (!is_place(text)) return Wrong("it does not begin with http://");
  text.remove_prefix(kScheme.size());
  Endpoint place;
  const size_t query = std::min(text.find('?'), text.size());
  std::string_view options = text.substr(query);
  text = text.substr(0, query);
  const size_t slash = std::min(text.find('/'), text.size());
  if (const auto read = read_host(text.substr(0, slash), place); !read) return Wrong(read.error());
  place.path = text.substr(slash);
  while (place.path.ends_with('/')) place.path.pop_back();
  if (place.path.empty()) return Wrong("the folder of the objects is missing: write /PATH");
  if (!is_path(place.path)) {
    return Wrong(
        fmt::format("'{}' has letters that a path cannot have: write them as %XX", place.path));
  }
  while (!options.empty()) {
    options.remove_prefix(1);
    const size_t end = std::min(options.find('&'), options.size());
    if (const auto read = read_option(options.substr(0, end), place); !read) {
      return Wrong(read.error());
    }
    options.remove_prefix(end);
  }
  return place;
}

std::string text_with_address(std::string_view text, const Endpoint& place) {
  if (place.name.empty()) return std::string(text);
  const size_t host_end = std::min(text.find_first_of("/?", kScheme.size()), text.size());
  const std::string_view rest = text.substr(host_end);
  // Given twice, the second one counts, and it is the same.
  return fmt::format("{}{}{}{}host={}", kScheme, place.address.text(), rest,
                     rest.contains('?') ? '&' : '?', place.host);
}

}  // namespace cairn::rest
