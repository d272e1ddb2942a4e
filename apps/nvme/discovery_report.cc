// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/discovery_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "apps/nvme/fields.h"
#include "base/table.h"
#include "base/words.h"
#include "fabric/host/uri.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using fabric::DiscoveryRecord;

// The words of nvme-cli.
std::string transport_text(nvme::TransportType type) {
  switch (type) {
    case nvme::TransportType::kRdma:
      return "rdma";
    case nvme::TransportType::kFibreChannel:
      return "fc";
    case nvme::TransportType::kTcp:
      return "tcp";
    case nvme::TransportType::kLoop:
      return "loop";
  }
  return fmt::format("{}", static_cast<int>(type));
}

std::string family_text(nvme::AddressFamily family) {
  switch (family) {
    case nvme::AddressFamily::kPcie:
      return "pci";
    case nvme::AddressFamily::kIp4:
      return "ipv4";
    case nvme::AddressFamily::kIp6:
      return "ipv6";
    case nvme::AddressFamily::kInfiniband:
      return "infiniband";
    case nvme::AddressFamily::kFc:
      return "fibre-channel";
  }
  return fmt::format("{}", static_cast<int>(family));
}

std::string subsystem_text(nvme::SubsystemType type) {
  switch (type) {
    case nvme::SubsystemType::kReferral:
      return "discovery subsystem referral";
    case nvme::SubsystemType::kNvm:
      return "nvme subsystem";
    case nvme::SubsystemType::kCurrentDiscovery:
      return "current discovery subsystem";
  }
  return fmt::format("{}", static_cast<int>(type));
}

std::string requirements_text(uint8_t treq) {
  std::string text;
  switch (treq & 3) {
    case nvme::TransportRequirements::kSecureUnspecified:
      text = "not specified";
      break;
    case nvme::TransportRequirements::kSecureRequired:
      text = "required";
      break;
    case nvme::TransportRequirements::kSecureNotRequired:
      text = "not required";
      break;
    default:
      text = "reserved";
  }
  const bool can_disable = (treq & nvme::TransportRequirements::kNoFlowControl) != 0;
  return can_disable ? text + ", sq flow control disable supported" : text;
}

std::string security_text(nvme::TcpSecurity security) {
  switch (security) {
    case nvme::TcpSecurity::kNone:
      return "none";
    case nvme::TcpSecurity::kTls12:
      return "tls";
    case nvme::TcpSecurity::kTls13:
      return "tls13";
  }
  return fmt::format("{}", static_cast<int>(security));
}

std::string flags_text(uint16_t flags) {
  return bit_names(flags,
                   {{nvme::DiscoveryFlags::kPersistentConnection, "explicit discovery connections"},
                    {nvme::DiscoveryFlags::kDuplicate, "duplicate discovery information"}});
}

// The URI to use a record by; none when it is not ours to use.
std::string uri_text(const DiscoveryRecord& record) {
  const std::optional<env::Address> address = record.tcp_address();
  if (!address || record.nqn.empty()) return "";
  fabric::Uri uri;
  uri.paths = {*address};
  uri.nqn = record.nqn;
  uri.options.tls = (record.requirements & 3) == nvme::TransportRequirements::kSecureRequired;
  return uri.text();
}

Json record_json(const DiscoveryRecord& record) {
  Json json = {{"trtype", transport_text(record.transport)},
               {"adrfam", family_text(record.family)},
               {"subtype", subsystem_text(record.type)},
               {"treq", requirements_text(record.requirements)},
               {"portid", record.port_id},
               {"cntlid", record.controller_id},
               {"asqsz", record.admin_queue_size_max},
               {"trsvcid", record.service},
               {"subnqn", record.nqn},
               {"traddr", record.address},
               {"eflags", flags_text(record.flags)}};
  if (record.transport == nvme::TransportType::kTcp) {
    json["sectype"] = security_text(record.security);
  }
  if (const std::string uri = uri_text(record); !uri.empty()) json["uri"] = uri;
  return json;
}

Json service_json(const DiscoveredService& service) {
  Json json = {{"address", service.address.text()}, {"genctr", service.log.generation}};
  Json records = Json::array();
  for (const DiscoveryRecord& record : service.log.records) records.push_back(record_json(record));
  json["records"] = std::move(records);
  if (!service.problem.empty()) json["problem"] = service.problem;
  return json;
}

}  // namespace

Json json_of(std::span<const DiscoveredService> services) {
  Json json = service_json(services.front());
  Json referred = Json::array();
  for (const DiscoveredService& each : services.subspan(1)) referred.push_back(service_json(each));
  if (!referred.empty()) json["referred"] = std::move(referred);
  return json;
}

std::string text_of(std::span<const DiscoveredService> services) {
  std::string out;
  for (const DiscoveredService& service : services) {
    if (services.size() > 1) out += fmt::format("At {}:\n", service.address.text());
    if (!service.problem.empty()) {
      out += service.problem + "\n";
      continue;
    }
    if (service.log.records.empty()) {
      out += "There is nothing for this host.\n";
      continue;
    }
    std::vector<std::vector<std::string>> rows = {{"KIND", "TRANSPORT", "ADDRESS", "PORT", "URI"}};
    for (const DiscoveryRecord& record : service.log.records) {
      const std::string uri = uri_text(record);
      rows.push_back({subsystem_text(record.type), transport_text(record.transport),
                      escaped(record.address), escaped(record.service),
                      uri.empty() ? escaped(record.nqn) : uri});
    }
    out += table_text(rows);
  }
  return out;
}

}  // namespace cairn::apps
