// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/host_thread.h"

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

namespace cairn::bench {

namespace {

// Larger files move in pieces of this size, several at once.
constexpr uint32_t kTransferMax = 128 * 1024;

}  // namespace

Result<std::unique_ptr<HostThread>> HostThread::start(const HostThreadOptions& options) {
  auto host = std::unique_ptr<HostThread>(new HostThread);
  host->thread_ = std::thread([&host = *host, &options] { host.run(options); });
  host->ready_.acquire();
  if (!host->started_) return fail(host->started_.error());
  return host;
}

HostThread::~HostThread() {
  if (world_ != nullptr) world_->request_stop();
  thread_.join();
}

void HostThread::run(const HostThreadOptions& options) {
  Result<std::unique_ptr<env::World>> world = options.world({.cpus = {options.cpu}});
  if (world) {
    world_ = std::move(*world);
    const fabric::Uri uri = options.uri;
    const Result<void> ran = world_->run([&](env::Env& env) { return serve(env, uri); });
    if (ran) return;
    started_ = ran;
  } else {
    started_ = fail(world.error());
  }
  ready_.release();
}

task::Task<void> HostThread::serve(env::Env& env, fabric::Uri uri) {
  core_ = dynamic_cast<posix::CoreEnv*>(&env);
  if (core_ == nullptr) {
    started_ = fail(Errc::kUnsupported, "a world whose cores no other thread reaches");
    ready_.release();
    co_return;
  }
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(env, std::move(uri));
  if (drive) {
    drive_ = std::move(*drive);
  } else {
    started_ = fail(drive.error());
  }
  const bool is_open = drive_ != nullptr;
  ready_.release();
  if (!is_open) co_return;
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  (void)stopped;
  co_await gate_.close();
  co_await drive_->close();
  drive_.reset();
}

uint32_t HostThread::transfer_max() const {
  const drive::Geometry& geometry = drive_->geometry();
  return std::min(kTransferMax, geometry.transfer_blocks * geometry.block_size);
}

Result<void> HostThread::transfer(std::span<const Transfer> transfers) {
  return transfers.empty() ? Result<void>{} : call(transfers);
}

Result<void> HostThread::flush() { return call({}); }

Result<void> HostThread::call(std::span<const Transfer> transfers) {
  Job job(*this, transfers);
  core_->put(job);
  job.done.acquire();
  return job.result;
}

void HostThread::take(env::Message& message, env::Env&) {
  auto& job = static_cast<Job&>(message);
  job.host.gate_.spawn(job.host.execute(job));
}

task::Task<void> HostThread::execute(Job& job) {
  if (job.transfers.empty()) {
    job.result = co_await drive_->flush();
  } else {
    std::vector<task::Task<Result<void>>> all;
    all.reserve(job.transfers.size());
    for (const Transfer& transfer : job.transfers) all.push_back(move(transfer));
    for (task::Task<Result<void>>& each : all) {
      const Result<void> moved = co_await each;
      if (!moved && job.result) job.result = moved;
    }
  }
  job.done.release();  // the job belongs to the caller again
}

task::Task<Result<void>> HostThread::move(Transfer transfer) {
  const Lba lba(transfer.block);
  Result<void> moved;
  if (transfer.writes) {
    moved = co_await drive_->write(lba, transfer.bytes);
  } else {
    moved = co_await drive_->read(lba, transfer.bytes);
  }
  co_return moved;
}

Duration HostThread::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  const pthread_t thread = const_cast<std::thread&>(thread_).native_handle();
  if (::pthread_getcpuclockid(thread, &clock) == 0) ::clock_gettime(clock, &time);
  return Duration{time.tv_sec * 1'000'000'000 + time.tv_nsec};
}

}  // namespace cairn::bench
