// SPDX-License-Identifier: Apache-2.0
// UpHealth: how well `cairn up` is, in one word, and why: each reason with the drive or the volume
// that it is about, since when, how far its mending is, and the command that says more or helps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "drive/drive.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "server/events/conditions.h"
#include "server/serve/server.h"
#include "server/up/up_keeper.h"

namespace cairn::server {

// One core. What it looks at outlives it.
class UpHealth {
 public:
  UpHealth(env::Env& env, const UpFolder& folder, const UpKeeper& keeper, EventLog& events)
      : env_(env), folder_(folder), keeper_(keeper), conditions_(env, &events, "process", "up") {}

  // The server of volumes, once it is there; `keys` says whether keys are served.
  void set_server(const Server* server) { server_ = server; }
  void set_serves_keys(bool serves) { serves_keys_ = serves; }

  // Added to commands that ask the arbiter: " --arbiter unix:..." where it is not the usual one.
  void set_arbiter_option(std::string option) { arbiter_option_ = std::move(option); }

  // As it is now; each change is an event.
  const std::vector<KnownCondition>& look();
  drive::Health worst() const { return conditions_.worst(); }
  // "health" and "reasons", "drives" and "volumes".
  Json json();

 private:
  void look_at_drives(std::vector<Condition>& all) const;
  void look_at_lost(std::vector<Condition>& all) const;
  void look_at_volumes(std::vector<Condition>& all) const;
  void look_at_doors(std::vector<Condition>& all) const;
  void look_at_layers(std::vector<Condition>& all) const;
  std::string pool_list() const { return "cairn pool list" + arbiter_option_; }
  std::string volume_show(const std::string& name) const {
    return "cairn volume show " + name + arbiter_option_;
  }
  Json drives_json() const;
  Json volumes_json() const;

  env::Env& env_;
  const UpFolder& folder_;
  const UpKeeper& keeper_;
  const Server* server_ = nullptr;
  bool serves_keys_ = false;
  std::string arbiter_option_;
  Conditions conditions_;
};

}  // namespace cairn::server
