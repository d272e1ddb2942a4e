// SPDX-License-Identifier: Apache-2.0
// NbdServer: drives for NBD clients, over all cores of a world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "door/common/exports.h"
#include "door/nbd/found_exports.h"
#include "door/nbd/options.h"
#include "env/env.h"
#include "stream/reception.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::door::nbd {

// Made and used on one core. A connection is accepted there and opened on one of the cores, in
// turn. Exports come and go while it listens, one change at a time; closed before its sources go.
class NbdServer {
 public:
  explicit NbdServer(env::Env& env, const NbdOptions& options = {});
  ~NbdServer();
  NbdServer(const NbdServer&) = delete;
  NbdServer& operator=(const NbdServer&) = delete;

  // Clients find it when it is done. kExists: the name is taken; kInvalid: it is longer than 4096
  // bytes.
  task::Task<Result<void>> add(ExportOptions options);
  // Nobody finds it any more. Requests of its clients that are in flight are answered, until then;
  // when it is done their connections have ended, and its drives are closed. kNotFound.
  task::Task<Result<void>> remove(std::string_view name, Time until);
  // Begins to accept. Gives the address with the port that was chosen. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at);
  // Changes the size of an export's drive, on every core that has it open. Connections that come
  // later are told the new size; the protocol has no way to tell those that are here, whose
  // requests are checked against it all the same. kNotFound; kInvalid: no multiple of the block;
  // or errors as Drive::resize. After an error every core has the size from before; what a smaller
  // one had cut off reads as zeroes.
  task::Task<Result<void>> resize(std::string_view name, uint64_t bytes);
  // What an export has now, in bytes. kNotFound; or errors as Source::open.
  Result<uint64_t> size(std::string_view name);
  // The drive of an export is about to be served at another door too. kNotFound.
  task::Task<Result<void>> expect_other_writers(std::string_view name);
  // Stops accepting and takes no more requests; those in flight are answered, then connections end
  // in good order. Done when they are gone or `until` has passed; close() follows.
  task::Task<void> drain(Time until);
  // Stops accepting, ends every connection, waits for it and closes the drives.
  task::Task<void> close();

  uint64_t connections() const { return reception_.connections(); }

 private:
  class PerCore;
  task::Task<void> serve(env::Connection connection);
  bool admit(stream::Reception::Visitor& visitor, const env::Address& peer);
  // Ends an idle client, if there is one: whoever comes next finds its place.
  task::Task<void> make_room();
  task::Task<void> stop_accepting();
  SharedExport* find(std::string_view name) const;
  task::Task<Result<void>> resize_on(CoreId core, std::string_view name, uint64_t blocks);
  PerCore& on(env::Env& there);

  env::Env& env_;
  NbdOptions options_;
  std::vector<std::unique_ptr<SharedExport>> exports_;
  FoundExports found_;
  std::vector<std::unique_ptr<PerCore>> cores_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  task::CancelSource stop_;
  task::Gate accepting_;
  task::Gate gate_;  // of connections
  uint32_t next_core_ = 0;
  stream::Reception reception_;
  bool is_making_room_ = false;
};

}  // namespace cairn::door::nbd
