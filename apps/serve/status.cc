// SPDX-License-Identifier: Apache-2.0
// `cairn drive status`, `cairn drive stats` and `cairn drive metrics`: who is connected, and what
// they did.
#include <fmt/format.h>

#include <array>
#include <sstream>
#include <string>

#include "apps/common/command.h"
#include "apps/serve/client.h"
#include "base/table.h"
#include "base/units.h"
#include "server/common/lane_text.h"
#include "server/control/health_json.h"
#include "server/serve/flash_stats.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

std::string hosts_text(const server::Json& subsystem) {
  if (server::flag_at(subsystem, "any_host")) return "any host";
  return fmt::format("{} hosts", server::list_at(subsystem, "hosts").size());
}

std::string status_text(const std::string& control, const server::Json& told) {
  std::string text = fmt::format("server at {}: {}\n", control, server::text_at(told, "health"));
  for (const server::Json& each : server::list_at(told, "listeners")) {
    if (each.is_string()) text += fmt::format("  listens at {}\n", each.get<std::string>());
  }
  for (const server::Json& drive : server::list_at(told, "drives")) {
    text += fmt::format("  drive {} is {}\n", server::text_at(drive, "name"),
                        server::text_at(drive, "health"));
    std::istringstream lines(server::health_lines(drive));
    for (std::string line; std::getline(lines, line);) text += fmt::format("    {}\n", line);
  }
  std::vector<std::vector<std::string>> rows;
  for (const server::Json& subsystem : server::list_at(told, "subsystems")) {
    text += fmt::format("  {}: {} namespaces, open to {}\n", server::text_at(subsystem, "nqn"),
                        server::number_at(subsystem, "namespaces"), hosts_text(subsystem));
    for (const server::Json& each : server::list_at(subsystem, "controllers")) {
      rows.push_back({fmt::format("    controller {}", server::number_at(each, "id")),
                      server::text_at(each, "host"), server::text_at(each, "address"),
                      fmt::format("{} queues", server::number_at(each, "queues"))});
    }
    if (const uint64_t more = server::number_at(subsystem, "controllers_more"); more > 0) {
      rows.push_back({fmt::format("    and {} more", more)});
    }
    text += table_text(rows);
    rows.clear();
  }
  return text;
}

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& app) : client_(app) {
    set_examples(app,
                 {"cairn drive status", "cairn drive status --json | jq '.servers[].subsystems'"});
  }
  Attempt<int> run() override {
    const auto answers = client_.ask_all({.command = Verb::kStatus});
    if (!answers) return std::unexpected(answers.error());
    server::Json servers = server::Json::array();
    std::string text;
    for (const auto& [control, answer] : *answers) {
      text += status_text(control, answer);
      server::Json one = {{"control", control}};
      one.update(answer);
      servers.push_back(std::move(one));
    }
    client_.print(server::Json{{"servers", std::move(servers)}}, text);
    return kExitOk;
  }

 private:
  ServerClient client_;
};

std::string ratio_at(const server::Json& json, const char* part, const char* whole) {
  return server::ratio_text(server::number_at(json, part), server::number_at(json, whole));
}

// The columns that totals and single lanes have in common.
void add_traffic(std::vector<std::string>& row, const server::Json& lane) {
  const server::Json received =
      lane.is_object() ? lane.value("received", server::Json::object()) : server::Json();
  row.push_back(fmt::to_string(server::number_at(lane, "commands")));
  row.push_back(fmt::to_string(server::number_at(lane, "failures")));
  row.push_back(fmt::to_string(server::number_at(lane, "messages")));
  row.push_back(ratio_at(lane, "messages", "sends"));
  row.push_back(text_bytes(server::number_at(lane, "bytes")));
  row.push_back(ratio_at(received, "pdus", "reads"));
  row.push_back(text_bytes(server::number_at(received, "bytes")));
}
constexpr std::array kTrafficHeads = {"COMMANDS", "FAILED",        "ANSWERS", "PER SEND",
                                      "SENT",     "PDUS PER READ", "RECEIVED"};

