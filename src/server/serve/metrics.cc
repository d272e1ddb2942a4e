// SPDX-License-Identifier: Apache-2.0
#include "server/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "base/metrics_text.h"
#include "fabric/target/report.h"
#include "nvme/controller/io_totals.h"
#include "server/control/health_json.h"
#include "server/monitor/process_metrics.h"
#include "server/serve/drive_commands.h"
#include "server/serve/show.h"

namespace cairn::server {

namespace {

using Type = MetricsText::Type;
using fabric::LaneKey;
using fabric::LaneTotals;
using fabric::TargetReport;

struct NamespaceCounters {
  std::string nqn;
  std::string nsid;
  nvme::IoTotals totals;
};

task::Task<std::vector<NamespaceCounters>> namespaces_of(Server& server) {
  std::vector<NamespaceCounters> all;
  for (const nvme::SubsystemOptions& subsystem : server.registry().subsystems()) {
    for (const nvme::NamespaceInfo& each : server.registry().namespaces(subsystem.nqn)) {
      const uint32_t nsid = each.options.nsid;
      const Result<nvme::IoTotals> totals = co_await server.registry().totals(subsystem.nqn, nsid);
      if (totals) all.push_back({subsystem.nqn, fmt::to_string(nsid), *totals});
    }
  }
  co_return all;
}

void add_namespaces(MetricsText& text, const std::vector<NamespaceCounters>& all) {
  using Value = std::function<uint64_t(const nvme::IoTotals&)>;
  const auto add = [&](const char* name, const char* help, const Value& value) {
    text.family(Type::kCounter, name, help);
    for (const NamespaceCounters& each : all) {
      text.sample({{"nqn", each.nqn}, {"nsid", each.nsid}}, value(each.totals));
    }
  };
  add("cairn_box_reads_total", "Read commands that a namespace has served.",
      [](const nvme::IoTotals& totals) { return totals.reads; });
  add("cairn_box_writes_total", "Write commands that a namespace has served.",
      [](const nvme::IoTotals& totals) { return totals.writes; });
  add("cairn_box_read_bytes_total", "Bytes that hosts have read from a namespace.",
      [](const nvme::IoTotals& totals) { return totals.sectors_read * 512; });
  add("cairn_box_written_bytes_total", "Bytes that hosts have written to a namespace.",
      [](const nvme::IoTotals& totals) { return totals.sectors_written * 512; });
  add("cairn_box_media_errors_total", "Requests that the drive of a namespace has failed.",
      [](const nvme::IoTotals& totals) { return totals.media_errors; });
}

void add_authentication(MetricsText& text, Server& server) {
  text.family(Type::kCounter, "cairn_box_authentications_total",
              "Authentication transactions of a subsystem's queues, by outcome.");
  for (const nvme::SubsystemOptions& subsystem : server.registry().subsystems()) {
    const nvme::AuthTotals totals = server.registry().authentication_totals(subsystem.nqn);
    text.sample({{"nqn", subsystem.nqn}, {"outcome", "succeeded"}}, totals.succeeded);
    text.sample({{"nqn", subsystem.nqn}, {"outcome", "failed"}}, totals.failed);
  }
}

void add_refused(MetricsText& text, Server& server) {
  text.family(Type::kCounter, "cairn_box_hosts_refused_total",
              "Connects of hosts that are not on a subsystem's list.");
  for (const nvme::SubsystemOptions& subsystem : server.registry().subsystems()) {
    text.sample({{"nqn", subsystem.nqn}}, server.registry().refused_hosts(subsystem.nqn));
  }
  const nvme::AuthTotals tls = server.registry().tls_totals();
  text.family(Type::kCounter, "cairn_box_tls_handshakes_total",
              "TLS handshakes of all listeners, by outcome.");
  text.sample({{"outcome", "succeeded"}}, tls.succeeded);
  text.sample({{"outcome", "failed"}}, tls.failed);
}

std::vector<Json> drives_of(const Server& server) {
  std::vector<Json> drives;
  for (const auto& drive : server.drives()) drives.push_back(health_of(server, *drive));
  return drives;
}

drive::Health worst_of(const Server& server) {
  drive::Health worst = drive::Health::kOk;
  for (const auto& drive : server.drives()) {
    const drive::WatchedDrive* const watched = server.health(*drive);
    if (watched != nullptr) worst = std::max(worst, watched->now.health);
  }
  return worst;
}

// One family after the other, over all groups of lanes.
class LaneFamilies {
 public:
  LaneFamilies(MetricsText& text, const TargetReport& report) : text_(text), report_(report) {}

