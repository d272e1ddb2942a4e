// SPDX-License-Identifier: Apache-2.0
// `cairn host list|add|remove`: who may connect to the subsystems of a running server.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/confirm.h"
#include "apps/serve/client.h"
#include "base/table.h"
#include "server/common/host_nqn.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

class ChangeCommand final : public Command {
 public:
  ChangeCommand(CLI::App& app, Verb verb) : client_(app), confirmation_(app) {
    request_.command = verb;
    add_value(app, "NQN", "the host, or any", [this](const std::string& text) -> Attempt<void> {
      // What is on a list may be taken off it, whatever it is.
      const bool is_named = request_.command == Verb::kHostRemove || text == "any";
      if (Attempt<void> named = server::check_host_nqn(text); !is_named && !named) return named;
      request_.host = text;
      return {};
    })->required();
    const std::string line =
        fmt::format("cairn host {} ", verb == Verb::kHostAdd ? "add" : "remove");
    set_examples(app, {line + "nqn.2014-08.org.nvmexpress:uuid:UUID", line + "any"});
  }
  Attempt<int> run() override {
    const Attempt<std::string> loss = this->loss();
    if (!loss) return std::unexpected(loss.error());
    if (!loss->empty()) {
      const Attempt<void> confirmed = confirmation_.ask(*loss);
      if (!confirmed) return std::unexpected(confirmed.error());
    }
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    const bool allowed = request_.command == Verb::kHostAdd;
    client_.print(*answer, fmt::format("{} may {}connect\n", request_.host, allowed ? "" : "not "));
    return kExitOk;
  }

 private:
  // Who loses the subsystem by this; empty: nobody.
  Attempt<std::string> loss() const {
    const Attempt<server::Json> status = client_.ask({.command = Verb::kStatus});
    if (!status) return std::unexpected(status.error());
    const std::vector<server::Json> subsystems = server::list_at(*status, "subsystems");
    if (subsystems.size() != 1) return "";  // the box says which there are
    return loss_in(subsystems.front());
  }

  std::string loss_in(const server::Json& subsystem) const {
    const std::string nqn = server::text_at(subsystem, "nqn");
    const bool is_open = server::flag_at(subsystem, "any_host");
    const bool is_any = request_.host == "any";
    std::set<std::string> connected;
    for (const server::Json& each : server::list_at(subsystem, "controllers")) {
      connected.insert(server::text_at(each, "host"));
    }
    const auto who = [&connected] {
      return connected.empty() ? std::string()
                               : fmt::format(", and these are connected and lose it: {}",
                                             fmt::join(connected, ", "));
    };
    if (request_.command == Verb::kHostRemove) {
      const server::Json hosts = subsystem.value("hosts", server::Json::array());
      const bool is_last = !is_open && hosts == server::Json::array({request_.host});
      if (!is_any && !is_last) return "";
      return fmt::format("no host may connect to {} any more{}", nqn, who());
    }
    connected.erase(request_.host);
    if (is_any || !is_open || connected.empty()) return "";
    return fmt::format("{} is open to every host, and is closed to all but {}{}", nqn,
                       request_.host, who());
  }

  ServerClient client_;
  Confirmation confirmation_;
  server::ControlRequest request_;
};

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn host list", "cairn host list --nqn nqn.2026-11.io.cairn:NAME"});
  }
  Attempt<int> run() override {
    const auto answers = client_.ask_all({.command = Verb::kStatus});
    if (!answers) return std::unexpected(answers.error());
    std::vector<std::vector<std::string>> rows = {{"NQN", "HOST", "CONNECTED"}};
    server::Json subsystems = server::Json::array();
    for (const auto& [control, answer] : *answers) {
      for (const server::Json& each : server::list_at(answer, "subsystems")) {
        add_rows(each, rows);
        subsystems.push_back({{"nqn", server::text_at(each, "nqn")},
                              {"any_host", server::flag_at(each, "any_host")},
                              {"hosts", each.value("hosts", server::Json::array())},
                              {"connected", connected_to(each)}});
      }
    }
    client_.print(server::Json{{"subsystems", std::move(subsystems)}}, table_text(rows));
    return kExitOk;
  }

 private:
  static std::set<std::string> connected_to(const server::Json& subsystem) {
    std::set<std::string> hosts;
    for (const server::Json& each : server::list_at(subsystem, "controllers")) {
      hosts.insert(server::text_at(each, "host"));
    }
    return hosts;
  }
  static void add_rows(const server::Json& subsystem, std::vector<std::vector<std::string>>& rows) {
    const std::string nqn = server::text_at(subsystem, "nqn");
    const size_t before = rows.size();
    std::set<std::string> connected = connected_to(subsystem);
    if (server::flag_at(subsystem, "any_host")) rows.push_back({nqn, "any", ""});
    for (const server::Json& each : server::list_at(subsystem, "hosts")) {
      const std::string host = each.is_string() ? each.get<std::string>() : "";
      rows.push_back({nqn, host, connected.erase(host) > 0 ? "yes" : "no"});
    }
    for (const std::string& host : connected) rows.push_back({nqn, host, "yes"});
    if (rows.size() == before) rows.push_back({nqn, "nobody", ""});
  }

  ServerClient client_;
};

}  // namespace

std::unique_ptr<Command> make_host_list(CLI::App& app) {
  return std::make_unique<ListCommand>(app);
}
std::unique_ptr<Command> make_host_add(CLI::App& app) {
  return std::make_unique<ChangeCommand>(app, Verb::kHostAdd);
}
std::unique_ptr<Command> make_host_remove(CLI::App& app) {
  return std::make_unique<ChangeCommand>(app, Verb::kHostRemove);
}

}  // namespace cairn::apps
