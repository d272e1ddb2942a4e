// SPDX-License-Identifier: Apache-2.0
// VhostServer: drives for virtual machines, each at a local socket of its own, as virtio block
// devices. The protocol has no names, so the socket says which drive is meant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "door/common/exports.h"
#include "door/vhost_user/options.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

struct VhostDrive {
  ExportOptions drive;
  env::Address at;  // a local socket
  CoreId core{};    // which serves it
  Waiting waiting = Waiting::kAdaptive;
};

struct VhostFigures {
  uint64_t front_ends = 0;  // that have come so far
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t copied_bytes = 0;
};

// Made and used on one core; each drive is served on its own. A socket has one front end at a time;
// the next waits until the last has gone and everything it asked for is done.
class VhostServer {
 public:
  explicit VhostServer(env::Env& env, VhostOptions options = {});
  ~VhostServer();
  VhostServer(const VhostServer&) = delete;
  VhostServer& operator=(const VhostServer&) = delete;

  // Opens the drive and begins to accept. kInvalid: the address is no local socket; kUnsupported:
  // this world shares no memory; or errors as Env::listen and Source::open.
  task::Task<Result<void>> serve(VhostDrive drive);
  // Changes the size of a drive, and tells its guest. Errors as NbdServer::resize.
  task::Task<Result<void>> resize(std::string_view name, uint64_t bytes);
  task::Task<Result<VhostFigures>> figures(std::string_view name);
  // The drive is about to be served at another door too. kNotFound.
  task::Task<Result<void>> expect_other_writers(std::string_view name);
  // Takes a drive away, with its socket: requests in flight are done first, until `until`; the
  // front end sees the end of its connection. kNotFound: there is none, or it is going already.
  task::Task<Result<void>> remove(std::string_view name, Time until);
  // No remove() is under way from here on.
  //
  // Takes no more requests; done when those in flight are, or `until` has passed. What is still in
  // flight then stays so, and whoever serves the guest next does it again. close() follows.
  task::Task<void> drain(Time until);
  // Ends every session and closes the drives.
  task::Task<void> close();

 private:
  class ServedDrive;
  ServedDrive* find(std::string_view name);

  env::Env& env_;
  VhostOptions options_;
  std::vector<std::unique_ptr<ServedDrive>> served_;
};

}  // namespace cairn::door::vhost_user
