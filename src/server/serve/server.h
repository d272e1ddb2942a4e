// SPDX-License-Identifier: Apache-2.0
// Server: drives, at every door there is, and how both are changed while they are used. Lives on
// the control core of any world; knows neither the command line nor files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "nvme/controller/registry.h"
#include "server/common/options.h"
#include "server/common/stranger_log.h"
#include "server/config/changes.h"
#include "server/config/reservation_files.h"
#include "server/open/open_stack.h"
#include "server/serve/doors.h"
#include "server/serve/drives.h"
#include "server/serve/hooks.h"
#include "server/serve/nvme_door.h"
#include "stack/live_stack.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::server {

class Server final {
 public:
  // `options` has a subsystem at least. `changes`: what was kept before the restart.
  Server(env::Env& env, ServerOptions options, ServerChanges changes, ServerHooks hooks,
         DoorOptions doors = {});

  // Opens the drives, then the doors. A drive that does not open keeps nobody else down: its name
  // and number wait for it, it is tried again by itself, after 5 s and ever more rarely up to 60 s,
  // and the log says so. The Problem says what could not be bound, or that no drive could be
  // opened, and what to do. close() follows in any case.
  task::Task<Attempt<void>> open();
  // Takes no more requests, answers those in flight, then closes everything.
  task::Task<void> close();

  env::Env& env() { return env_; }
  NvmeDoor& nvme() { return nvme_; }
  const NvmeDoor& nvme() const { return nvme_; }
  nvme::Registry& registry() { return nvme_.registry(); }
  const nvme::Registry& registry() const { return nvme_.registry(); }
  const Doors& doors() const { return doors_; }
  const ServerOptions& options() const { return options_; }
  const DoorOptions& door_options() const { return door_options_; }
  Duration uptime() const { return env_.now() - started_; }

  const ServedDrives& drives() const { return drives_.all(); }
  // The drive of this name, or the only one when the name is empty.
  Attempt<ServedDrive*> find(std::string_view name) const { return drives_.find(name); }
  // How well it was at the last look, a second ago at most; null: it is a single drive, and open.
  const drive::WatchedDrive* health(const ServedDrive& drive) const {
    return drives_.health(drive);
  }
  // Nothing while the drive is not open.
  std::optional<nvme::NamespaceInfo> info(const ServedDrive& drive) const;

  // Changes while serving. Clients see them at once; they are kept before the call is done. When
  // they cannot be kept the Problem says that they are made all the same; any other Problem says
  // that nothing has changed. An empty `nqn` means the only subsystem there is.
  //
  // A drive at all doors but those of virtual machines. Without a name or a number it gets one.
  task::Task<Attempt<ServedDrive*>> add_drive(std::string nqn, nvme::NamespaceOptions space,
                                              bool format = false);
  // Its clients lose it.
  task::Task<Attempt<void>> remove_drive(std::string name);
  // Clients at the NBD door learn it when they connect again, all others are told.
  task::Task<Attempt<void>> resize_drive(std::string name, uint64_t bytes);
  // Makes it another stack. Gives its text.
  task::Task<Attempt<std::string>> edit_drive(std::string name, std::unique_ptr<StackPlan> to);
  // Has its layers leave for the box at the control socket `box`, reached by `via` or as it says
  // itself; or come back from there. Gives how long requests waited.
  task::Task<Attempt<Duration>> move_drive(std::string name, std::string box, std::string via);
  task::Task<Attempt<Duration>> bring_back(std::string name);
  // Tries again to open a drive that could not be. The Problem says why it still cannot.
  task::Task<Attempt<void>> reopen_drive(std::string name);
  // A command for one layer.
  task::Task<Attempt<std::string>> tell_drive(std::string name, std::string layer,
                                              std::vector<std::string> args);
  // The layers of its stack as they are now. None: it is a single drive, or not open.
  task::Task<std::optional<drive::LayerInfo>> layers(std::string name);

  // A door for virtual machines comes or goes.
  task::Task<Attempt<void>> add_door(GuestDoor kind, GuestArgs args);
  task::Task<Attempt<void>> remove_door(GuestDoor kind, GuestArgs args, Time until);

  task::Task<Attempt<void>> set_ana_state(std::string nqn, uint32_t group, nvme::AnaState state);
  // "any" opens a subsystem to every host, or closes it to all.
  task::Task<Attempt<void>> allow_host(std::string nqn, std::string host);
  task::Task<Attempt<void>> deny_host(std::string nqn, std::string host);

