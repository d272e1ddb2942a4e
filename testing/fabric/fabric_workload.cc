// SPDX-License-Identifier: Apache-2.0
#include "testing/fabric/fabric_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fabric/host/uri.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/when_all.h"

namespace cairn::fabric_tests {

using drive::Request;
using fabric::RemoteDrive;
using task::Task;

namespace {

constexpr uint16_t kPort = 4420;
const std::string kNqn = "nqn.2026-11.io.cairn:oracle";

using Batching = fabric::DoorbellOptions::Mode;
constexpr Batching kBatching[] = {Batching::kFixed, Batching::kAdaptive, Batching::kOff};

fabric::HostOptions host_options(const HostKind& kind, size_t index) {
  fabric::HostOptions options;
  options.host_nqn = fmt::format("nqn.2026-11.io.cairn:{}", kind.name);
  options.host_id[0] = static_cast<uint8_t>(index + 1);
  options.header_digest = options.data_digest = kind.digests;
  options.queues = kind.queues;
  options.depth = 16;
  // Hosts differ in how their commands wait for each other, a target from seed to seed.
  options.doorbell.mode = kBatching[index % std::size(kBatching)];
  options.connect_timeout = 2_s;
  options.admin_timeout = 3_s;
  options.io_timeout = 4_s;
  options.keep_alive = 2_s;
  options.reconnect_delay = 20_ms;
  options.reconnect_delay_max = 500_ms;
  return options;
}

// Longer than faults hold back what a host has sent before it died.
constexpr Duration kAfterlife = 8_s;

// Some time, unless the program is to end.
Task<bool> pause_for(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  co_return slept.has_value();
}

// Opens everything, again and again until it works.
Task<bool> fill_registry(env::Env& env, nvme::Registry& registry, uint64_t size) {
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = kNqn;
  if (!registry.add_subsystem(subsystem)) co_return false;
  nvme::NamespaceOptions space;
  space.drive = {.kind = drive::Spec::Kind::kFile, .path = kDiskName, .size = size};
  while (!env.stop_token().requested()) {
    const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
    if (added) co_return true;
    co_await pause_for(env, 10_ms);
  }
  co_return false;
}

}  // namespace

FabricWorkload::FabricWorkload(std::vector<HostKind> hosts)
    : hosts_(std::move(hosts)),
      oracle_(disk_size(hosts_.size()) / kBlock),
      shared_(kSharedBlocks),
      starts_(hosts_.size()),
      done_(hosts_.size() * (kWorkers + 1)) {}

void FabricWorkload::start(sim::Cluster& cluster) {
  sim::Node& box = cluster.node(kBoxName, {.cores = 2});
  const std::vector<env::Address> listen = {box.address(kPort), box.address(kPort + 1)};
  box.start([this, listen](env::Env& env) { return run_box(env, listen); });
  for (size_t i = 0; i < hosts_.size(); ++i) {
    std::vector<env::Address> paths = listen;
    if (!hosts_[i].two_paths) paths.resize(1);
    cluster.node(hosts_[i].name).start([this, i, paths](env::Env& env) {
      return run_host(env, i, paths);
    });
  }
}

uint64_t FabricWorkload::progress() const { return std::ranges::min(done_); }
std::string FabricWorkload::check(sim::Cluster&) { return oracle_.wrong(); }

Task<void> FabricWorkload::run_box(env::Env& env, std::vector<env::Address> listen) {
  oracle_.box_started();
  nvme::Registry registry(env);
  fabric::TargetOptions options;
  options.handshake_timeout = 3_s;
  options.write_timeout = 3_s;
  options.data_timeout = 3_s;
  options.doorbell.mode = kBatching[env.rng().below(std::size(kBatching))];
  fabric::Target target(env, registry, options);
  bool ready = co_await fill_registry(env, registry, disk_size(hosts_.size()));
  for (const env::Address& at : listen) ready = ready && target.listen(at).has_value();
  if (ready) {
    task::Event never;
    const Result<void> stopped = co_await never.wait(env.stop_token());
    if (stopped) co_return;  // it never is
  }
  co_await target.close();
  co_await registry.close();
}

Task<void> FabricWorkload::run_host(env::Env& env, size_t index, std::vector<env::Address> paths) {
  const fabric::Uri uri{.paths = std::move(paths),
                        .nqn = kNqn,
                        .nsid = 1,
                        .options = host_options(hosts_[index], index)};
  // Commands of a process that died may still be on their way.
  if (starts_[index]++ > 0) co_await pause_for(env, kAfterlife);
  fabric::HostPool pool(env);
  std::vector<std::unique_ptr<RemoteDrive>> drives;
  while (drives.size() < hosts_[index].drives && !env.stop_token().requested()) {
    Result<std::unique_ptr<RemoteDrive>> opened =
        co_await RemoteDrive::open(pool, uri, env.stop_token());
    if (opened) drives.push_back(std::move(*opened));
    if (!opened) co_await pause_for(env, 20_ms);
  }
  if (drives.size() == hosts_[index].drives) {
    std::vector<Task<void>> workers;
    for (size_t i = 0; i < kWorkers; ++i) {
      workers.push_back(run_worker(env, *drives[i % drives.size()], index * kWorkers + i));
    }
    workers.push_back(run_rival(env, *drives.back(), index));
    co_await task::when_all(std::move(workers));
  }
  for (const auto& drive : drives) co_await drive->close();
}

Task<void> FabricWorkload::run_worker(env::Env& env, RemoteDrive& drive, size_t index) {
  const uint64_t first = kSharedBlocks + index * kOwnBlocks;
  while (!env.stop_token().requested()) {
    const uint64_t choice = env.rng().below(10);
    bool done = false;
    if (choice < 4) {
      done = co_await write(env, drive, first);
    } else if (choice < 8) {
      done = co_await read(env, drive, first);
    } else if (choice < 9) {
      done = co_await flush(drive, first, env);
    } else {
      done = co_await clear(env, drive, first);
    }
    if (done) ++done_[index];
    const bool goes_on =
        co_await pause_for(env, Duration{static_cast<int64_t>(env.rng().below((4_ms).ns))});
    if (!goes_on) co_return;
  }
}

Task<void> FabricWorkload::run_rival(env::Env& env, RemoteDrive& drive, size_t index) {
  while (!env.stop_token().requested()) {
    const bool done = co_await compete(env, drive, env.rng().below(kSharedBlocks));
    if (done) ++done_[hosts_.size() * kWorkers + index];
    const bool goes_on =
        co_await pause_for(env, Duration{static_cast<int64_t>(env.rng().below((4_ms).ns))});
    if (!goes_on) co_return;
  }
}

// After a change that is in doubt, until the target cannot be executing it any more.
Task<void> FabricWorkload::settle(env::Env& env) const { co_await pause_for(env, 4_s); }

namespace {

// A part of a worker's blocks: mostly small, now and then more than one R2T asks for.
struct Range {
  uint64_t lba;
  uint64_t count;
};
Range draw_range(env::Env& env, uint64_t first) {
  const uint64_t max = env.rng().bernoulli(0.1) ? kOwnBlocks : 4;
  const uint64_t count = 1 + env.rng().below(max);
  return {first + env.rng().below(kOwnBlocks - count + 1), count};
}

}  // namespace

Task<bool> FabricWorkload::write(env::Env& env, RemoteDrive& drive, uint64_t first) {
  const Range range = draw_range(env, first);
  const bool durable = env.rng().bernoulli(0.3);
  const uint64_t value = oracle_.new_value();
  std::vector<std::byte> data(range.count * kBlock);
  for (uint64_t i = 0; i < range.count; ++i) {
    fill_block(MutableBytes(data).subspan(i * kBlock, kBlock), value, range.lba + i);
  }
  const Oracle::Asked asked = oracle_.begin_write(range.lba, range.count, value);
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = durable,
                        .lba = Lba(range.lba),
                        .blocks = range.count};
  const MutableBytes piece(data);
  const Result<void> written = co_await drive.submit(request, std::span(&piece, 1));
  if (!written) co_await settle(env);
  oracle_.end_write(asked, written.has_value(), durable);
  co_return written.has_value();
}

