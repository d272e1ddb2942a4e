// SPDX-License-Identifier: Apache-2.0
// `cairn drive list|show|edit|resize|tell`: drives that are served, looked at and changed.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "apps/common/command.h"
#include "apps/common/confirm.h"
#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/serve/client.h"
#include "base/duration.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "drive/source.h"
#include "server/control/health_json.h"
#include "server/open/open.h"
#include "server/serve/show.h"
#include "task/deadline.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

std::function<Attempt<void>(const std::string&)> into(std::string& text) {
  return [&text](const std::string& value) -> Attempt<void> {
    text = value;
    return {};
  };
}

// With whom its space was given to, if it was.
std::string stack_text(const server::Json& drive) {
  const std::string stack = drive::with_size_texts(server::text_at(drive, "stack"));
  const auto contract = drive.find("contract");
  if (contract == drive.end() || !contract->is_object()) return stack;
  return fmt::format("{} (given to drive {} of {})", stack, server::text_at(*contract, "drive"),
                     server::text_at(*contract, "owner"));
}

std::string size_text(const server::Json& drive) {
  return drive.contains("size") ? text_bytes(server::number_at(drive, "size")) : "-";
}

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn drive list", "cairn drive list --json | jq -r '.drives[].stack'"});
  }
  Attempt<int> run() override {
    const server::ControlRequest request{.command = Verb::kDriveList};
    const Attempt<server::Json> answer = run_errand<server::Json>(
        [&](env::Env& env) { return client_.ask_for_drives(env, request); });
    if (!answer) return std::unexpected(answer.error());
    std::vector<std::vector<std::string>> rows = {
        {"NAME", "HEALTH", "STACK", "SIZE", "NSID", "NQN", "CONTROL"}};
    std::string reasons;
    for (const server::Json& each : server::list_at(*answer, "drives")) {
      rows.push_back({server::text_at(each, "name"), server::text_at(each, "health"),
                      stack_text(each), size_text(each),
                      fmt::to_string(server::number_at(each, "nsid")), server::text_at(each, "nqn"),
                      server::text_at(each, "control")});
      const std::string lines = server::health_lines(each);
      if (!lines.empty()) reasons += fmt::format("\n{}\n{}", server::text_at(each, "name"), lines);
    }
    say(client_.json() ? ServerClient::json_text(*answer) : table_text(rows) + reasons);
    return kExitOk;
  }

 private:
  ServerClient client_;
};

class ShowCommand final : public Command {
 public:
  explicit ShowCommand(CLI::App& app) : client_(app) {
    add_value(app, "NAME", "a drive, when not all are to be shown", into(request_.drive));
    add_switch(app, "--prometheus", prometheus_, "print what Prometheus reads");
    add_switch(app, "--watch", watch_, "again and again, until Ctrl-C");
    add_value(app, "--interval TIME", "between two looks (1s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                interval_ = *time;
                return {};
              });
    request_.command = Verb::kDriveShow;
    set_examples(app, {"cairn drive show", "cairn drive show safe --watch",
                       "cairn drive show --json | jq '.drives[].layers[] | {path, iops}'"});
  }
  Attempt<int> run() override {
    const Attempt<int> shown = run_errand<int>([&](env::Env& env) { return show(env); });
    return shown;
  }

 private:
  task::Task<Attempt<int>> show(env::Env& env) {
    for (;;) {
      const Attempt<server::Json> answer = co_await client_.ask_for_drives(env, request_);
      if (env.stop_token().requested()) co_return kExitOk;
      if (!answer) co_return std::unexpected(answer.error());
      print(*answer);
      if (!watch_) co_return kExitOk;
      finish_output();
      const Result<void> slept = co_await task::sleep_for(env, interval_, env.stop_token());
      if (!slept) co_return kExitOk;
    }
  }
  void print(const server::Json& answer) const {
    if (prometheus_) return say(server::metrics_text(answer));
    if (client_.json()) {
      say(watch_ ? answer.dump(-1, ' ', true, server::Json::error_handler_t::replace) + "\n"
                 : ServerClient::json_text(answer));
      return;
    }
    if (watch_ && ::isatty(STDOUT_FILENO) == 1) say("\x1b[H\x1b[2J");
    say(server::show_text(answer));
  }

  ServerClient client_;
  server::ControlRequest request_;
  bool prometheus_ = false;
  bool watch_ = false;
  Duration interval_ = 1_s;
};

