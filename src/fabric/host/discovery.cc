// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/discovery.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "fabric/host/admin.h"
#include "fabric/host/controller.h"
#include "nvme/format/log_format.h"
#include "nvme/format/nqn.h"

namespace cairn::fabric {

namespace {

// How often a log may change while it is read.
constexpr int kTriesMax = 8;

DiscoveryRecord decode(const nvme::DiscoveryEntry& entry) {
  return {.transport = entry.transport,
          .family = entry.family,
          .type = entry.subsystem,
          .security = entry.security,
          .requirements = entry.requirements,
          .port_id = entry.port_id,
          .controller_id = entry.controller_id,
          .admin_queue_size_max = entry.admin_queue_size_max,
          .flags = entry.flags,
          .nqn = std::string(entry.subsystem_nqn.get().value_or(std::string_view())),
          .address = std::string(entry.address.trimmed()),
          .service = std::string(entry.service.trimmed())};
}

// Nobody watches the session of a single look.
class Nobody final : public HostSession::User {
 public:
  void session_lost(const Error&) override {}
  void session_event(const nvme::AsynchronousEvent&) override {}
};

}  // namespace

std::optional<env::Address> DiscoveryRecord::tcp_address() const {
  if (transport != nvme::TransportType::kTcp) return std::nullopt;
  const bool is_ip6 = family == nvme::AddressFamily::kIp6;
  if (!is_ip6 && family != nvme::AddressFamily::kIp4) return std::nullopt;
  const std::string host = is_ip6 ? "[" + address + "]" : address;
  const Result<env::Address> parsed = env::Address::parse(host + ":" + service);
  if (!parsed || parsed->port == 0 || parsed->family == env::Address::Family::kLocal) {
    return std::nullopt;
  }
  return *parsed;
}

Result<DiscoveryLog> parse_discovery_log(Bytes page) {
  if (page.size() < sizeof(nvme::DiscoveryHeader)) {
    return fail(Errc::kInvalid, "the discovery log breaks off in its header");
  }
  const auto header = load<nvme::DiscoveryHeader>(page);
  if (header.record_format != 0) return fail(Errc::kInvalid, "format of the discovery log");
  if (header.records > kDiscoveryRecordsMax) {
    return fail(Errc::kLimit, "the discovery log has too many records");
  }
  DiscoveryLog log{.generation = header.generation};
  page = page.subspan(sizeof header);
  for (uint64_t i = 0; i < header.records; ++i) {
    if (page.size() < sizeof(nvme::DiscoveryEntry)) {
      return fail(Errc::kInvalid, "the discovery log breaks off");
    }
    log.records.push_back(decode(load<nvme::DiscoveryEntry>(page)));
    page = page.subspan(sizeof(nvme::DiscoveryEntry));
  }
  return log;
}

task::Task<Result<DiscoveryLog>> read_discovery_log(HostSession& session, task::CancelToken token) {
  std::vector<std::byte> page(sizeof(nvme::DiscoveryHeader));
  const LogRequest request{.page = nvme::LogPage::kDiscovery, .nsid = 0};
  LogRequest peek = request;
  peek.retain_event = true;
  Result<void> got = co_await get_log(session, peek, page, token);
  if (!got) co_return fail(got.error());
  for (int i = 0; i < kTriesMax; ++i) {
    const auto before = load<nvme::DiscoveryHeader>(page);
    if (before.records > kDiscoveryRecordsMax) {
      co_return fail(Errc::kLimit, "the discovery log has too many records");
    }
    page.resize(sizeof(nvme::DiscoveryHeader) + before.records * sizeof(nvme::DiscoveryEntry));
    got = co_await get_log(session, peek, page, token);
    if (!got) co_return fail(got.error());
    // Pieces may be of different times: only if the generation is the same after the last, too,
    // they are one log (NVMe Base 2.0, 5.16.1.23).
    std::vector<std::byte> after(sizeof(nvme::DiscoveryHeader));
    got = co_await get_log(session, request, after, token);
    if (!got) co_return fail(got.error());
    const auto read = load<nvme::DiscoveryHeader>(page);
    const auto now = load<nvme::DiscoveryHeader>(after);
    if (read.generation == now.generation && read.records == before.records) {
      co_return parse_discovery_log(page);
    }
    page = std::move(after);
  }
  co_return fail(Errc::kLimit, "the discovery log does not stop changing");
}

task::Task<Result<DiscoveryLog>> discover(env::Env& env, env::Address address, HostOptions options,
                                          task::CancelToken token) {
  name_host(env, options);
  options.keep_alive = 0_s;  // a look, not a stay
  Nobody nobody;
  bool flow_control = false;
  for (;;) {
    HostSession session(env,
                        {.address = address,
                         .nqn = std::string(nvme::kDiscoveryNqn),
                         .host = options,
                         .flow_control = flow_control},
                        nobody);
    const Result<void> opened = co_await session.open(token);
    Result<DiscoveryLog> log = fail(Errc::kIo, "discovery");
    if (opened) {
      log = co_await read_discovery_log(session, token);
    } else {
      log = fail(opened.error());
    }
    co_await session.close();
    if (opened || !session.wants_flow_control()) co_return log;
    flow_control = true;
  }
}

}  // namespace cairn::fabric
