// SPDX-License-Identifier: Apache-2.0
// UpHealth: how well `cairn up` is, in one word, and why: each reason with the drive or the volume
// that it is about, since when, how far its mending is, and the command that says more or helps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "server/serve/server.h"
#include "server/up/up_keeper.h"

namespace cairn::server {

struct UpReason {
  drive::Health health = drive::Health::kDegraded;
  std::string code;    // "drive_failed", "drive_lost", "drive_new", "replicas_missing", ...
  std::string drive;   // empty: it is about none
  std::string volume;  // the same
  std::string what;
  std::string command;
  std::optional<uint64_t> left;  // of what is mended: extents
  std::optional<uint64_t> percent;
  Time since;
};

// One core. What it looks at outlives it.
class UpHealth {
 public:
  UpHealth(env::Env& env, const UpFolder& folder, const UpKeeper& keeper)
      : env_(env), folder_(folder), keeper_(keeper) {}

  // The server of volumes, once it is there; `keys` says whether keys are served.
  void set_server(const Server* server) { server_ = server; }
  void set_serves_keys(bool serves) { serves_keys_ = serves; }

  // As it is now. Remembers since when each reason is there.
  const std::vector<UpReason>& look();
  // "health" and "reasons", "drives" and "volumes".
  Json json();

 private:
  void add(UpReason reason);
  void look_at_drives();
  void look_at_lost();
  void look_at_volumes();
  void look_at_doors();

  struct Known {
    Time since;
    uint64_t most = 0;  // that was left to be mended
    bool is_there = false;
  };

  env::Env& env_;
  const UpFolder& folder_;
  const UpKeeper& keeper_;
  const Server* server_ = nullptr;
  bool serves_keys_ = false;
  std::vector<UpReason> reasons_;
  std::map<std::string, Known> known_;
};

}  // namespace cairn::server
