// SPDX-License-Identifier: Apache-2.0
// ReservationFiles: reservations that survive a restart (PTPL), a file per namespace in a folder of
// the world's disks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"
#include "nvme/controller/registry.h"
#include "task/task.h"

namespace cairn::server {

// On the control core. The folder exists.
class ReservationFiles final : public nvme::ReservationStore {
 public:
  ReservationFiles(env::Env& env, std::string folder) : env_(env), folder_(std::move(folder)) {}

  task::Task<Result<void>> save(std::string_view nqn, uint32_t nsid, Bytes state) override;
  // What was saved last; empty when nothing was. kCorrupt: neither half of the file is whole.
  task::Task<Result<std::vector<std::byte>>> load(std::string_view nqn, uint32_t nsid);
  // The namespace is gone; another one with its number starts without reservations.
  task::Task<Result<void>> forget(std::string_view nqn, uint32_t nsid);

  std::string path(std::string_view nqn, uint32_t nsid) const;

 private:
  env::Env& env_;
  std::string folder_;
};

}  // namespace cairn::server
