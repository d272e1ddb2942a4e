// SPDX-License-Identifier: Apache-2.0
// NvmeSource: opens drives of a pool at boxes, by URIs as fabric/host/uri.h has them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "env/env.h"
#include "fabric/host/host_pool.h"
#include "fabric/host/options.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "volume/boxes/registration.h"
#include "volume/mega_vol.h"

namespace cairn::volume {

struct NvmeSourceOptions {
  // Where a URI says nothing else: replicas take over from a box that is away for so long.
  Duration loss_timeout = 3_s;
  Duration keep_alive = 2_s;
  Duration reconnect_delay_max = 1_s;
  // Reads the key files that a URI names. Empty: a URI that names some is refused.
  std::function<Result<void>(fabric::HostOptions& options)> read_keys;
};

// One core. Drives that one host has at one box share their connections.
//
// Each opening comes with a host identifier of its own, which the name given to open() stands for;
// the host NQN is the URI's, if it has one, so that boxes with lists of hosts can be used. Drives
// register at their boxes (registration.h), and leave when they are closed.
class NvmeSource final : public MegaVolSource {
 public:
  // It outlives what it opened.
  explicit NvmeSource(env::Env& env, NvmeSourceOptions options = {})
      : options_(std::move(options)), pool_(env) {}

  // Errors of MegaVolSource::open(), and kUnsupported: the box cannot fence. kUnreachable too when
  // the box has no such namespace now. kDenied: the box refuses the host, or somebody else has
  // reserved the drive.
  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken token = {}) override;
  // The same, with an admission of one's own.
  task::Task<Result<std::unique_ptr<fabric::RemoteDrive>>> open_as(
      std::string uri, BoxIdentity host, std::unique_ptr<fabric::Admission> admission,
      task::CancelToken token = {});

 private:
  Result<fabric::Uri> find(const std::string& text, const BoxIdentity& host) const;

  const NvmeSourceOptions options_;
  fabric::HostPool pool_;
};

}  // namespace cairn::volume
