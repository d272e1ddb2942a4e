// SPDX-License-Identifier: Apache-2.0
// Healer: opens volumes that nobody has open and that lack something, heals them, and gives them
// back. It is a client like any other, in the process of the arbiter that leads, and gives a volume
// up as soon as somebody else asks for it.
//
//   Healer healer(env, source, options);
//   ArbiterHost host(env, {..., .tenant = &healer}, ...);
//   gate.spawn(healer.run(host));                          // until stop()
//
// A volume lacks something when legs are stale or missing, or on a drive that leaves or is lost, or
// when its last holder did not close it. A drive that does not answer for long, or is another one
// than it was, is lost: while there are volumes that nobody has open, drives are looked at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "arbiter/tenant.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "volume/mega_vol.h"
#include "volume/volume_drive.h"

namespace cairn::arbiter {

struct HealerOptions {
  std::string name;            // of this process: boxes know it by names with that in them
  Duration look = 10_s;        // at volumes
  Duration probe = 60_s;       // at drives
  Duration probe_limit = 5_s;  // of each
  Duration lost_after = 600_s;
  Duration pause = 60_s;  // before it opens a volume again that it gave up, or could do nothing for
  size_t volumes_max = 2;             // at a time
  uint64_t rebuild_rate = 0;          // bytes per second of each; 0: any
  volume::VolumeOptions volume = {};  // but for the client's name, and the drives that are lost
};

class Healer final : public Tenant {
 public:
  // Both outlive it.
  Healer(env::Env& env, volume::MegaVolSource& source, HealerOptions options)
      : env_(env), source_(source), options_(std::move(options)) {}

  // Heals while the host leads, until stop(); then it has no volume open.
  task::Task<void> run(ArbiterHost& host);
  void stop() { stop_.request(); }
  task::Task<void> give_up(VolumeId id) override;

  struct Counters {
    uint64_t opened = 0;
    uint64_t healed = 0;  // of these: that lacked nothing in the end
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Job {
    explicit Job(task::CancelToken parent) : stop(parent) {}
    task::CancelSource stop;
  };
  // A drive that did not answer when it was last looked at.
  struct Away {
    Time since;
    bool is_gone = false;  // another one is in its place
  };

  void end_all();
  void look(ArbiterHost& host);
  bool needs_healing(const Volume& volume, const Pool& pool) const;
  bool is_lost(MegaVolId id) const;
  std::vector<MegaVolId> lost() const;
  task::Task<void> probe(ArbiterHost& host);
  task::Task<void> heal(ArbiterHost& host, VolumeId id, std::string name);
  task::Task<bool> wait_until_healed(const volume::VolumeDrive& drive, task::CancelToken stop);

  env::Env& env_;
  volume::MegaVolSource& source_;
  const HealerOptions options_;
  std::map<VolumeId, std::unique_ptr<Job>> jobs_;
  std::map<VolumeId, Time> not_before_;
  std::map<MegaVolId, Away> away_;
  Time next_probe_;
  Counters counters_;
  task::Event moved_;  // a job has ended
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::arbiter
