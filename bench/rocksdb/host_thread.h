// SPDX-License-Identifier: Apache-2.0
// HostThread: a remote drive on a core of its own, used by threads that are no cores.
#pragma once

#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>

#include "base/units.h"
#include "bench/rocksdb/block_store.h"
#include "bench/world_load.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "world/posix/core.h"

namespace cairn::bench {

struct HostThreadOptions {
  WorldFactory world;  // of a real world
  int cpu = -1;
  fabric::Uri uri;
};

// Runs a world with the drive open until it is destroyed, which nobody may use it then.
class HostThread final : public BlockStore {
 public:
  // Errors of the world and of RemoteDrive::open; kUnsupported: a world without threads.
  static Result<std::unique_ptr<HostThread>> start(const HostThreadOptions& options);
  ~HostThread() override;
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  uint32_t block_size() const override { return drive_->geometry().block_size; }
  uint64_t blocks() const override { return drive_->geometry().blocks; }
  uint32_t transfer_max() const override;
  Result<void> transfer(std::span<const Transfer> transfers) override;
  Result<void> flush() override;

  // Processor time of its thread so far: what the fabric costs its user, without the user.
  Duration cpu_time() const;

 private:
  // One call from outside, on its way to the core and back.
  struct Job : env::Message {
    Job(HostThread& its, std::span<const Transfer> all)
        : Message(&HostThread::take), host(its), transfers(all) {}
    HostThread& host;
    std::span<const Transfer> transfers;  // none: flush
    Result<void> result;
    std::binary_semaphore done{0};
  };

  HostThread() = default;
  void run(const HostThreadOptions& options);
  task::Task<void> serve(env::Env& env, fabric::Uri uri);
  Result<void> call(std::span<const Transfer> transfers);
  static void take(env::Message& message, env::Env& env);
  task::Task<void> execute(Job& job);
  task::Task<Result<void>> move(Transfer transfer);

  std::unique_ptr<env::World> world_;
  posix::CoreEnv* core_ = nullptr;
  std::unique_ptr<fabric::RemoteDrive> drive_;
  task::Gate gate_;
  Result<void> started_;
  std::binary_semaphore ready_{0};
  std::thread thread_;
};

}  // namespace cairn::bench
