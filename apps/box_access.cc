// SPDX-License-Identifier: Apache-2.0
// `cairn box hosts allow|deny` and `cairn box ana set`: who reaches what, and how well.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/box_client.h"
#include "apps/command.h"
#include "apps/words.h"
#include "nvme/limits.h"

namespace cairn::apps {

namespace {

using Verb = ControlRequest::Command;

class HostsCommand final : public Command {
 public:
  HostsCommand(CLI::App& app, Verb verb) : client_(app) {
    request_.command = verb;
    add_value(app, "--host NQN", "the host, or any",
              [this](const std::string& text) -> Attempt<void> {
                request_.host = text;
                return {};
              })
        ->required();
    const std::string line =
        fmt::format("cairn box hosts {} --host ", verb == Verb::kHostsAllow ? "allow" : "deny");
    set_examples(app, {line + "nqn.2014-08.org.nvmexpress:uuid:UUID", line + "any"});
  }
  Attempt<int> run() override {
    const Attempt<Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    const bool allowed = request_.command == Verb::kHostsAllow;
    client_.print(*answer, fmt::format("{} may {}connect\n", request_.host, allowed ? "" : "not "));
    return kExitOk;
  }

 private:
  BoxClient client_;
  ControlRequest request_;
};

class AnaSet final : public Command {
 public:
  explicit AnaSet(CLI::App& app) : client_(app) {
    request_.command = Verb::kAnaSet;
    add_integer(app, "--group N", group_, {.min = 1, .max = nvme::kAnaGroupsMax},
                "the group of namespaces (1)");
    add_value(app, "--state STATE", comma_list(ana_words()),
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<nvme::AnaState> state = parse_ana(text);
                if (!state) return std::unexpected(state.error());
                request_.state = *state;
                return {};
              })
        ->required();
    set_examples(app, {"cairn box ana set --group 2 --state inaccessible"});
  }
  Attempt<int> run() override {
    request_.group = static_cast<uint32_t>(group_);
    const Attempt<Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, fmt::format("ANA group {} is {}\n", group_, ana_word(request_.state)));
    return kExitOk;
  }

 private:
  BoxClient client_;
  ControlRequest request_;
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