  void add_all() {
    gauge("cairn_box_connections", "Connections that are open.",
          [](const LaneTotals& totals) { return totals.open; });
    counter("cairn_box_connections_total", "Connections that were accepted.",
            [](const LaneTotals& totals) { return totals.opened; });
    counter("cairn_lane_commands_total", "Commands that arrived.",
            [](const LaneTotals& totals) { return totals.work.commands; });
    counter("cairn_lane_failures_total", "Commands that were answered with an error.",
            [](const LaneTotals& totals) { return totals.work.failures; });
    counter("cairn_lane_sends_total", "Sends, each with a caravan of messages.",
            [](const LaneTotals& totals) { return totals.work.traffic.out.sends; });
    counter("cairn_lane_messages_total", "Responses and requests for data that were sent.",
            [](const LaneTotals& totals) { return totals.work.traffic.out.messages; });
    counter("cairn_lane_sent_bytes_total", "Bytes that were sent.",
            [](const LaneTotals& totals) { return totals.work.traffic.out.bytes; });
    counter("cairn_lane_timers_total", "Times that a caravan waited for the clock.",
            [](const LaneTotals& totals) { return totals.work.traffic.out.timers; });
    counter("cairn_lane_reads_total", "Reads that brought bytes.",
            [](const LaneTotals& totals) { return totals.work.traffic.in.reads; });
    counter("cairn_lane_pdus_total", "PDUs that arrived.",
            [](const LaneTotals& totals) { return totals.work.traffic.in.pdus; });
    counter("cairn_lane_received_bytes_total", "Bytes that arrived.",
            [](const LaneTotals& totals) { return totals.work.traffic.in.bytes; });
    add_rings();
    add_caravans();
  }

 private:
  using Value = uint64_t (*)(const LaneTotals&);
  template <class F>
  void for_each(F visit) const {
    for (const auto& [key, totals] : report_.totals) {
      const char* queue = !key.is_connected() ? "none" : key.admin ? "admin" : "io";
      visit(report_.listeners[key.listener].text(), key.nqn, queue, totals);
    }
  }
  void family(Type type, const char* name, const char* help, Value value) {
    text_.family(type, name, help);
    for_each([&](const std::string& listener, const std::string& nqn, const char* queue,
                 const LaneTotals& totals) {
      text_.sample({{"listener", listener}, {"nqn", nqn}, {"queue", queue}}, value(totals));
    });
  }
  void gauge(const char* name, const char* help, Value value) {
    family(Type::kGauge, name, help, value);
  }
  void counter(const char* name, const char* help, Value value) {
    family(Type::kCounter, name, help, value);
  }
  void add_rings() {
    text_.family(Type::kCounter, "cairn_lane_doorbells_total", "Why caravans were sent off.");
    for_each([&](const std::string& listener, const std::string& nqn, const char* queue,
                 const LaneTotals& totals) {
      for (size_t i = 0; i < fabric::kRingCauses; ++i) {
        const std::string_view cause = name(static_cast<fabric::RingCause>(i));
        text_.sample({{"listener", listener}, {"nqn", nqn}, {"queue", queue}, {"cause", cause}},
                     totals.work.traffic.out.rings[i]);
      }
    });
  }
  void add_caravans() {
    constexpr std::array<uint64_t, 7> kBounds = {1, 2, 4, 8, 16, 32, 64};
    static_assert(kBounds.size() + 1 == fabric::LaneCounters::kSizes);
    text_.family(Type::kHistogram, "cairn_lane_caravan_messages", "Messages of one send.");
    for_each([&](const std::string& listener, const std::string& nqn, const char* queue,
                 const LaneTotals& totals) {
      const fabric::LaneCounters& out = totals.work.traffic.out;
      text_.histogram({{"listener", listener}, {"nqn", nqn}, {"queue", queue}}, kBounds, out.sizes,
                      out.messages);
    });
  }

  MetricsText& text_;
  const TargetReport& report_;
};

task::Task<void> add_metrics(MetricsText& text, Server& server) {
  const std::vector<NamespaceCounters> namespaces = co_await namespaces_of(server);
  const TargetReport report = co_await server.nvme().target().report(0);
  const Attempt<Json> shown =
      co_await execute_for_drive(server, {.command = ControlRequest::Command::kDriveShow});
  const std::vector<Json> drives = drives_of(server);
  text.family(Type::kGauge, "cairn_box_uptime_seconds", "Since the box was started.");
  text.sample({}, static_cast<uint64_t>(server.uptime() / 1_s));
  text.family(Type::kCounter, "cairn_box_connections_refused_total",
              "Connections that found no place (connections_max, _unproven_max, _reserved).");
  text.sample({}, report.refused);
  add_namespaces(text, namespaces);
  add_health(text, drives);
  if (shown) add_layers(text, *shown);
  add_authentication(text, server);
  add_refused(text, server);
  LaneFamilies(text, report).add_all();
}

}  // namespace

task::Task<std::string> metrics_of(Server& server) {
  MetricsText text;
  add_process(text, server.env(), ServerSource(server).state());
  co_await add_metrics(text, server);
  co_return text.text();
}

ProcessState ServerSource::state() {
  return {.role = "serve", .uptime = server_.uptime(), .health = worst_of(server_)};
}

task::Task<void> ServerSource::tell_metrics(MetricsText& text) {
  co_await add_metrics(text, server_);
}

task::Task<Wellness> ServerSource::tell_health() {
  std::vector<Json> drives = drives_of(server_);
  Json json = {{"schema_version", 1}, {"role", "serve"}, {"health", worst_health(drives)}};
  std::erase_if(drives, [](const Json& each) { return text_at(each, "health") == "ok"; });
  for (Json& each : drives) each.erase("jobs");
  json["drives"] = std::move(drives);
  co_return Wellness{.health = worst_of(server_),
                     .json = json.dump(-1, ' ', true, Json::error_handler_t::replace)};
}

}  // namespace cairn::server
