// SPDX-License-Identifier: Apache-2.0
// Serving drives and stacks in any world, from the first drive to the last reply.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "door/nbd/keys.h"
#include "door/nbd/server.h"
#include "door/vhost_user/server.h"
#include "drive/source.h"
#include "env/address.h"
#include "env/env.h"
#include "server/common/options.h"
#include "server/common/stranger_log.h"
#include "server/open/open.h"
#include "server/open/pending_source.h"
#include "server/open/stack_source.h"
#include "server/serve/box.h"
#include "server/serve/guest_socket.h"
#include "server/serve/move.h"
#include "server/serve/vfio_door.h"
#include "server/serve/views.h"
#include "stack/health_watch.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::server {

class DriveServer;

struct DriveServeOptions {
  std::vector<DriveArgs> drives;  // with names, each another; their plans are taken
  std::vector<env::Address> nbd;
  std::vector<BoxListener> nvme;
  std::vector<VfioArgs> vfio;
  std::vector<GuestSocket> vhost;  // of drives, by name
  // Whose namespaces the drives are, in order: its NQN, and which hosts may connect to it.
  BoxSubsystem subsystem;
  // The key of such a host in a file.
  std::function<Attempt<nvme::AuthSecret>(const std::string& path)> read_key;
  std::function<Attempt<nvme::TlsKey>(const std::string& path)> read_tls_key;
  bool read_only = false;
  // NBD clients must come through TLS; both null: without.
  const door::nbd::NbdKeys* keys = nullptr;
  const tls::Certificate* certificate = nullptr;
  int nbd_connections_max = 1024;
  Duration nbd_idle_timeout = 600_s;  // docs/door.md
  Duration drain_timeout = 10_s;
  std::function<void(config::LogLevel, std::string_view)> log;
  // Where to listen for those who look at the drives and change them; none: nobody can.
  std::function<Attempt<std::string>()> control_path;
  // A door came at this socket, or the one there is gone; null: nobody is told.
  std::function<void(const std::string& socket, bool is_there)> door_changed;
  // Clients can connect. With the path of the control socket.
  std::function<void(const DriveServer&, const std::string& control)> ready;

  const std::string& nqn() const { return subsystem.options.nqn; }
};

// Gives every drive a name: d0, d1 and so on where none was given. The Problem: a name comes twice.
Attempt<void> name_drives(std::vector<DriveArgs>& drives);

// A drive that is open, with its doors.
struct ServedDrive {
  std::string name;
  std::string text;
  std::unique_ptr<drive::Source> source;
  StackSource* stack = nullptr;      // what `source` is; null: a source of its own
  PendingSource* pending = nullptr;  // what `source` is, if it could not be opened at first
  std::string problem;               // why it is not open; empty: it is
  CoreId home{};                     // of a stack
  std::unique_ptr<BoxPlace> moved;   // where its layers are; null: here
  std::optional<GuestSocket> vhost;  // where a virtual machine finds it; none: nowhere
};

// Lives on the control core of any world; knows neither the command line nor files.
class DriveServer final : private drive::HealthWatch::Owner {
 public:
  DriveServer(env::Env& env, DriveServeOptions& options);

  // Opens the drives, then the doors. A drive that does not open keeps nobody else down: its name
  // and number wait for it, it is tried again by itself, after 5 s and ever more rarely up to 60 s,
  // and the log says so. The Problem says what could not be bound, or that no drive could be
  // opened, and what to do. close() follows in any case.
  task::Task<Attempt<void>> open();
  // Takes no more requests, answers those in flight, then closes everything.
  task::Task<void> close();

  const std::vector<env::Address>& nbd() const { return nbd_at_; }
  const std::vector<env::Address>& nvme() const { return nvme_at_; }
  const std::vector<VfioController>& vfio() const { return vfio_at_; }
  const std::vector<ServedDrive>& drives() const { return drives_; }
  // The drive of this name, or the only one when the name is empty.
  Attempt<ServedDrive*> find(std::string_view name);
  env::Env& env() { return env_; }

  // Tries again to open a drive that could not be. The Problem says why it still cannot.
  task::Task<Attempt<void>> reopen(std::string name);
  // How well it was at the last look, a second ago at most; null: it is a single drive, and open.
  const drive::WatchedDrive* health(const ServedDrive& drive) const {
    return watch_.find(drive.name);
  }

