// SPDX-License-Identifier: Apache-2.0
#include "env/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

namespace cairn::env {

namespace {

constexpr size_t kLocalPathMax = 107;  // sockaddr_un holds 108 with the final zero

template <class T>
std::optional<T> parse_number(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool parse_ip4(std::string_view text, std::span<uint8_t> out) {
  for (int i = 0; i < 4; ++i) {
    const size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (i == 3)) return false;
    const auto part = parse_number<uint8_t>(text.substr(0, dot), 10);
    if (!part || (dot > 1 && text.size() > 1 && text[0] == '0' && text[1] != '.')) return false;
    out[i] = *part;
    text = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  }
  return true;
}

// Groups of 16 bits, one "::" for a run of zeros, and an IPv4 tail (RFC 4291, section 2.2).
bool parse_ip6(std::string_view text, std::array<uint8_t, 16>& out) {
  std::array<uint8_t, 16> head{};
  std::array<uint8_t, 16> tail{};
  size_t head_size = 0;
  size_t tail_size = 0;
  bool gap = false;
  if (text.starts_with("::")) {
    gap = true;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    auto& part = gap ? tail : head;
    size_t& size = gap ? tail_size : head_size;
    const size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == std::string_view::npos && group.find('.') != std::string_view::npos) {
      if (head_size + tail_size + 4 > 16 || !parse_ip4(group, std::span(part).subspan(size, 4))) {
        return false;
      }
      size += 4;
      break;
    }
    const auto value = parse_number<uint16_t>(group, 16);
    if (!value || group.size() > 4 || head_size + tail_size + 2 > 16) return false;
    part[size++] = static_cast<uint8_t>(*value >> 8);
    part[size++] = static_cast<uint8_t>(*value);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (text.starts_with(':')) {
      if (gap) return false;
      gap = true;
      text.remove_prefix(1);
    } else if (text.empty()) {
      return false;
    }
  }
  if (gap ? head_size + tail_size > 14 : head_size != 16) return false;
  out = head;
  std::copy_n(tail.begin(), tail_size, out.end() - static_cast<ptrdiff_t>(tail_size));
  return true;
}

// The longest run of at least two zero groups becomes "::" (RFC 5952).
std::string text_ip6(const std::array<uint8_t, 16>& ip) {
  std::array<uint16_t, 8> groups;
  for (size_t i = 0; i < 8; ++i) groups[i] = static_cast<uint16_t>(ip[2 * i] << 8 | ip[2 * i + 1]);
  size_t best = 8;
  size_t best_length = 1;
  for (size_t i = 0; i < 8; ++i) {
    size_t length = 0;
    while (i + length < 8 && groups[i + length] == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
  }
  std::string text;
  for (size_t i = 0; i < 8; ++i) {
    if (i == best) {
      text += "::";
      i += best_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += fmt::format("{:x}", groups[i]);
  }
  return text;
}

}  // namespace

Address Address::ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port) {
  return {.family = Family::kIp4, .ip = {a, b, c, d}, .port = port, .path = {}};
}

Result<Address> Address::parse(std::string_view text) {
  Address address;
  if (text.starts_with("unix:")) {
    text.remove_prefix(5);
    if (text.empty() || text.size() > kLocalPathMax || text.find('\0') != std::string_view::npos) {
      return fail(Errc::kInvalid, "unix socket path (1 to 107 characters)");
    }
    address.family = Family::kLocal;
    address.path = text;
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return fail(Errc::kInvalid, "address without a port");
  const auto port = parse_number<uint16_t>(text.substr(colon + 1), 10);
  if (!port) return fail(Errc::kInvalid, "port (0 to 65535)");
  address.port = *port;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    address.family = Family::kIp6;
    if (!parse_ip6(host.substr(1, host.size() - 2), address.ip)) {
      return fail(Errc::kInvalid, "IPv6 address");
    }
  } else if (!parse_ip4(host, address.ip)) {
    return fail(Errc::kInvalid, "IPv4 address (IPv6 goes in brackets: [::1]:4420)");
  }
  return address;
}

std::string Address::text() const {
  switch (family) {
    case Family::kIp4:
      return fmt::format("{}.{}.{}.{}:{}", ip[0], ip[1], ip[2], ip[3], port);
    case Family::kIp6:
      return fmt::format("[{}]:{}", text_ip6(ip), port);
    case Family::kLocal:
      return "unix:" + path;
  }
  return {};
}

}  // namespace cairn::env