Task<bool> FabricWorkload::clear(env::Env& env, RemoteDrive& drive, uint64_t first) {
  const Range range = draw_range(env, first);
  const Oracle::Asked asked = oracle_.begin_write(range.lba, range.count, 0);
  const Request request{
      .kind = env.rng().bernoulli(0.5) ? Request::Kind::kDiscard : Request::Kind::kWriteZeroes,
      .lba = Lba(range.lba),
      .blocks = range.count};
  const Result<void> cleared = co_await drive.submit(request, {});
  if (!cleared) co_await settle(env);
  oracle_.end_write(asked, cleared.has_value(), false);
  co_return cleared.has_value();
}

Task<bool> FabricWorkload::read(env::Env& env, RemoteDrive& drive, uint64_t first) {
  const Range range = draw_range(env, first);
  std::vector<std::byte> data(range.count * kBlock);
  const Oracle::Asked asked = oracle_.begin_read(range.lba, range.count);
  const Result<void> got = co_await drive.read(Lba(range.lba), data);
  if (got) oracle_.end_read(asked, data);
  co_return got.has_value();
}

Task<bool> FabricWorkload::flush(RemoteDrive& drive, uint64_t first, env::Env&) {
  const Result<void> flushed = co_await drive.flush();
  if (flushed) oracle_.end_flush(first, kOwnBlocks);
  co_return flushed.has_value();
}

// Reads a shared block and replaces what it has found, unless somebody was faster.
Task<bool> FabricWorkload::compete(env::Env& env, RemoteDrive& drive, uint64_t lba) {
  std::vector<std::byte> old(kBlock);
  std::vector<std::byte> next(kBlock);
  const std::set<uint64_t> gone_before = shared_[lba].gone;
  const Result<void> got = co_await drive.read(Lba(lba), old);
  if (!got) co_return false;
  std::string torn;
  const uint64_t found = value_of(old, lba, torn);
  if (!torn.empty()) oracle_.complain(torn);
  if (gone_before.contains(found)) {
    oracle_.complain(fmt::format("shared block {} holds {}, which was replaced", lba, found));
  }
  fill_block(next, oracle_.new_value(), lba);
  const Request request{
      .kind = Request::Kind::kCompareAndWrite, .durable = true, .lba = Lba(lba), .blocks = 1};
  const MutableBytes with(old);
  const MutableBytes to(next);
  const Result<void> done = co_await drive.submit(request, std::span(&with, 1), std::span(&to, 1));
  if (!done) {
    if (done.error() != Errc::kMismatch) co_await settle(env);
    co_return done.error() == Errc::kMismatch;
  }
  if (!shared_[lba].gone.insert(found).second) {
    oracle_.complain(fmt::format("value {} of shared block {} was replaced twice", found, lba));
  }
  co_return true;
}

}  // namespace cairn::fabric_tests