std::string lanes_text(const server::Json& answer) {
  std::vector<std::vector<std::string>> totals = {{"LISTENER", "NQN", "QUEUES", "OPENED", "OPEN"}};
  totals[0].insert(totals[0].end(), kTrafficHeads.begin(), kTrafficHeads.end());
  for (const server::Json& each : server::list_at(answer, "lane_totals")) {
    std::vector<std::string>& row = totals.emplace_back();
    row = {server::text_at(each, "listener"), server::text_at(each, "nqn"),
           server::text_at(each, "kind"), fmt::to_string(server::number_at(each, "opened")),
           fmt::to_string(server::number_at(each, "open"))};
    add_traffic(row, each);
  }
  if (totals.size() == 1) return "no host has connected\n";
  std::string text = "\n" + table_text(totals);
  std::vector<std::vector<std::string>> lanes = {{"CORE", "FROM", "HOST", "QUEUE", "IN FLIGHT"}};
  lanes[0].insert(lanes[0].end(), kTrafficHeads.begin(), kTrafficHeads.end());
  for (const server::Json& each : server::list_at(answer, "lanes")) {
    std::vector<std::string>& row = lanes.emplace_back();
    row = {fmt::to_string(server::number_at(each, "core")), server::text_at(each, "address"),
           server::text_at(each, "host"), fmt::to_string(server::number_at(each, "queue")),
           fmt::format("{} of {}", server::number_at(each, "in_flight"),
                       server::number_at(each, "depth"))};
    add_traffic(row, each);
  }
  if (lanes.size() == 1) return text;
  text += "\n" + table_text(lanes);
  const uint64_t more = server::number_at(answer, "lanes_more");
  if (more > 0) text += fmt::format("and {} connections more, that did less\n", more);
  return text;
}

std::string stats_text(const server::Json& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"NQN", "NSID", "READS", "WRITES", "READ", "WRITTEN", "ERRORS"}};
  for (const server::Json& each : server::list_at(answer, "namespaces")) {
    const auto number = [&each](const char* name) { return server::number_at(each, name); };
    rows.push_back({server::text_at(each, "nqn"), fmt::format("{}", number("nsid")),
                    fmt::format("{}", number("reads")), fmt::format("{}", number("writes")),
                    text_bytes(number("bytes_read")), text_bytes(number("bytes_written")),
                    fmt::format("{}", number("media_errors"))});
  }
  std::string text = table_text(rows);
  for (const server::Json& each : server::list_at(answer, "authentication")) {
    const uint64_t succeeded = server::number_at(each, "succeeded");
    const uint64_t failed = server::number_at(each, "failed");
    if (succeeded + failed == 0) continue;
    text += fmt::format("{}: {} queues authenticated, {} failed to\n", server::text_at(each, "nqn"),
                        succeeded, failed);
  }
  if (const auto tls = answer.find("tls"); tls != answer.end()) {
    const uint64_t succeeded = server::number_at(*tls, "succeeded");
    const uint64_t failed = server::number_at(*tls, "failed");
    if (succeeded + failed > 0) {
      text += fmt::format("TLS: {} connections encrypted, {} refused\n", succeeded, failed);
    }
  }
  return text + server::flash_stats_text(answer) + lanes_text(answer);
}

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn drive stats", "cairn drive stats --json"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = client_.ask({.command = Verb::kStats});
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, stats_text(*answer));
    return kExitOk;
  }

 private:
  ServerClient client_;
};

class MetricsCommand final : public Command {
 public:
  explicit MetricsCommand(CLI::App& app) : client_(app) {
    set_examples(
        app, {"cairn drive metrics", "cairn drive metrics > /var/lib/node_exporter/cairn.prom"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = client_.ask({.command = Verb::kMetrics});
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, server::text_at(*answer, "metrics"));
    return kExitOk;
  }

 private:
  ServerClient client_;
};

}  // namespace

std::unique_ptr<Command> make_metrics(CLI::App& app) {
  return std::make_unique<MetricsCommand>(app);
}
std::unique_ptr<Command> make_status(CLI::App& app) { return std::make_unique<StatusCommand>(app); }
std::unique_ptr<Command> make_stats(CLI::App& app) { return std::make_unique<StatsCommand>(app); }

}  // namespace cairn::apps
