// SPDX-License-Identifier: Apache-2.0
// UpKeeper: keeps the pool of `cairn up` as it should be: each drive of the folder is a member, a
// member whose drive is lost leaves as soon as its copies are elsewhere, and the usual volumes are
// there. It looks twice a second, and tells what it saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arbiter/arbiter_wire_format.h"
#include "arbiter/remote_arbiter.h"
#include "arbiter/views.h"
#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "env/env.h"
#include "server/serve/server.h"
#include "server/up/up_folder.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::server {

inline constexpr const char* kUpVolume = "vol0";
inline constexpr const char* kUpKeyVolume = "kv0";
inline constexpr uint32_t kUpReplicas = 3;

// What was seen last.
struct UpPool {
  std::string problem;  // why the arbiter could not be asked; empty: it was
  std::string stuck;    // what could not be done about a drive, and why; empty: all could
  arbiter::PoolView pool;
  std::vector<arbiter::VolumeView> volumes;
};

// One core.
class UpKeeper {
 public:
  using Log = std::function<void(config::LogLevel, std::string_view)>;
  // All outlive it. `box` serves the drives; `arbiter` leads the pool.
  UpKeeper(env::Env& env, UpFolder& folder, Server& box,
           std::unique_ptr<arbiter::RemoteArbiter> arbiter, Log log);

  // Each drive is a member, and the volumes are there. Needs an arbiter that leads.
  task::Task<Attempt<void>> begin();
  // From here on it looks by itself.
  void start();
  task::Task<void> close();

  // A drive fails, and all that it holds is lost; soon another one is put in its place. The
  // Problem: there is no such drive, or it has failed already.
  task::Task<Attempt<void>> fail_drive(std::string name);
  bool has_failed(const UpDrive& drive) const;

  // How the pool calls a drive; and whether that is a drive of this folder that is lost.
  std::string uri_of(const UpDrive& drive) const;
  bool is_lost(const arbiter::DriveView& drive) const;
  // By the name that it has here; empty: it is another box's.
  std::string name_of(const arbiter::DriveView& drive) const;
  const UpPool& seen() const { return seen_; }

 private:
  task::Task<Attempt<void>> look();
  task::Task<void> look_always();
  task::Task<Attempt<void>> add_drives();
  task::Task<Attempt<void>> make_volumes();
  task::Task<Attempt<void>> give_up_lost();
  task::Task<void> put_back(size_t index);
  bool is_ours(const std::string& uri) const;
  // Until the call's own time is over.
  template <class T = void>
  task::Task<Attempt<T>> ask(arbiter::CallArgs request);

  env::Env& env_;
  UpFolder& folder_;
  Server& box_;
  const std::unique_ptr<arbiter::RemoteArbiter> arbiter_;
  const Log log_;
  UpPool seen_;
  std::vector<size_t> failed_;  // drives that are away
  // Of members that were lost, by their URIs: what they were called.
  std::vector<std::pair<std::string, std::string>> former_;
  task::CancelSource stop_;
  task::Gate gate_;
};

// The subsystem of the drives, and one of them as its box has it.
std::string up_box_nqn(const UpIdentity& identity);
nvme::NamespaceOptions up_space(const UpFolder& folder, const UpDrive& drive);

}  // namespace cairn::server
