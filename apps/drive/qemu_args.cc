// SPDX-License-Identifier: Apache-2.0
// `cairn drive qemu-args`: the words with which QEMU uses a drive that is served.
#include "apps/drive/qemu_args.h"

#include <fmt/format.h>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/serve/client.h"
#include "base/words.h"
#include "config/json_text.h"
#include "door/vhost_user/options.h"
#include "drive/source.h"
#include "server/serve/guest_socket.h"

namespace cairn::apps {

namespace {

class QemuArgsCommand final : public Command {
 public:
  explicit QemuArgsCommand(CLI::App& app) : client_(app) {
    add_text(app, "NAME", request_.drive, "the drive, when several are served");
    add_value(app, "--memory SIZE", "of the guest, which is shared with us (2G)",
              [this](const std::string& text) -> Attempt<void> {
                uint64_t size = 0;
                if (!drive::parse_size(text, size) || size == 0) {
                  return refuse(fmt::format("takes a number of bytes such as 512M or 8G, not {}",
                                            in_quotes(text)));
                }
                args_.memory = text;
                return {};
              });
    add_integer(app, "--queues N", args_.queues, {1, door::vhost_user::kQueuesMax},
                "as many as the guest has processors (1)");
    add_switch(app, "--packed", args_.packed, "virtqueues in the packed layout");
    add_switch(app, "--boot", args_.boot, "the guest boots from it");
    request_.command = server::ControlRequest::Command::kDriveList;
    set_examples(app, {"qemu-system-x86_64 -M q35 $(cairn drive qemu-args d0 --queues 2) -smp 2"});
  }
  Attempt<int> run() override {
    const Attempt<server::Json> answer = run_errand<server::Json>(
        [&](env::Env& env) { return client_.ask_for_drives(env, request_); });
    if (!answer) return std::unexpected(answer.error());
    std::vector<std::string> names;
    for (const server::Json& each : server::list_at(*answer, "drives")) {
      const std::string disk = server::text_at(each, "vhost_user");
      const std::string controller = server::text_at(each, "vfio_user");
      if (disk.empty() && controller.empty()) continue;
      args_.drive = server::text_at(each, "name");
      args_.vfio = disk.empty();
      args_.socket = args_.vfio ? controller : disk;
      names.push_back(args_.drive);
    }
    if (names.empty()) {
      return refuse(
          "no such drive is served to virtual machines: serve it with --vhost-user SOCK "
          "or --vfio-user SOCK");
    }
    if (names.size() > 1) {
      return refuse(fmt::format("{} drives are served to virtual machines: name one of {}",
                                names.size(), comma_list(names)));
    }
    say(server::qemu_args(args_));
    return kExitOk;
  }

 private:
  ServerClient client_;
  server::ControlRequest request_;
  server::QemuArgs args_;
};

}  // namespace

std::unique_ptr<Command> make_drive_qemu_args(CLI::App& app) {
  return std::make_unique<QemuArgsCommand>(app);
}

}  // namespace cairn::apps
