// SPDX-License-Identifier: Apache-2.0
// `cairn box ns add|remove|resize|list`: namespaces of a running box.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/box/client.h"
#include "apps/common/command.h"
#include "apps/common/confirm.h"
#include "apps/common/output.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "drive/source.h"
#include "nvme/format/limits.h"
#include "server/open/take_drive.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

constexpr config::IntegerRange kNsids = {.min = 1, .max = nvme::kNsidMax};

// Shared by those that change a namespace: its request, sent when it is run.
class NsCommand : public Command {
 public:
  NsCommand(CLI::App& app, Verb command) : client_(app) { request_.command = command; }

 protected:
  void add_nsid(CLI::App& app, std::string help, bool required) {
    CLI::Option* option = add_integer(app, "--nsid N", nsid_, kNsids, std::move(help));
    if (required) option->required();
  }
  Attempt<server::Json> ask() {
    request_.nsid = static_cast<uint32_t>(nsid_);
    return client_.ask(request_);
  }
  // The namespace as it is; null: the box says what is wrong when it is asked for the change.
  Attempt<server::Json> look() const {
    const Attempt<server::Json> list = client_.ask({.command = Verb::kNsList});
    if (!list) return std::unexpected(list.error());
    server::Json found;
    for (const server::Json& each : server::list_at(*list, "namespaces")) {
      if (server::number_at(each, "nsid") != static_cast<uint64_t>(nsid_)) continue;
      // Which of two is meant is not said, and one under contract is not touched.
      if (!found.is_null() || each.contains("contract")) return server::Json();
      found = each;
    }
    return found;
  }

  BoxClient client_;
  server::ControlRequest request_;
  int nsid_ = 0;
};

class NsAdd final : public NsCommand {
 public:
  explicit NsAdd(CLI::App& app) : NsCommand(app, Verb::kNsAdd) {
    add_value(app, "--drive STACK",
              "mem:size=1G, file:PATH,size=8G, flash:profile=NAME,size=4G, or services over such",
              [this](const std::string& text) { return take_words(text); })
        ->required();
    add_nsid(app, "its number (the next that none has had)", false);
    add_integer(app, "--ana-group N", group_, {.min = 1, .max = nvme::kAnaGroupsMax},
                "its ANA group (1)");
    add_value(app, "--uuid UUID", "its UUID (made from the names)",
              [this](const std::string& text) -> Attempt<void> {
                request_.uuid = text;
                return {};
              });
    add_switch(app, "--read-only", request_.read_only, "hosts may not write");
    add_switch(app, "--format", request_.format,
               "layers may take drives that are not blank: what those hold is lost");
    set_examples(app, {"cairn box ns add --drive mem:size=1G",
                       "cairn box ns add --nsid 3 --drive file:/srv/d3,size=8G --ana-group 2"});
  }
  Attempt<int> run() override {
    request_.group = static_cast<uint32_t>(group_);
    const Attempt<server::Json> answer = ask();
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer,
                  fmt::format("namespace {} is added\n", server::number_at(*answer, "nsid")));
    return kExitOk;
  }

 private:
  // Here too, so that a mistake is told before anybody is asked, and because the box may run in
  // another folder.
  Attempt<void> take_words(const std::string& text) {
    nvme::NamespaceOptions options;
    if (Attempt<void> taken = server::take_drive(text, server::LookUp::kNow, options); !taken)
      return taken;
    request_.drive = options.drive_text();
    return {};
  }
  int group_ = 1;
};