class EditCommand final : public Command {
 public:
  explicit EditCommand(CLI::App& app) : client_(app) {
    required(add_value(app, "NAME", "the drive", into(request_.drive)));
    add_value(app, "STACK", "what it is to be", [this](const std::string& text) {
      return take(server::parse_drive_args(text, server::LookUp::kNow));
    });
    add_value(app, "--file FILE", "what it is to be, as TOML", [this](const std::string& text) {
      return take(server::read_stack_file(text, server::LookUp::kNow));
    });
    add_switch(app, "--format", request_.format,
               "layers may take drives that are not blank: what those hold is lost");
    request_.command = Verb::kDriveEdit;
    set_examples(app, {"cairn drive edit safe 'limit(mirror(file:/a, file:/b), iops=5000)'",
                       "cairn drive edit safe --file stack.toml"});
  }
  Attempt<int> run() override {
    if (request_.stack.empty()) {
      return refuse("say what the drive is to be: a STACK, or --file FILE");
    }
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(client_.json()
            ? ServerClient::json_text(*answer)
            : fmt::format("{0} is changed. To have the same after a restart, serve it as\n"
                          "  cairn serve '{0}={1}'\n",
                          server::text_at(*answer, "name"),
                          drive::with_size_texts(server::text_at(*answer, "stack"))));
    return kExitOk;
  }

 private:
  // Here too, so that a mistake is told before anybody is asked, and because who serves may run in
  // another folder and should not wait for names to be looked up.
  Attempt<void> take(Attempt<server::DriveArgs> args) {
    if (!args) return std::unexpected(args.error());
    request_.stack = std::move(args->text);
    return {};
  }

  ServerClient client_;
  server::ControlRequest request_;
};

class ResizeCommand final : public Command {
 public:
  explicit ResizeCommand(CLI::App& app) : client_(app), confirmation_(app) {
    required(add_value(app, "NAME", "the drive", into(request_.drive)));
    required(add_value(app, "SIZE", "its new size, such as 512M or 8G",
                       [this](const std::string& text) -> Attempt<void> {
                         if (drive::parse_size(text, request_.size) && request_.size > 0) return {};
                         return refuse(
                             fmt::format("takes a number of bytes such as 512M or 8G, not {}",
                                         in_quotes(text)));
                       }));
    request_.command = Verb::kDriveResize;
    set_examples(app, {"cairn drive resize safe 16G", "cairn drive resize safe 4G --yes"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> list =
        client_.ask({.command = Verb::kDriveList, .drive = request_.drive});
    if (!list) return std::unexpected(list.error());
    for (const server::Json& each : server::list_at(*list, "drives")) {
      const uint64_t size = server::number_at(each, "size");
      if (size <= request_.size) continue;
      const Attempt<void> confirmed = confirmation_.ask(
          fmt::format("drive {} shrinks from {} to {}: what is in its last {} is lost",
                      server::text_at(each, "name"), text_bytes(size), text_bytes(request_.size),
                      text_bytes(size - request_.size)));
      if (!confirmed) return std::unexpected(confirmed.error());
    }
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(client_.json() ? ServerClient::json_text(*answer)
                       : fmt::format("{} has {} now. NBD clients see it when they connect again\n",
                                     server::text_at(*answer, "name"),
                                     text_bytes(server::number_at(*answer, "size"))));
    return kExitOk;
  }

 private:
  ServerClient client_;
  Confirmation confirmation_;
  server::ControlRequest request_;
};

class TellCommand final : public Command {
 public:
  explicit TellCommand(CLI::App& app) : client_(app) {
    required(add_value(app, "NAME", "the drive", into(request_.drive)));
    required(add_value(app, "LAYER", "its path such as 0.1, or its service's name",
                       into(request_.layer)));
    required(any_number(add_values(app, "ARGS", "what it is to do",
                                   [this](const std::string& text) -> Attempt<void> {
                                     request_.args.push_back(text);
                                     return {};
                                   })));
    request_.command = Verb::kDriveTell;
    set_examples(app, {"cairn drive tell safe checksum scrub"});
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

class RetryCommand final : public Command {
 public:
  explicit RetryCommand(CLI::App& app) : client_(app) {
    required(add_value(app, "NAME", "the drive", into(request_.drive)));
    request_.command = Verb::kDriveRetry;
    set_examples(app, {"cairn drive retry safe"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(client_.json() ? ServerClient::json_text(*answer)
                       : fmt::format("{} {}\n", server::text_at(*answer, "name"),
                                     server::flag_at(*answer, "was_open") ? "was open already"
                                                                          : "is open now"));
    return kExitOk;
  }

 private:
  ServerClient client_;
  server::ControlRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_drive_retry(CLI::App& app) {
  return std::make_unique<RetryCommand>(app);
}
std::unique_ptr<Command> make_drive_list(CLI::App& app) {
  return std::make_unique<ListCommand>(app);
}
std::unique_ptr<Command> make_drive_show(CLI::App& app) {
  return std::make_unique<ShowCommand>(app);
}
std::unique_ptr<Command> make_drive_edit(CLI::App& app) {
  return std::make_unique<EditCommand>(app);
}
std::unique_ptr<Command> make_drive_resize(CLI::App& app) {
  return std::make_unique<ResizeCommand>(app);
}
std::unique_ptr<Command> make_drive_tell(CLI::App& app) {
  return std::make_unique<TellCommand>(app);
}

}  // namespace cairn::apps
