// SPDX-License-Identifier: Apache-2.0
// One command that writes to several namespaces of a box: all of them, or one says why not; and
// what a box loses of it is told to the drives that did not send it.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/host_pool.h"
#include "fabric/host/remote_drive.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "nvme/format/replicate_format.h"
#include "task/deadline.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::fabric_tests {
namespace {

using drive::Replica;
using drive::Request;
using task::Task;

const std::string kNqn = "nqn.2026-11.io.cairn:replicas";
constexpr uint16_t kPort = 4420;
constexpr uint32_t kNamespaces = 4;  // the last is read-only
constexpr size_t kBlock = 4096;

Task<void> serve(env::Env& env, env::Address at, std::string medium) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry);
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = kNqn;
  EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
  for (uint32_t nsid = 1; nsid <= kNamespaces; ++nsid) {
    nvme::NamespaceOptions space;
    space.nsid = nsid;
    space.read_only = nsid == kNamespaces;
    const std::string text = fmt::format(fmt::runtime(medium), nsid);
    space.drive = drive::Spec::parse(text).value();
    const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
    EXPECT_TRUE(added.has_value());
  }
  EXPECT_TRUE(target.listen(at).has_value());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await target.close();
  co_await registry.close();
}

using Drives = std::vector<std::unique_ptr<fabric::RemoteDrive>>;

class ReplicatedWrite : public testing::Test {
 public:
  void start_box(std::string medium) {
    const env::Address at = address();
    cluster.node("box").start([at, medium](env::Env& env) { return serve(env, at, medium); });
    cluster.run_for(1_ms);
  }
  env::Address address() { return cluster.node("box").address(kPort); }
  // With the drives of the first `count` namespaces, of one pool.
  void use(Task<void> (*body)(env::Env&, ReplicatedWrite&, Drives&), uint32_t count) {
    cluster.node("host").start(
        [this, body, count](env::Env& env) { return run(env, *this, body, count); });
    const auto is_done = [&] { return !cluster.node("host").is_running(); };
    while (cluster.run_until([&] { return is_done() || loses_power; }, 100_s) && !is_done()) {
      cluster.node("box").crash();
      cluster.run_for(1_ms);
      cluster.node("box").restart();
      cluster.run_for(1_ms);
      loses_power = false;
    }
    EXPECT_TRUE(is_done()) << cluster.report();
    cluster.node("box").stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
  }
  // The box's power fails, and comes back, while the host waits.
  Task<void> lose_power(env::Env& env) {
    loses_power = true;
    while (loses_power) {
      const Result<void> slept = co_await task::sleep_for(env, 1_ms);
      EXPECT_TRUE(slept.has_value());
    }
  }
  static Task<void> run(env::Env& env, ReplicatedWrite& test,
                        Task<void> (*body)(env::Env&, ReplicatedWrite&, Drives&), uint32_t count) {
    fabric::HostPool pool(env);
    Drives drives;
    for (uint32_t nsid = 1; nsid <= count; ++nsid) {
      auto drive = co_await test.open(pool, nsid);
      if (drive != nullptr) drives.push_back(std::move(drive));
    }
    if (drives.size() == count) co_await body(env, test, drives);
    for (const auto& drive : drives) co_await drive->close();
  }
  Task<std::unique_ptr<fabric::RemoteDrive>> open(fabric::HostPool& pool, uint32_t nsid) {
    const fabric::Uri uri = fabric::Uri::parse(fmt::format("nvme-tcp://{}/{}?nsid={}&quiesce=10ms",
                                                           address().text(), kNqn, nsid))
                                .value();
    auto drive = co_await fabric::RemoteDrive::open(pool, uri);
    EXPECT_TRUE(drive.has_value());
    if (!drive) co_return nullptr;
    co_return std::move(*drive);
  }

  sim::Cluster cluster;
  bool loses_power = false;
};

std::vector<std::byte> pattern(uint8_t value, size_t blocks) {
  std::vector<std::byte> data(blocks * kBlock);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(value + i / 512);
  return data;
}

Task<Result<void>> write_all(drive::Drive& first, Lba lba, std::vector<Replica> replicas,
                             std::vector<std::byte>& data, bool durable = false) {
  const std::array<MutableBytes, 1> pieces = {MutableBytes(data)};
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = durable,
                        .lba = lba,
                        .blocks = data.size() / kBlock,
                        .replicas = replicas};
  co_return co_await first.submit(request, pieces);
}

