// SPDX-License-Identifier: Apache-2.0
// Subject: what takes part in a measurement of volumes: a volume, a stripe or one plain drive, over
// drives that are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "bench/volume/media.h"
#include "bench/volume/pool_scene.h"
#include "bench/world_load.h"
#include "env/env.h"
#include "loadgen/drive_load.h"
#include "model/flash/parameters.h"
#include "task/task.h"

namespace cairn::bench {

enum class Layout : uint8_t { kPlain, kStripe, kVolume };

struct SubjectArgs {
  Layout layout = Layout::kVolume;
  size_t drives = 1;
  uint32_t replicas = 1;    // of a volume
  uint64_t bytes = 64_MiB;  // what is used of it: a volume is so large
  uint64_t drive_bytes = 1_GiB;
  bool is_steered = false;   // a volume: counted, ordered and held to slices
  bool leaves_last = false;  // of a volume: nothing of it is on the pool's last drive
  std::shared_ptr<const flash::Parameters> flash = nullptr;  // what models drives; null: in memory
};

class Subject {
 public:
  // Open, and all that is used of it written.
  static task::Task<Result<std::unique_ptr<Subject>>> open(env::Env& env, SubjectArgs args);
  // Use open().
  Subject(env::Env& env, SubjectArgs args);
  ~Subject();

  drive::Drive& drive() { return *drive_; }
  const SubjectArgs& args() const { return args_; }
  // Of a volume.
  PoolScene& pool() { return *pool_; }
  volume::VolumeDrive& volume() { return static_cast<volume::VolumeDrive&>(*drive_); }
  // A load on what is used of it. The error of a request is one of this.
  task::Task<Result<loadgen::LoadResult>> run(loadgen::DriveLoad load);
  task::Task<void> close();

 private:
  task::Task<Result<void>> begin();
  Result<std::unique_ptr<Media>> make_media();
  task::Task<Result<void>> begin_volume(std::unique_ptr<Media> media);
  task::Task<Result<void>> begin_stack(std::unique_ptr<Media> media);

  env::Env& env_;
  const SubjectArgs args_;
  class MediaLeaves;
  std::unique_ptr<MediaLeaves> leaves_;  // of what is no volume
  std::unique_ptr<PoolScene> pool_;      // of a volume
  std::unique_ptr<drive::Drive> drive_;
};

// Runs `body(env)` in a world of its own: by this machine's clock, or in virtual time.
using Body = std::function<task::Task<void>(env::Env& env)>;
Result<void> run_in_world(const WorldFactory& world, const Body& body);
void run_simulated(const Body& body);

}  // namespace cairn::bench
