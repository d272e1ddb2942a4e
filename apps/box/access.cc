// SPDX-License-Identifier: Apache-2.0
// `cairn box hosts allow|deny` and `cairn box ana set`: who reaches what, and how well.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/box/client.h"
#include "apps/common/command.h"
#include "apps/common/confirm.h"
#include "base/words.h"
#include "nvme/format/limits.h"
#include "server/common/host_nqn.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

class HostsCommand final : public Command {
 public:
  HostsCommand(CLI::App& app, Verb verb) : client_(app), confirmation_(app) {
    request_.command = verb;
    add_value(app, "--host NQN", "the host, or any",
              [this](const std::string& text) -> Attempt<void> {
                // What is on a list may be taken off it, whatever it is.
                const bool is_named = request_.command == Verb::kHostsDeny || text == "any";
                if (Attempt<void> named = server::check_host_nqn(text); !is_named && !named)
                  return named;
                request_.host = text;
                return {};
              })
        ->required();
    const std::string line =
        fmt::format("cairn box hosts {} --host ", verb == Verb::kHostsAllow ? "allow" : "deny");
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
    const bool allowed = request_.command == Verb::kHostsAllow;
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
    if (request_.command == Verb::kHostsDeny) {
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

  BoxClient client_;
  Confirmation confirmation_;
  server::ControlRequest request_;
};

class AnaSet final : public Command {
 public:
  explicit AnaSet(CLI::App& app) : client_(app) {
    request_.command = Verb::kAnaSet;
    add_integer(app, "--group N", group_, {.min = 1, .max = nvme::kAnaGroupsMax},
                "the group of namespaces (1)");
    add_value(app, "--state STATE", comma_list(server::ana_words()),
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<nvme::AnaState> state = server::parse_ana(text);
                if (!state) return std::unexpected(state.error());
                request_.state = *state;
                return {};
              })
        ->required();
    set_examples(app, {"cairn box ana set --group 2 --state inaccessible"});
  }
  Attempt<int> run() override {
    request_.group = static_cast<uint32_t>(group_);
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer,
                  fmt::format("ANA group {} is {}\n", group_, server::ana_word(request_.state)));
    return kExitOk;
  }

 private:
  BoxClient client_;
  server::ControlRequest request_;
  int group_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_box_hosts_allow(CLI::App& app) {
  return std::make_unique<HostsCommand>(app, Verb::kHostsAllow);
}
std::unique_ptr<Command> make_box_hosts_deny(CLI::App& app) {
  return std::make_unique<HostsCommand>(app, Verb::kHostsDeny);
}
std::unique_ptr<Command> make_box_ana_set(CLI::App& app) { return std::make_unique<AnaSet>(app); }

}  // namespace cairn::apps