  // Space that is given away (server_contracts.cc): a drive of the contract's id, which nobody
  // removes or changes before the contract ends. All or nothing: what cannot be kept is not done.
  task::Task<Result<uint32_t>> add_contract(rack::Contract contract,
                                            nvme::NamespaceOptions options);
  task::Task<Result<void>> confirm_contract(rack::Contract contract);
  // Ends it. With a file it stays among those that have ended until it is forgotten, through
  // restarts too. One that has ended before is no error.
  task::Task<Result<void>> remove_contract(rack::Contract contract, bool has_file);
  // Nothing is left of it.
  task::Task<void> forget_contract(rack::Contract contract);
  std::vector<rack::Contract> contracts() const;
  std::vector<rack::Contract> ended_contracts() const;

 private:
  // Held while a change is made and kept: one at a time.
  struct Turn {
    task::Units held;
    std::string nqn;
    ServedDrive* drive = nullptr;
  };
  task::Task<Attempt<task::Units>> take_turn();
  task::Task<Attempt<Turn>> take_turn(std::string nqn);
  task::Task<Attempt<Turn>> take_turn_of(std::string drive);

  // At the start (server.cc).
  Attempt<void> add_subsystems();
  Attempt<void> add_drives(const SubsystemConfig& subsystem);
  void tell_unconfigured(const SubsystemConfig& subsystem);
  Attempt<void> name_drives();
  task::Task<Attempt<void>> open_drives();
  task::Task<Attempt<void>> set_ana_states(const SubsystemConfig& subsystem);
  bool has_failed() const;
  task::Task<void> reopen_all();

  // Drives (server_drives.cc).
  task::Task<Attempt<void>> open_drive(ServedDrive& drive, std::string typed, bool format);
  task::Task<Attempt<void>> attach(ServedDrive& drive);
  void note_size(const ServedDrive& drive);
  // Whether nobody has its number or its name.
  Attempt<void> check_new(const std::string& nqn, const nvme::NamespaceOptions& space) const;
  // Serves another one, and puts it among those added.
  task::Task<Attempt<ServedDrive*>> serve_added(std::string nqn, nvme::NamespaceOptions space,
                                                bool format);
  // Stops serving one at every door, and forgets its reservations.
  task::Task<void> stop_serving(ServedDrive& drive);
  task::Task<void> stop_serving(std::string nqn, uint32_t nsid);
  task::Task<Attempt<void>> resize_at_every_door(ServedDrive& drive, uint64_t bytes);
  task::Task<Attempt<void>> resize_namespace(std::string nqn, uint32_t nsid, uint64_t bytes);
  // It is open, and nobody's by contract.
  Attempt<void> check_changeable(const ServedDrive& drive) const;
  task::Task<Attempt<Duration>> move_to_box(ServedDrive& drive, BoxPlace& place);
  task::Task<Attempt<Duration>> move_back(ServedDrive& drive);
  // Of a drive that is not open.
  task::Task<Attempt<Duration>> open_back(ServedDrive& drive);

  // What is kept (server_changes.cc).
  Attempt<void> save() const { return hooks_.keep ? hooks_.keep(changes_) : Attempt<void>{}; }
  // `what` was done, and holds whether it can be kept or not.
  Attempt<void> keep(std::string_view what);
  // A number for another namespace: above all there were, so that no host remembers it; from the
  // lowest again when those have run out.
  uint32_t next_nsid(const std::string& nqn) const;
  // What a drive's size, and what its text is from now on, in what is kept.
  void set_size(const ServedDrive& drive, uint64_t bytes);
  void set_text(ServedDrive& drive, const std::string& text);
  // Its layers are in a box, or back from there.
  void set_place(ServedDrive& drive, const BoxPlace& place);
  void set_back(ServedDrive& drive);
  // Refused while the drive is under contract.
  Attempt<void> check_free(const ServedDrive& drive) const;
  Attempt<void> set_access(const std::string& nqn, HostAccess access);
  HostAccess access_of(std::string_view nqn) const;

  env::Env& env_;
  Time started_;
  ServerOptions options_;
  const DoorOptions door_options_;
  ServerChanges changes_;
  const ServerHooks hooks_;
  std::optional<ReservationFiles> reservations_;
  StrangerLog strangers_;
  Drives drives_;
  NvmeDoor nvme_;
  Doors doors_;
  std::map<std::string, std::set<uint32_t>, std::less<>> configured_;  // nsids, by NQN
  task::CancelSource closing_;
  task::Gate reopening_;
  task::Semaphore changing_{1};
};

}  // namespace cairn::server
