// SPDX-License-Identifier: Apache-2.0
// The discovery log page: where a host finds the subsystems it may connect to.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "nvme/controller/log_pages.h"
#include "nvme/format/discovery_format.h"

namespace cairn::nvme {

namespace {

using Family = env::Address::Family;

bool is_wildcard(const env::Address& address) {
  return std::ranges::all_of(address.ip, [](uint8_t byte) { return byte == 0; });
}

// Whether a connection that ends at `local` came in by this port.
bool is_by(const PortOptions& port, const env::Address& local) {
  return port.listen.family == local.family && port.listen.port == local.port &&
         (is_wildcard(port.listen) || port.listen.ip == local.ip);
}

// An IPv4 host that came through an IPv6 socket has reached an IPv4 address (RFC 4291, 2.5.5.2).
env::Address plain(const env::Address& address) {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (address.family != Family::kIp6 ||
      !std::ranges::equal(kMapped, std::span(address.ip).first(kMapped.size()))) {
    return address;
  }
  return env::Address::ip4(address.ip[12], address.ip[13], address.ip[14], address.ip[15],
                           address.port);
}

// What to tell a host that reached us at `local` about a port. Nothing: the port's wildcard is of
// a family in which we do not know how that host would reach us.
std::optional<env::Address> address_of(const PortOptions& port, const env::Address& local) {
  if (port.advertise.port != 0) return port.advertise;
  if (port.listen.family == Family::kLocal) return std::nullopt;
  if (!is_wildcard(port.listen)) return port.listen;
  if (local.family != port.listen.family) return std::nullopt;
  env::Address address = plain(local);
  address.port = port.listen.port;
  return address;
}

// The address alone: "192.0.2.1", "2001:db8::1".
std::string host_text(const env::Address& address) {
  std::string text = address.text();
  text.resize(text.rfind(':'));
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

// `port` null: none that we know of.
DiscoveryEntry make_entry(const env::Address& at, const PortOptions* port, std::string_view nqn) {
  const bool tls = port != nullptr && port->tls;
  DiscoveryEntry entry;
  entry.family = at.family == Family::kIp6 ? AddressFamily::kIp6 : AddressFamily::kIp4;
  // Of a plain port "not required" would be true, but libnvme takes it for a wish and asks for TLS.
  entry.requirements =
      (tls ? TransportRequirements::kSecureRequired : TransportRequirements::kSecureUnspecified) |
      TransportRequirements::kNoFlowControl;
  entry.security = tls ? TcpSecurity::kTls13 : TcpSecurity::kNone;
  entry.port_id = port == nullptr ? 0 : port->port_id;
  entry.controller_id = 0xffff;
  entry.admin_queue_size_max = kAdminQueueSizeMin;
  entry.service.set_padded(fmt::format("{}", at.port));
  entry.subsystem_nqn.set(nqn);
  entry.address.set_padded(host_text(at));
  return entry;
}

void append(LogBytes& page, const DiscoveryEntry& entry) {
  const Bytes bytes = bytes_of(entry);
  page.insert(page.end(), bytes.begin(), bytes.end());
}

}  // namespace

const PortOptions* find_port(const env::Address& local, std::span<const PortOptions> ports) {
  const auto found =
      std::ranges::find_if(ports, [&local](const PortOptions& port) { return is_by(port, local); });
  return found == ports.end() ? nullptr : &*found;
}

LogBytes discovery_page(const DiscoveryFacts& facts) {
  const env::Address local = plain(facts.local);
  LogBytes page(sizeof(DiscoveryHeader));
  uint64_t records = 0;
  if (local.family != Family::kLocal) {
    const PortOptions* port = find_port(facts.local, facts.ports);
    DiscoveryEntry self = make_entry(local, port, kDiscoveryNqn);
    self.subsystem = SubsystemType::kCurrentDiscovery;
    self.flags = DiscoveryFlags::kDuplicate | DiscoveryFlags::kPersistentConnection;
    append(page, self);
    ++records;
  }
  for (const PortOptions& port : facts.ports) {
    const std::optional<env::Address> at = address_of(port, facts.local);
    if (!at) continue;
    for (const std::string_view nqn : facts.nqns) {
      if (!port.serves(nqn)) continue;
      append(page, make_entry(*at, &port, nqn));
      ++records;
    }
  }
  DiscoveryHeader header;
  header.generation = facts.generation;
  header.records = records;
  store(page, header);
  return page;
}

}  // namespace cairn::nvme
