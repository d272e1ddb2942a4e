// SPDX-License-Identifier: Apache-2.0
// Doors: where drives are reached that is not NVMe/TCP: NBD, and virtual machines by vhost-user and
// vfio-user.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "door/nbd/keys.h"
#include "door/nbd/server.h"
#include "door/vhost_user/server.h"
#include "env/address.h"
#include "env/env.h"
#include "server/common/stranger_log.h"
#include "server/serve/drives.h"
#include "server/serve/guest_socket.h"
#include "server/serve/hooks.h"
#include "server/serve/nvme_door.h"
#include "server/serve/vfio_door.h"
#include "server/serve/views.h"
#include "task/task.h"

namespace cairn::server {

struct DoorOptions {
  std::vector<env::Address> nbd;
  std::vector<VfioArgs> vfio;
  std::vector<GuestSocket> vhost;  // of drives, by name
  // NBD clients must come through TLS; both null: without. Outlive the server.
  const door::nbd::NbdKeys* keys = nullptr;
  const tls::Certificate* certificate = nullptr;
  int nbd_connections_max = 1024;
  Duration nbd_idle_timeout = 600_s;  // docs/door.md
};

// A door for virtual machines.
enum class GuestDoor : uint8_t { kVfioUser, kVhostUser };

// On the control core; one change at a time. Space that was given away is at none of these doors.
class Doors {
 public:
  // What it is given outlives it. `nqn`: the subsystem of controllers that have all its drives.
  Doors(env::Env& env, const DoorOptions& options, const ServerOptions& server,
        const ServerHooks& hooks, Drives& drives, NvmeDoor& nvme, StrangerLog& strangers);

  // Once the drives are there, those that could be opened in the registry: opens every door. The
  // Problem says what could not be bound, and what to do.
  task::Task<Attempt<void>> open();
  // Takes no more requests, answers those in flight, then closes. Before the registry.
  task::Task<void> close();

  // Another drive, or one that could not be opened, and now is.
  task::Task<Attempt<void>> add(ServedDrive& drive);
  task::Task<Attempt<void>> opened(ServedDrive& drive);
  // Why a drive cannot be taken away, and what to do first.
  Attempt<void> check_removable(const ServedDrive& drive) const;
  // Ends the clients of one that can be.
  task::Task<void> remove(const ServedDrive& drive);

  // What a change of a drive's size takes at each of these doors, in order.
  using Resizing = std::function<task::Task<Attempt<void>>(uint64_t bytes)>;
  std::vector<Resizing> resizings_of(const ServedDrive& drive);

  // The Problem says why not, and what to do; nothing has changed then.
  task::Task<Attempt<void>> add_guest(GuestDoor kind, ServedDrive& drive, GuestArgs args);
  // The guest of a vfio-user door is asked to give the device back, one of a vhost-user door cannot
  // be asked; what is in flight is done, and at `until` at the latest the door is gone.
  task::Task<Attempt<void>> remove_guest(GuestDoor kind, ServedDrive& drive, GuestArgs args,
                                         Time until);

  const std::vector<env::Address>& nbd() const { return nbd_at_; }
  const std::vector<VfioController>& vfio() const { return vfio_at_; }

 private:
  task::Task<Attempt<void>> open_vfio(std::vector<std::string> names);
  task::Task<Attempt<void>> open_nbd();
  task::Task<Attempt<void>> serve_vhost(const ServedDrive& drive, GuestSocket socket);
  task::Task<Attempt<void>> add_vfio(ServedDrive& drive, GuestArgs args);
  task::Task<Attempt<void>> add_vhost(ServedDrive& drive, GuestArgs args);
  task::Task<Attempt<void>> remove_vfio(std::string socket, Time until);
  task::Task<Attempt<void>> remove_vhost(ServedDrive& drive, std::string socket, Time until);
  // Those who write to the drive learn that others will.
  task::Task<void> expect_other_writers(const ServedDrive& drive);
  // The subsystem of a controller with its drives, unless there is one.
  task::Task<Attempt<void>> add_subsystem_of(const VfioController& controller);
  task::Task<Attempt<void>> resize_at_nbd(std::string name, uint64_t bytes);
  task::Task<Attempt<void>> resize_at_vhost(std::string name, uint64_t bytes);
  task::Task<Attempt<void>> resize_at(std::string nqn, uint64_t bytes);
  task::Task<void> close_nbd();
  task::Task<void> close_vhost();

  const std::string& nqn() const { return server_.subsystems.front().options.nqn; }
  bool is_at_nbd(const ServedDrive& drive) const {
    return !options_.nbd.empty() && drive.space.owner.empty();
  }

  env::Env& env_;
  const DoorOptions& options_;
  const ServerOptions& server_;
  const ServerHooks& hooks_;
  Drives& drives_;
  NvmeDoor& nvme_;
  DriveViews views_;
  door::nbd::NbdServer nbd_;
  door::vhost_user::VhostServer vhost_;
  std::unique_ptr<VfioDoor> vfio_;
  std::vector<env::Address> nbd_at_;
  std::vector<VfioController> vfio_at_;
  uint32_t vhost_sources_ = 0;  // single drives that were given a core
};

// How NBD clients come: in the clear, or through TLS, with the name of a key or without one.
struct NbdWay {
  bool is_secure = false;
  std::string user;
};
// What a client on this machine calls an export, for nbdinfo, qemu and all that use libnbd.
std::string nbd_uri(const env::Address& at, const std::string& name, const NbdWay& way);

}  // namespace cairn::server
