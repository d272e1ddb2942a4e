// SPDX-License-Identifier: Apache-2.0
// DriveFaults: what happens to the drives of a simulated cluster, to its boxes and to its letters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/rng.h"
#include "base/units.h"
#include "tests/volume/mail_link.h"
#include "volume/medium_testing.h"
#include "world/sim/cluster.h"

namespace cairn::volume_tests {

class DriveFaults {
 public:
  // Both outlive it. `can_lose` says whether everything is also elsewhere, so that a drive may lose
  // all of it for good.
  DriveFaults(volume::TestMedia& media, Mail& mail,
              std::function<bool(const std::string& uri)> can_lose)
      : media_(media), mail_(mail), can_lose_(std::move(can_lose)) {}

  // Something happens to drives now and then.
  void hurt(Rng& rng);
  // A box with one drive goes away for longer than a lease, or arbiters alone do not reach it;
  // often a client dies with it.
  void lose_boxes(sim::Cluster& cluster, Rng& rng);
  bool is_box_away() const { return lost_box_ != nullptr; }
  void heal();

 private:
  volume::TestMedia& media_;
  Mail& mail_;
  const std::function<bool(const std::string& uri)> can_lose_;
  volume::TestMedium* lost_box_ = nullptr;  // null: all are there
  Time lost_until_;
  bool has_lost_one_ = false;
  uint32_t until_power_fails_ = 0;  // ticks in which no drive loses power
};

}  // namespace cairn::volume_tests