Task<void> expect_at(drive::Drive& drive, Lba lba, const std::vector<std::byte>& wanted) {
  std::vector<std::byte> found(wanted.size());
  const Result<void> read = co_await drive.read(lba, found);
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(found, wanted);
}

Task<void> write_three(env::Env&, ReplicatedWrite&, Drives& drives) {
  EXPECT_TRUE(drives[0]->can_replicate_to(*drives[1]));
  EXPECT_FALSE(drives[0]->can_replicate_to(*drives[0]));
  std::vector<std::byte> data = pattern(7, 3);
  const uint64_t before = drives[0]->counters().commands;
  const Result<void> done = co_await write_all(
      *drives[0], Lba(16), {{drives[1].get(), Lba(528)}, {drives[2].get(), Lba(48)}}, data);
  EXPECT_TRUE(done.has_value()) << done.error().text();
  EXPECT_EQ(drives[0]->counters().commands, before + 1);
  EXPECT_EQ(drives[1]->counters().commands + drives[2]->counters().commands, 0u);
  co_await expect_at(*drives[0], Lba(16), data);
  co_await expect_at(*drives[1], Lba(528), data);
  co_await expect_at(*drives[2], Lba(48), data);
  co_await expect_at(*drives[1], Lba(16), std::vector<std::byte>(data.size()));
  // More than one command carries.
  std::vector<std::byte> large = pattern(9, 512);
  const Result<void> whole =
      co_await write_all(*drives[0], Lba(512), {{drives[1].get(), Lba(0)}}, large);
  EXPECT_TRUE(whole.has_value()) << whole.error().text();
  co_await expect_at(*drives[0], Lba(512), large);
  co_await expect_at(*drives[1], Lba(0), large);
}

TEST_F(ReplicatedWrite, BringsTheDataOnce) {
  start_box("mem:size=4M");
  use(write_three, 3);
}

Task<void> expect_refused(Errc wanted, drive::Drive& first, Lba lba,
                          std::vector<Replica> replicas) {
  std::vector<std::byte> data = pattern(7, 2);
  const Result<void> done = co_await write_all(first, lba, std::move(replicas), data);
  EXPECT_TRUE(!done && done.error() == wanted) << (done ? "done" : done.error().text());
}

Task<void> expect_zeroes(Drives& drives) {
  const std::vector<std::byte> zeroes(64 * kBlock);
  for (const auto& drive : drives) co_await expect_at(*drive, Lba(0), zeroes);
}

Task<void> write_wrongly(env::Env& env, ReplicatedWrite& test, Drives& drives) {
  drive::Drive& first = *drives[0];
  drive::Drive* second = drives[1].get();
  drive::Drive* third = drives[2].get();
  drive::Drive* read_only = drives[3].get();
  // No unit has both blocks of either.
  co_await expect_refused(Errc::kUnsupported, first, Lba(3), {{second, Lba(4)}});
  co_await expect_refused(Errc::kInvalid, first, Lba(0), {{second, Lba(1023)}});
  co_await expect_refused(Errc::kUnsupported, first, Lba(0),
                          {{second, Lba(16)}, {third, Lba(16)}, {second, Lba(32)}});
  co_await expect_refused(Errc::kInvalid, first, Lba(0), {{second, Lba(16)}, {second, Lba(32)}});
  co_await expect_refused(Errc::kUnsupported, first, Lba(0), {{&first, Lba(16)}});
  co_await expect_refused(Errc::kDenied, first, Lba(0), {{second, Lba(16)}, {read_only, Lba(16)}});
  fabric::HostPool other_pool(env);
  const std::unique_ptr<fabric::RemoteDrive> other = co_await test.open(other_pool, 3);
  CO_ASSERT_TRUE(other != nullptr);
  co_await expect_refused(Errc::kUnsupported, first, Lba(0), {{other.get(), Lba(0)}});
  co_await other->close();
  co_await expect_zeroes(drives);
}

TEST_F(ReplicatedWrite, ThatCannotBeWholeWritesNothing) {
  start_box("mem:size=4M");
  use(write_wrongly, 4);
}

