// SPDX-License-Identifier: Apache-2.0
#include "apps/serve/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/common/output.h"
#include "apps/serve/run.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/common/reach.h"

namespace cairn::apps {

namespace {

// A client finds ca-cert.pem, and if it must show one its own certificate, in a folder.
std::string with_credentials(const std::string& uri, const server::NbdConfig& nbd) {
  const char joint = uri.find('?') == std::string::npos ? '?' : '&';
  if (nbd.tls_psk.empty()) return fmt::format("{}{}tls-certificates=FOLDER", uri, joint);
  return fmt::format("{}{}tls-psk-file={}", uri, joint, nbd.tls_psk);
}

void greet_nbd(const server::Server& server, const server::NbdConfig& nbd) {
  const server::DoorOptions& doors = server.door_options();
  const server::NbdWay way{.is_secure = doors.keys != nullptr || doors.certificate != nullptr,
                           .user = doors.keys != nullptr ? doors.keys->names().front() : ""};
  for (const env::Address& at : server.doors().nbd()) {
    for (const auto& drive : server.drives()) {
      if (!drive->problem.empty() || !drive->space.owner.empty()) continue;
      const std::string uri = server::nbd_uri(at, drive->name, way);
      say(fmt::format("serving {} as {} at {}\n", drive::with_size_texts(drive->text), drive->name,
                      at.text()));
      say(fmt::format("  nbdinfo '{}'\n", way.is_secure ? with_credentials(uri, nbd) : uri));
      if (way.is_secure) continue;
      say(fmt::format("  qemu-system-x86_64 -drive file='{}',format=raw,if=virtio\n", uri));
    }
  }
}
void greet_nvme(const server::Server& server) {
  const std::vector<env::Address>& listening = server.nvme().listening();
  for (size_t i = 0; i < listening.size(); ++i) {
    const server::ListenerOptions& listener = server.options().listeners[i];
    const server::Reach near = server::reach(listening[i]);
    for (const std::string& nqn : nqns_of(server.options())) {
      const auto& only = listener.subsystems;
      if (!only.empty() && std::ranges::find(only, nqn) == only.end()) continue;
      for (const auto& drive : server.drives()) {
        if (drive->nqn != nqn || !drive->problem.empty()) continue;
        say(fmt::format("serving {} as {}, namespace {} at {}\n",
                        drive::with_size_texts(drive->text), drive->name, drive->space.nsid,
                        listening[i].text()));
      }
      say(fmt::format("serving {} at {}\n", nqn, listening[i].text()));
      say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}{}\n", near.host, near.port, nqn,
                      listener.tls ? " --tls" : ""));
    }
  }
}

void greet_guests(const server::Server& server) {
  for (const server::VfioController& controller : server.doors().vfio()) {
    say(fmt::format("serving {} as an NVMe controller at {}\n", comma_list(controller.drives),
                    controller.socket));
    if (controller.drives.size() == 1) {
      say(fmt::format("  qemu-system-x86_64 $(cairn drive qemu-args {}) ...\n",
                      controller.drives.front()));
    } else {
      say(fmt::format("  qemu-system-x86_64 -device '{}' ... (with shared memory)\n",
                      server::vfio_qemu_device(controller.socket)));
    }
  }
  for (const auto& drive : server.drives()) {
    if (!drive->vhost) continue;
    say(
        fmt::format("serving {0} to a virtual machine at {1}\n"
                    "  qemu-system-x86_64 $(cairn drive qemu-args {0}) ...\n",
                    drive->name, drive->vhost->at.path));
  }
}

}  // namespace

void greet(const server::Server& server, const server::ServerConfig& config) {
  greet_nbd(server, config.nbd);
  greet_nvme(server);
  greet_guests(server);
}

}  // namespace cairn::apps
