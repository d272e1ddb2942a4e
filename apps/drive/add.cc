// SPDX-License-Identifier: Apache-2.0
// `cairn drive add|remove|ana|snapshot`: drives of a running server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/common/command.h"
#include "apps/common/confirm.h"
#include "apps/serve/client.h"
#include "base/units.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "nvme/format/limits.h"
#include "server/open/open.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

std::function<Attempt<void>(const std::string&)> into(std::string& text) {
  return [&text](const std::string& value) -> Attempt<void> {
    text = value;
    return {};
  };
}

class AddCommand final : public Command {
 public:
  explicit AddCommand(CLI::App& app) : client_(app) {
    request_.command = Verb::kDriveAdd;
    // Here too, so that a mistake is told before anybody is asked, and because the server may run
    // in another folder.
    add_value(app, "STACK",
              "[NAME=] and mem:size=1G, file:PATH,size=8G, flash:profile=NAME,size=4G, or services "
              "over such",
              [this](const std::string& text) {
                return take(server::parse_drive_args(text, server::LookUp::kNow));
              });
    add_value(app, "--file [NAME=]FILE", "a stack that the file holds as TOML",
              [this](const std::string& text) {
                return take(server::read_stack_file(text, server::LookUp::kNow));
              });
    add_integer(app, "--nsid N", nsid_, {.min = 1, .max = nvme::kNsidMax},
                "its namespace's number (the next that none has had)");
    add_integer(app, "--ana-group N", group_, {.min = 1, .max = nvme::kAnaGroupsMax},
                "its ANA group (1)");
    add_value(app, "--uuid UUID", "its UUID (made from the names)", into(request_.uuid));
    add_switch(app, "--read-only", request_.read_only, "clients may not write");
    add_switch(app, "--format", request_.format,
               "layers may take drives that are not blank: what those hold is lost");
    set_examples(app, {"cairn drive add mem:size=1G",
                       "cairn drive add 'safe=mirror(file:/a,size=8G, file:/b,size=8G)'",
                       "cairn drive add file:/srv/d3,size=8G --nsid 3 --ana-group 2"});
  }
  Attempt<int> run() override {
    if (request_.stack.empty()) return refuse("say what the drive is: a STACK, or --file FILE");
    request_.nsid = static_cast<uint32_t>(nsid_);
    request_.group = static_cast<uint32_t>(group_);
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    client_.print(
        *answer, fmt::format("drive {} is added as namespace {}\n",
                             server::text_at(*answer, "name"), server::number_at(*answer, "nsid")));
    return kExitOk;
  }

 private:
  Attempt<void> take(Attempt<server::DriveArgs> args) {
    if (!args) return std::unexpected(args.error());
    request_.drive = std::move(args->name);
    request_.stack = std::move(args->text);
    return {};
  }

  ServerClient client_;
  server::ControlRequest request_;
  int nsid_ = 0;
  int group_ = 1;
};

class RemoveCommand final : public Command {
 public:
  explicit RemoveCommand(CLI::App& app) : client_(app), confirmation_(app) {
    request_.command = Verb::kDriveRemove;
    add_value(app, "NAME", "the drive", into(request_.drive))->required();
    set_examples(app, {"cairn drive remove d3", "cairn drive remove d3 --yes"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> list =
        client_.ask({.command = Verb::kDriveList, .drive = request_.drive});
    if (!list) return std::unexpected(list.error());
    for (const server::Json& each : server::list_at(*list, "drives")) {
      if (each.contains("contract")) continue;  // the server says why it stays
      const Attempt<void> confirmed = confirmation_.ask(fmt::format(
          "drive {} ({}, {}) goes, also for clients that use it: what it has in memory is lost, "
          "files stay",
          server::text_at(each, "name"), text_bytes(server::number_at(each, "size")),
          drive::with_size_texts(server::text_at(each, "stack"))));
      if (!confirmed) return std::unexpected(confirmed.error());
    }
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, fmt::format("drive {} is removed\n", server::text_at(*answer, "name")));
    return kExitOk;
  }

 private:
  ServerClient client_;
  Confirmation confirmation_;
  server::ControlRequest request_;
};

class AnaCommand final : public Command {
 public:
  explicit AnaCommand(CLI::App& app) : client_(app) {
    request_.command = Verb::kDriveAna;
    add_integer(app, "--group N", group_, {.min = 1, .max = nvme::kAnaGroupsMax},
                "the group of drives (1)");
    add_value(app, "--state STATE", comma_list(server::ana_state_names()),
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<nvme::AnaState> state = server::parse_ana(text);
                if (!state) return std::unexpected(state.error());
                request_.state = *state;
                return {};
              })
        ->required();
    set_examples(app, {"cairn drive ana --group 2 --state inaccessible"});
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
  ServerClient client_;
  server::ControlRequest request_;
  int group_ = 1;
};

class SnapshotCommand final : public Command {
 public:
  explicit SnapshotCommand(CLI::App& app) : client_(app) {
    request_.command = Verb::kDriveTell;
    request_.layer = "snapshot";
    request_.args = {"take"};
    add_value(app, "NAME", "the drive, whose stack has one snapshot layer", into(request_.drive))
        ->required();
    add_value(app, "LABEL", "what the version is called, beside its number",
              [this](const std::string& text) -> Attempt<void> {
                request_.args.push_back(text);
                return {};
              });
    set_examples(app, {"cairn drive snapshot safe", "cairn drive snapshot safe monday"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, server::text_at(*answer, "said") + "\n");
    return kExitOk;
  }

 private:
  ServerClient client_;
  server::ControlRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_drive_add(CLI::App& app) { return std::make_unique<AddCommand>(app); }
std::unique_ptr<Command> make_drive_remove(CLI::App& app) {
  return std::make_unique<RemoveCommand>(app);
}
std::unique_ptr<Command> make_drive_ana(CLI::App& app) { return std::make_unique<AnaCommand>(app); }
std::unique_ptr<Command> make_drive_snapshot(CLI::App& app) {
  return std::make_unique<SnapshotCommand>(app);
}

}  // namespace cairn::apps
