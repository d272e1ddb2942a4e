// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/drive_faults.h"

#include <fmt/format.h>

#include "tests/volume/cluster_facts.h"

namespace cairn::volume_tests {

using volume::TestMedium;

void DriveFaults::hurt(Rng& rng) {
  TestMedium& medium = *media_.at(uri_of(rng.below(kDrives)));
  const uint64_t what = rng.below(100);
  if (until_power_fails_ > 0) --until_power_fails_;
  if (what < 10 && until_power_fails_ > 0) return;
  if (what < 8) {
    medium.lose_power();
  } else if (what < 10) {
    for (auto& [uri, each] : media_) each->lose_power();
  } else if (what < 14) {
    medium.is_down = true;
  } else if (what < 30) {
    for (auto& [uri, each] : media_) each->is_down = false;
  } else if (what < 33) {
    medium.write_errors = 0.2;
  } else if (what < 36) {
    medium.read_errors = 0.2;
  } else if (what < 50) {
    for (auto& [uri, each] : media_) each->read_errors = each->write_errors = 0;
  } else if (what < 52) {
    mail_.loss = 0.3;
  } else if (what < 60) {
    mail_.loss = rng.bernoulli(0.5) ? 0.02 : 0;
  } else if (what == 60 && !has_lost_one_) {
    const std::string uri = uri_of(rng.below(kDrives));
    if (!can_lose_(uri)) return;
    has_lost_one_ = true;
    // Whoever has a volume open has to notice that first: drives that lose power count as lacking
    // what another one has, which would be this one.
    until_power_fails_ = 20;
    media_.at(uri)->empty();
  }
}

void DriveFaults::lose_boxes(sim::Cluster& cluster, Rng& rng) {
  if (lost_box_ != nullptr && cluster.now() >= lost_until_) {
    lost_box_->is_cut_off = lost_box_->is_down = false;
    lost_box_ = nullptr;
  }
  if (lost_box_ != nullptr || !rng.bernoulli(0.05)) return;
  lost_box_ = media_.at(uri_of(rng.below(kDrives))).get();
  lost_until_ =
      cluster.now() + Duration{static_cast<int64_t>(rng.between(6'000, 20'000))} * 1'000'000;
  lost_box_->is_cut_off = true;
  lost_box_->is_down = rng.bernoulli(0.5);
  sim::Node& client = cluster.node(fmt::format("client{}", rng.below(2)));
  if (rng.bernoulli(0.8) && client.is_running() && !client.is_paused()) {
    client.kill();
    client.restart();
  }
}

void DriveFaults::heal() {
  mail_.loss = 0;
  lost_box_ = nullptr;
  for (auto& [uri, each] : media_) {
    each->is_down = each->is_cut_off = false;
    each->read_errors = each->write_errors = 0;
  }
}

}  // namespace cairn::volume_tests
