// SPDX-License-Identifier: Apache-2.0
// A vhost-user server and a driver in the test's own world, over memory or a disk.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "door/vhost_user/driver.h"
#include "door/vhost_user/server.h"
#include "drive/source.h"
#include "env/sharing.h"
#include "task/task.h"
#include "testing/drive/seen_source.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::door_tests {

using conformance::Conformance;
using conformance::must;
using conformance::pattern;
using conformance::Scene;
using conformance::WorldNames;
using conformance::Worlds;
using door::vhost_user::BlkRange;
using door::vhost_user::BlkStatus;
using door::vhost_user::BlkType;
using door::vhost_user::Driver;
using door::vhost_user::DriverOptions;
using door::vhost_user::VhostOptions;
using door::vhost_user::VhostServer;
using task::Task;

// Opened, used, closed; on one core of any world.
class VhostDoor {
 public:
  // One whose socket was used a moment ago takes another `number`.
  VhostDoor(env::Env& env, Scene& scene, VhostOptions options = {}, uint64_t number = 0)
      : env_(env),
        address(scene.local_socket("vhost" + std::to_string(number)).value()),
        server_(env, std::move(options)) {}

  Task<void> open(const std::string& spec, bool read_only = false, CoreId core = CoreId(0),
                  door::vhost_user::Waiting waiting = door::vhost_user::Waiting::kAdaptive) {
    std::unique_ptr<drive::Source> source =
        must(drive::Source::make(env_, drive::Spec::parse(spec).value()));
    if (is_watched) source = std::make_unique<drive::SeenSource>(std::move(source));
    source_ = std::move(source);
    const Result<void> served = co_await server_.serve({.drive = {.name = "disk",
                                                                  .description = "",
                                                                  .read_only = read_only,
                                                                  .has_other_writers = false,
                                                                  .source = source_.get()},
                                                        .at = address,
                                                        .core = core,
                                                        .waiting = waiting});
    must(served);
  }
  Task<void> close() {
    co_await server_.close();
    co_await put_away();
  }
  // The drive, which nobody serves any more.
  Task<void> put_away() { return source_->close(env_); }
  VhostServer& server() { return server_; }
  // What the drive was asked; of one that is watched.
  bool is_watched = false;
  const drive::SeenSource::Counts& seen() const {
    return static_cast<drive::SeenSource&>(*source_).counts();
  }

 private:
  env::Env& env_;
  std::unique_ptr<drive::Source> source_;

 public:
  env::Address address;

 private:
  VhostServer server_;
};

// What the device must have done.
inline Task<void> expect_ok(Task<Result<BlkStatus>> request) {
  const Result<BlkStatus> status = co_await request;
  EXPECT_EQ(must(status), BlkStatus::kOk);
}

}  // namespace cairn::door_tests
