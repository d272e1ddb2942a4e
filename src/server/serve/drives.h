// SPDX-License-Identifier: Apache-2.0
// Drives: all drives of a server by name, opened and closed, and looked at once a second.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "drive/shared_sources.h"
#include "env/env.h"
#include "nvme/controller/registry.h"
#include "server/serve/hooks.h"
#include "server/serve/served_drive.h"
#include "stack/health_watch.h"
#include "task/task.h"

namespace cairn::server {

// On the control core; closed before it is destroyed. Knows no doors: whoever removes a drive has
// taken it from them.
class Drives final : private drive::HealthWatch::Owner {
 public:
  Drives(env::Env& env, const ServerHooks& hooks);

  const ServedDrives& all() const { return all_; }
  // The drive of this name, or the only one when the name is empty.
  Attempt<ServedDrive*> find(std::string_view name) const;
  // Null: there is none.
  ServedDrive* find(std::string_view nqn, uint32_t nsid) const;
  // A name for the drive of a namespace that nobody named, and that no other drive has.
  std::string free_name(std::string_view nqn, uint32_t nsid, bool is_first_subsystem) const;

  // Another one, not open. `space` has its name, which no other has, its number and its text.
  ServedDrive& add(std::string nqn, nvme::NamespaceOptions space);
  // Opens it: doors can open its source when it is done. `typed`: its text as a person wrote it,
  // or nothing; the Problem shows the place there. `format`: what its drives hold may be lost.
  task::Task<Attempt<void>> open(ServedDrive& drive, std::string typed, bool format);
  // Makes a single drive the one layer of a stack, so that its layers can be changed; a stack is
  // one already. On failure nothing has changed.
  task::Task<Attempt<void>> make_stack(ServedDrive& drive);
  // Has a drive that was a single one be so again, where its layers have become, or are still, what
  // it was: then each core opens it for itself. Waits for who looks at it.
  task::Task<void> make_single(ServedDrive& drive);
  // What no door has, and nobody uses.
  task::Task<void> remove(ServedDrive& drive);
  task::Task<void> close();

  // How well it was at the last look, a second ago at most; null: it is a single drive, and open.
  const drive::WatchedDrive* health(const ServedDrive& drive) const {
    return watch_.find(drive.name);
  }
  // Looks at all of them once a second from here on; look_now() at once, too.
  void watch() { watch_.start(); }
  task::Task<void> look_now();

 private:
  task::Task<Attempt<void>> fill(ServedDrive& drive, std::string text, bool format);
  // Where the next stack lives.
  CoreId next_home() { return CoreId(stacks_++ % env_.core_count()); }
  Attempt<void> check_unused(const ServedDrive& drive) const;
  task::Task<std::vector<drive::DriveHealth>> look() override;

  env::Env& env_;
  const ServerHooks& hooks_;
  drive::SharedSources shared_;  // of all stacks
  ServedDrives all_;
  uint32_t stacks_ = 0;  // that were given a core
  drive::HealthWatch watch_;
};

}  // namespace cairn::server