// As a host would send it that knows less than it should.
Task<nvme::StatusCode> send(fabric::RemoteDrive& drive, nvme::ReplicateFields fields) {
  std::vector<std::byte> data(fields.blocks.blocks * kBlock, std::byte{7});
  nvme::Sqe sqe = nvme::Sqe::make(nvme::IoOpcode::kReplicatedWrite, 1);
  fields.encode(sqe);
  const Result<nvme::Cqe> answer = co_await drive.execute(sqe, data);
  EXPECT_TRUE(answer.has_value());
  co_return answer ? answer->get_status().code() : nvme::StatusCode::kInternalError;
}

Task<void> send_wrongly(env::Env&, ReplicatedWrite&, Drives& drives) {
  const drive::Incarnation there = drives[1]->paths()[0]->info()->incarnation;
  const uint32_t check = nvme::incarnation_check(there.medium, there.opening);
  const nvme::ReplicateFields right{.blocks = {.start = Lba(0), .blocks = 2},
                                    .unit_shift = 3,
                                    .replicas = {{{.nsid = 2, .unit = 4, .check = check}, {}}}};
  nvme::ReplicateFields wrong = right;
  wrong.replicas[0].check = check + 1;
  EXPECT_EQ(co_await send(*drives[0], wrong), nvme::StatusCode::kInvalidField);
  wrong = right;
  wrong.replicas[0].unit = 128;
  EXPECT_EQ(co_await send(*drives[0], wrong), nvme::StatusCode::kLbaOutOfRange);
  wrong.replicas[0].unit = UINT32_MAX;
  EXPECT_EQ(co_await send(*drives[0], wrong), nvme::StatusCode::kLbaOutOfRange);
  wrong = right;
  wrong.blocks.start = Lba(7);
  EXPECT_EQ(co_await send(*drives[0], wrong), nvme::StatusCode::kInvalidField);
  wrong = right;
  wrong.replicas[1] = {.nsid = 99, .unit = 4, .check = check};
  EXPECT_EQ(co_await send(*drives[0], wrong), nvme::StatusCode::kInvalidNamespaceOrFormat);
  co_await expect_zeroes(drives);
  EXPECT_EQ(co_await send(*drives[0], right), nvme::StatusCode::kSuccess);
  co_await expect_at(*drives[1], Lba(32), std::vector<std::byte>(2 * kBlock, std::byte{7}));
}

TEST_F(ReplicatedWrite, OfAHostThatKnowsTooLittleIsRefused) {
  start_box("mem:size=4M");
  use(send_wrongly, 3);
}

Task<void> lose_some(env::Env& env, ReplicatedWrite& test, Drives& drives) {
  std::vector<std::byte> data = pattern(7, 2);
  const auto write = [&](bool durable) {
    return write_all(*drives[0], Lba(0), {{drives[1].get(), Lba(16)}, {drives[2].get(), Lba(32)}},
                     data, durable);
  };
  Result<void> written = co_await write(false);
  EXPECT_TRUE(written.has_value());
  co_await test.lose_power(env);
  // Only the first has sent anything.
  for (const auto& drive : drives) {
    const Result<void> told = co_await drive->flush();
    EXPECT_TRUE(!told && told.error() == Errc::kIo);
    const Result<void> again = co_await drive->flush();
    EXPECT_TRUE(again.has_value());
  }
  // What was flushed, or written durably, is there.
  written = co_await write(false);
  EXPECT_TRUE(written.has_value()) << written.error().text();
  for (const auto& drive : drives) {
    const Result<void> flushed = co_await drive->flush();
    EXPECT_TRUE(flushed.has_value());
  }
  co_await test.lose_power(env);
  for (const auto& drive : drives) {
    const Result<void> flushed = co_await drive->flush();
    EXPECT_TRUE(flushed.has_value());
  }
  co_await expect_at(*drives[2], Lba(32), data);
  data = pattern(9, 2);
  written = co_await write(true);
  EXPECT_TRUE(written.has_value());
  co_await test.lose_power(env);
  co_await expect_at(*drives[0], Lba(0), data);
  co_await expect_at(*drives[1], Lba(16), data);
  co_await expect_at(*drives[2], Lba(32), data);
}

TEST_F(ReplicatedWrite, ThatTheBoxLosesIsToldByEachOfItsDrives) {
  start_box("file:disk{},size=4M");
  use(lose_some, 3);
}

}  // namespace
}  // namespace cairn::fabric_tests
