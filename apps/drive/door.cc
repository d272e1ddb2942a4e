// SPDX-License-Identifier: Apache-2.0
// `cairn drive door add|remove`: doors for virtual machines, of drives that are served.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/serve/client.h"
#include "base/duration.h"
#include "server/serve/guest_socket.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

class DoorCommand : public Command {
 public:
  DoorCommand(CLI::App& app, Verb verb) : client_(app) {
    request_.command = verb;
    required(add_text(app, "NAME", request_.drive, "the drive"));
    add_door(app, "vfio-user", "an NVMe controller at this socket");
    add_door(app, "vhost-user", "a virtio disk at this socket");
  }

  Attempt<int> run() override {
    if (request_.door.empty()) return refuse("say which door: --vfio-user or --vhost-user SOCKET");
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(client_.json() ? ServerClient::json_text(*answer) : sentence(*answer));
    return kExitOk;
  }

 protected:
  virtual std::string sentence(const server::Json& answer) const = 0;
  server::ControlRequest request_;

 private:
  // The socket is named from here: who serves may run in another folder.
  void add_door(CLI::App& app, const std::string& kind, const char* what) {
    add_value(app, fmt::format("--{} SOCKET", kind), what,
              [this, kind](const std::string& text) -> Attempt<void> {
                if (!request_.door.empty()) return refuse("one door at a time");
                const Attempt<server::GuestArgs> args = server::parse_guest_args(text);
                if (!args) return std::unexpected(args.error());
                if (!args->drive.empty()) return refuse("NAME comes first: leave out NAME= here");
                const size_t mode = text.rfind(",mode=");
                request_.door = kind;
                request_.socket = args->socket;
                if (mode != text.npos) request_.socket += text.substr(mode);
                return {};
              });
  }

  ServerClient client_;
};

class AddCommand final : public DoorCommand {
 public:
  explicit AddCommand(CLI::App& app) : DoorCommand(app, Verb::kDoorAdd) {
    set_examples(app, {"cairn drive door add safe --vfio-user /run/vm.sock",
                       "cairn drive door add safe --vhost-user /run/vm.sock,mode=polling"});
  }

 private:
  std::string sentence(const server::Json& answer) const override {
    const std::string name = server::text_at(answer, "name");
    return fmt::format(
        "{} is for a virtual machine at {} now:\n"
        "  qemu-system-x86_64 $(cairn drive qemu-args {})\n",
        name, server::text_at(answer, "socket"), name);
  }
};

class RemoveCommand final : public DoorCommand {
 public:
  explicit RemoveCommand(CLI::App& app) : DoorCommand(app, Verb::kDoorRemove) {
    add_value(app, "--guest-timeout TIME", "for the guest to give a vfio-user device back (10s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                request_.guest_timeout_ms =
                    static_cast<uint32_t>(std::min<int64_t>(time->ns / 1'000'000, 86'400'000));
                return {};
              });
    set_examples(app, {"cairn drive door remove safe --vfio-user /run/vm.sock",
                       "cairn drive door remove safe --vfio-user /run/vm.sock --guest-timeout 1m"});
  }

 private:
  std::string sentence(const server::Json& answer) const override {
    return fmt::format("{} is not at {} any more\n", server::text_at(answer, "name"),
                       server::text_at(answer, "socket"));
  }
};

}  // namespace

std::unique_ptr<Command> make_drive_door_add(CLI::App& app) {
  return std::make_unique<AddCommand>(app);
}
std::unique_ptr<Command> make_drive_door_remove(CLI::App& app) {
  return std::make_unique<RemoveCommand>(app);
}

}  // namespace cairn::apps
