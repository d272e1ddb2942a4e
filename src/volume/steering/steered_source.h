// SPDX-License-Identifier: Apache-2.0
// SteeredSource: drives of another source, steered.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "volume/mega_vol.h"
#include "volume/steering/steering.h"

namespace cairn::volume {

class SteeredSource final : public MegaVolSource {
 public:
  // Both outlive it and what it opens.
  SteeredSource(MegaVolSource& below, Steering& steering) : below_(below), steering_(steering) {}

  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken token) override {
    Result<std::unique_ptr<drive::Drive>> drive = co_await below_.open(uri, host, token);
    if (!drive) co_return fail(drive.error());
    co_return steering_.steer(uri, host, std::move(*drive));
  }

 private:
  MegaVolSource& below_;
  Steering& steering_;
};

}  // namespace cairn::volume