class NsRemove final : public NsCommand {
 public:
  explicit NsRemove(CLI::App& app) : NsCommand(app, Verb::kNsRemove), confirmation_(app) {
    add_nsid(app, "its number", true);
    set_examples(app, {"cairn box ns remove --nsid 3", "cairn box ns remove --nsid 3 --yes"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> space = look();
    if (!space) return std::unexpected(space.error());
    if (!space->is_null()) {
      const Attempt<void> confirmed = confirmation_.ask(fmt::format(
          "namespace {} of {} ({}, {}) goes, also for hosts that use it: what it has in memory is "
          "lost, files stay",
          nsid_, server::text_at(*space, "nqn"), text_bytes(server::number_at(*space, "size")),
          drive::with_size_texts(server::text_at(*space, "drive"))));
      if (!confirmed) return std::unexpected(confirmed.error());
    }
    const Attempt<server::Json> answer = ask();
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, fmt::format("namespace {} is removed\n", nsid_));
    return kExitOk;
  }

 private:
  Confirmation confirmation_;
};

class NsResize final : public NsCommand {
 public:
  explicit NsResize(CLI::App& app) : NsCommand(app, Verb::kNsResize), confirmation_(app) {
    add_nsid(app, "its number", true);
    add_value(app, "--size SIZE", "its new size, such as 512M or 8G",
              [this](const std::string& text) -> Attempt<void> {
                if (drive::parse_size(text, request_.size) && request_.size > 0) return {};
                return refuse(fmt::format("takes a number of bytes such as 512M or 8G, not {}",
                                          in_quotes(text)));
              })
        ->required();
    set_examples(app, {"cairn box ns resize --nsid 1 --size 16G"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> space = look();
    if (!space) return std::unexpected(space.error());
    if (const uint64_t size = server::number_at(*space, "size"); size > request_.size) {
      const Attempt<void> confirmed = confirmation_.ask(
          fmt::format("namespace {} of {} shrinks from {} to {}: what is in its last {} is lost",
                      nsid_, server::text_at(*space, "nqn"), text_bytes(size),
                      text_bytes(request_.size), text_bytes(size - request_.size)));
      if (!confirmed) return std::unexpected(confirmed.error());
    }
    const Attempt<server::Json> answer = ask();
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer,
                  fmt::format("namespace {} has {} now\n", nsid_, text_bytes(request_.size)));
    return kExitOk;
  }

 private:
  Confirmation confirmation_;
};

class NsRetry final : public NsCommand {
 public:
  explicit NsRetry(CLI::App& app) : NsCommand(app, Verb::kNsRetry) {
    add_nsid(app, "its number", true);
    set_examples(app, {"cairn box ns retry --nsid 3"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = ask();
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, fmt::format("namespace {} is served\n", nsid_));
    return kExitOk;
  }
};

// With whom it was given to, if it was.
std::string drive_text(const server::Json& space) {
  const std::string drive = drive::with_size_texts(server::text_at(space, "drive"));
  const auto contract = space.find("contract");
  if (contract == space.end() || !contract->is_object()) return drive;
  return fmt::format("{} (given to drive {} of {})", drive, server::text_at(*contract, "drive"),
                     server::text_at(*contract, "owner"));
}

std::string text_of(const server::Json& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"NQN", "NSID", "HEALTH", "SIZE", "BLOCK", "ANA", "UUID", "DRIVE"}};
  for (const server::Json& each : server::list_at(answer, "namespaces")) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {server::text_at(each, "nqn"), fmt::format("{}", server::number_at(each, "nsid")),
           server::text_at(each, "health")};
    if (!server::text_at(each, "problem").empty()) {
      row.insert(row.end(), {"-", "-", "-", "-", drive_text(each)});
      continue;
    }
    row.insert(row.end(), {text_bytes(server::number_at(each, "size")),
                           fmt::format("{}", server::number_at(each, "block_size")),
                           fmt::format("{} {}", server::number_at(each, "ana_group"),
                                       server::text_at(each, "ana_state")),
                           server::text_at(each, "uuid"), drive_text(each)});
  }
  return table_text(rows);
}

class NsList final : public Command {
 public:
  explicit NsList(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn box ns list", "cairn box ns list --json | jq '.namespaces[].nsid'"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = client_.ask({.command = Verb::kNsList});
    if (!answer) return std::unexpected(answer.error());
    client_.print(*answer, text_of(*answer));
    return kExitOk;
  }

 private:
  BoxClient client_;
};

}  // namespace

std::unique_ptr<Command> make_box_ns_add(CLI::App& app) { return std::make_unique<NsAdd>(app); }
std::unique_ptr<Command> make_box_ns_remove(CLI::App& app) {
  return std::make_unique<NsRemove>(app);
}
std::unique_ptr<Command> make_box_ns_retry(CLI::App& app) { return std::make_unique<NsRetry>(app); }
std::unique_ptr<Command> make_box_ns_resize(CLI::App& app) {
  return std::make_unique<NsResize>(app);
}
std::unique_ptr<Command> make_box_ns_list(CLI::App& app) { return std::make_unique<NsList>(app); }

}  // namespace cairn::apps