  // Changes a drive's size at every door. Hosts at the NVMe door and guests are told; clients at
  // the NBD door learn it when they connect again.
  task::Task<Attempt<void>> resize(std::string name, uint64_t bytes);
  // In bytes. kNotFound.
  Result<uint64_t> size(const std::string& name) { return nbd_.size(name); }

  // A door for virtual machines, of a drive that is served, comes or goes. The Problem says why it
  // does not, and what to do; nothing has changed then.
  enum class DoorKind : uint8_t { kVfioUser, kVhostUser };
  task::Task<Attempt<void>> add_door(DoorKind kind, GuestArgs words);
  // The guest of a vfio-user door is asked to give the device back, one of a vhost-user door cannot
  // be asked; what is in flight is done, and at `until` at the latest the door is gone.
  task::Task<Attempt<void>> remove_door(DoorKind kind, GuestArgs words, Time until);

 private:
  // Drives (serve_drives.cc).
  task::Task<Attempt<void>> open_drives();
  task::Task<Attempt<std::unique_ptr<drive::Source>>> open_source(DriveArgs& words, CoreId home);
  task::Task<Attempt<void>> add_export(const ServedDrive& drive);
  void note_size(const ServedDrive& drive, const drive::Spec& spec);
  task::Task<void> reopen_all();
  bool has_failed() const;
  task::Task<std::vector<drive::DriveHealth>> look() override;

  task::Task<Attempt<void>> open_nvme();
  task::Task<Attempt<void>> open_box();
  task::Task<Attempt<void>> open_vfio();
  task::Task<Attempt<void>> open_nbd();
  task::Task<Attempt<void>> open_vhost();
  task::Task<Attempt<void>> serve_vhost(const ServedDrive& drive, GuestSocket socket);
  task::Task<Attempt<void>> add_vfio(std::string drive, GuestArgs words);
  task::Task<Attempt<void>> add_vhost(ServedDrive& drive, GuestArgs words);
  task::Task<Attempt<void>> remove_vfio(std::string socket, Time until);
  task::Task<Attempt<void>> remove_vhost(ServedDrive& drive, std::string socket, Time until);
  // Those who write to the drive learn that others will.
  task::Task<void> expect_other_writers(const ServedDrive& drive);
  // One with its drives, unless there is one.
  task::Task<Attempt<void>> add_subsystem_of(const VfioController& controller);
  task::Task<Attempt<void>> resize_in_turn(std::string name, uint64_t bytes);
  // What a change of a drive's size takes at each door that has it, in order.
  using Resizing = std::function<task::Task<Attempt<void>>(uint64_t bytes)>;
  std::vector<Resizing> resizings_of(const ServedDrive& drive);
  task::Task<Attempt<void>> resize_at_nbd(std::string name, uint64_t bytes);
  task::Task<Attempt<void>> resize_at_vhost(std::string name, uint64_t bytes);
  task::Task<void> close_nbd();
  task::Task<void> close_nvme();
  task::Task<void> close_vhost();

  env::Env& env_;
  DriveServeOptions& options_;
  drive::SharedSources shared_;  // of all stacks
  std::vector<ServedDrive> drives_;
  std::unique_ptr<Box> box_;  // the NVMe door
  std::unique_ptr<VfioDoor> vfio_;
  DriveViews views_;
  StrangerLog strangers_;
  door::nbd::NbdServer nbd_;
  door::vhost_user::VhostServer vhost_;
  std::vector<env::Address> nbd_at_;
  std::vector<env::Address> nvme_at_;
  std::vector<VfioController> vfio_at_;
  uint32_t vhost_sources_ = 0;   // single drives that were given a core
  task::Semaphore changing_{1};  // doors and sizes, one change at a time
  drive::HealthWatch watch_;
  task::CancelSource closing_;
  task::Gate reopening_;
};

// Serves until the world is asked to stop. `options` outlives the task.
task::Task<Attempt<void>> serve_drives(env::Env& env, DriveServeOptions& options);

// How NBD clients come: in the clear, or through TLS, with the name of a key or without one.
struct NbdWay {
  bool is_secure = false;
  std::string user;
};
// What a client on this machine calls an export, for nbdinfo, qemu and all that use libnbd.
std::string nbd_uri(const env::Address& at, const std::string& name, const NbdWay& way);

}  // namespace cairn::server
