// SPDX-License-Identifier: Apache-2.0
// `cairn box status` and `cairn box stats`: who is connected, and what they did.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/box_client.h"
#include "apps/command.h"
#include "apps/table.h"
#include "base/units.h"

namespace cairn::apps {

namespace {

using Verb = ControlRequest::Command;

std::string hosts_text(const Json& subsystem) {
  if (flag_at(subsystem, "any_host")) return "any host";
  return fmt::format("{} hosts", list_at(subsystem, "hosts").size());
}

std::string status_text(const std::string& control, const Json& box) {
  std::string text = fmt::format("box at {}\n", control);
  for (const Json& each : list_at(box, "listeners")) {
    if (each.is_string()) text += fmt::format("  listens at {}\n", each.get<std::string>());
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& subsystem : list_at(box, "subsystems")) {
    text += fmt::format("  {}: {} namespaces, open to {}\n", text_at(subsystem, "nqn"),
                        number_at(subsystem, "namespaces"), hosts_text(subsystem));
    for (const Json& each : list_at(subsystem, "controllers")) {
      rows.push_back({fmt::format("    controller {}", number_at(each, "id")),
                      text_at(each, "host"), text_at(each, "address"),
                      fmt::format("{} queues", number_at(each, "queues"))});
    }
    if (const uint64_t more = number_at(subsystem, "controllers_more"); more > 0) {
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
    set_examples(app, {"cairn box status", "cairn box status --json | jq '.boxes[].subsystems'"});
  }
  Attempt<int> run() override {
    const auto answers = client_.ask_all({.command = Verb::kStatus});
    if (!answers) return std::unexpected(answers.error());
    Json boxes = Json::array();
    std::string text;
    for (const auto& [control, answer] : *answers) {
      text += status_text(control, answer);
      Json box = {{"control", control}};
      box.update(answer);
      boxes.push_back(std::move(box));
    }
    client_.print(Json{{"boxes", std::move(boxes)}}, text);
    return kExitOk;
  }

 private:
  BoxClient client_;
};

std::string stats_text(const Json& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"NQN", "NSID", "READS", "WRITES", "READ", "WRITTEN", "ERRORS"}};
  for (const Json& each : list_at(answer, "namespaces")) {
    const auto number = [&each](const char* name) { return number_at(each, name); };
    rows.push_back({text_at(each, "nqn"), fmt::format("{}", number("nsid")),
                    fmt::format("{}", number("reads")), fmt::format("{}", number("writes")),
                    text_bytes(number("bytes_read")), text_bytes(number("bytes_written")),
                    fmt::format("{}", number("media_errors"))});
  }
  std::string text = table_text(rows);
  for (const Json& each : list_at(answer, "authentication")) {
    const uint64_t succeeded = number_at(each, "succeeded");
    const uint64_t failed = number_at(each, "failed");
    if (succeeded + failed == 0) continue;
    text += fmt::format("{}: {} queues authenticated, {} failed to\n", text_at(each, "nqn"),
                        succeeded, failed);
  }
  if (const auto tls = answer.find("tls"); tls != answer.end()) {
    const uint64_t succeeded = number_at(*tls, "succeeded");
    const uint64_t failed = number_at(*tls, "failed");
    if (succeeded + failed > 0) {
      text += fmt::format("TLS: {} connections encrypted, {} refused\n", succeeded, failed);
    }
  }
  return text;
}

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn box stats", "cairn box stats --json"});
  }
  Attempt<int> run() override {
    const Attempt<Json> answer = client_.ask({.command = Verb::kStats});
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, stats_text(*answer));
    return kExitOk;
  }

 private:
  BoxClient client_;
};

}  // namespace

std::unique_ptr<Command> make_box_status(CLI::App& app) {
  return std::make_unique<StatusCommand>(app);
}
std::unique_ptr<Command> make_box_stats(CLI::App& app) {
  return std::make_unique<StatsCommand>(app);
}

}  // namespace cairn::apps
