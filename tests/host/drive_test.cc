// SPDX-License-Identifier: Apache-2.0
// A remote namespace as a Drive: each request, its limits and its errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "host/drive_fixture.h"
#include "nvme/format/io_format.h"
#include "nvme/format/reservation_format.h"
#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::host_tests {
namespace {

using Drive = DriveTest;

Task<Result<void>> compare_and_write(RemoteDrive& drive, uint64_t lba, MutableBytes expected,
                                     MutableBytes next) {
  const Request request{
      .kind = Kind::kCompareAndWrite, .lba = Lba(lba), .blocks = expected.size() / kBlock};
  const Result<void> done =
      co_await drive.submit(request, std::span<const MutableBytes>(&expected, 1),
                            std::span<const MutableBytes>(&next, 1));
  co_return done;
}

TEST_F(Drive, TakesItsGeometryFromTheNamespace) {
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const drive::Geometry& shape = drive->geometry();
    EXPECT_EQ(shape.blocks, 8192u);
    EXPECT_EQ(shape.block_size, kBlock);
    EXPECT_EQ(shape.atomic_blocks, 8u);
    EXPECT_EQ(shape.optimal_blocks, 8u);
    EXPECT_EQ(shape.bytes(), 4_MiB);
    EXPECT_TRUE(shape.volatile_cache);
    EXPECT_EQ(drive->info().nguid, test.target.medium->nguid);
    co_await drive->close();
  });
  EXPECT_EQ(target.shutdowns, 1u);
}

Task<void> each_request(env::Env& env, Drive& test) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  std::vector<std::byte> data = random_bytes(64 * kBlock, 1);
  std::vector<std::byte> more = random_bytes(64 * kBlock, 2);
  std::vector<std::byte> back(64 * kBlock);
  Result<void> done = co_await drive->write(Lba(100), data);
  EXPECT_OK(done);
  done = co_await drive->read(Lba(100), back);
  EXPECT_OK(done);
  EXPECT_EQ(back, data);
  done = co_await drive->compare(Lba(100), data);
  EXPECT_OK(done);
  done = co_await drive->compare(Lba(101), data);
  EXPECT_TRUE(!done && done.error() == Errc::kMismatch);
  done = co_await drive->flush();
  EXPECT_OK(done);

  const MutableBytes some = MutableBytes(data).first(16 * kBlock);
  const MutableBytes other = MutableBytes(more).first(16 * kBlock);
  done = co_await compare_and_write(*drive, 100, some, other);
  EXPECT_OK(done);
  EXPECT_TRUE(std::ranges::equal(test.stored(100, 16), other));
  done = co_await compare_and_write(*drive, 100, some, other);
  EXPECT_TRUE(!done && done.error() == Errc::kMismatch);
  done = co_await compare_and_write(*drive, 100, MutableBytes(data).first(17 * kBlock),
                                    MutableBytes(data).first(17 * kBlock));
  EXPECT_TRUE(!done && done.error() == Errc::kInvalid) << "more than the target's unit";

  done = co_await drive->write_zeroes(Lba(110), 10);
  EXPECT_OK(done);
  EXPECT_TRUE(
      std::ranges::all_of(test.stored(110, 10), [](std::byte b) { return b == std::byte{}; }));
  done = co_await drive->discard(Lba(130), 10);
  EXPECT_OK(done);
  EXPECT_TRUE(
      std::ranges::all_of(test.stored(130, 10), [](std::byte b) { return b == std::byte{}; }));

  done = co_await drive->read(Lba(8192), MutableBytes(back).first(kBlock));
  EXPECT_TRUE(!done && done.error() == Errc::kInvalid);
  co_await drive->close();
}

TEST_F(Drive, ServesEachRequest) {
  run(each_request);
  EXPECT_EQ(target.count(IoOpcode::kDatasetManagement), 1u);
  EXPECT_EQ(target.count(IoOpcode::kWriteZeroes), 1u);
}

TEST_F(Drive, ServesEachRequestThroughR2tsAndDigests) {
  target.options.in_capsule_max = 0;
  target.options.r2t_bytes = 1000;
  target.options.h2c_data_max = 600;
  target.options.c2h_bytes = 700;
  target.options.mdts = 1;
  options.header_digest = options.data_digest = true;
  options.depth = 3;
  world.network.faults = {.segment = 0.7};
  run(each_request);
}

TEST_F(Drive, DiscardsByWriteZeroesWhereDeallocationPromisesNothing) {
  target.options.deallocate = 0;
  run(each_request);
  EXPECT_EQ(target.count(IoOpcode::kDatasetManagement), 0u);
  EXPECT_EQ(target.count(IoOpcode::kWriteZeroes), 2u);
}

TEST_F(Drive, WhatTheTargetLacksIsUnsupported) {
  target.options.oncs = 0;
  target.options.fuses = 0;
  target.options.write_cache = 0;
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    Result<void> done = co_await drive->compare(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kUnsupported);
    done = co_await compare_and_write(*drive, 0, data, data);
    EXPECT_TRUE(!done && done.error() == Errc::kUnsupported);
    done = co_await drive->write_zeroes(Lba(0), 1);
    EXPECT_TRUE(!done && done.error() == Errc::kUnsupported);
    done = co_await drive->discard(Lba(0), 1);
    EXPECT_TRUE(!done && done.error() == Errc::kUnsupported);
    EXPECT_FALSE(drive->geometry().volatile_cache);
    done = co_await drive->flush();
    EXPECT_OK(done);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kFlush), 0u);
}

// --- splitting ----------------------------------------------------------------------------------

// Random requests of any size from scattered memory, checked against a copy.
Task<void> scattered(env::Env& env, Drive& test) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  Rng& rng = env.rng();
  std::vector<std::byte> copy(test.target.medium->bytes.size());
  for (int round = 0; round < 60; ++round) {
    const uint64_t blocks = rng.between(1, 1u << rng.between(0, 12));
    const uint64_t lba = rng.below(8192 - blocks + 1);
    std::vector<std::byte> memory = random_bytes(blocks * kBlock, rng.next());
    std::vector<MutableBytes> pieces;
    for (MutableBytes rest = memory; !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), 4 * rng.between(0, 4000));
      pieces.push_back(rest.first(size));
      rest = rest.subspan(size);
    }
    const bool is_write = rng.bernoulli(0.5);
    const Request request{
        .kind = is_write ? Kind::kWrite : Kind::kRead, .lba = Lba(lba), .blocks = blocks};
    const Result<void> done = co_await drive->submit(request, pieces);
    EXPECT_OK(done);
    const MutableBytes place = MutableBytes(copy).subspan(lba * kBlock, blocks * kBlock);
    if (is_write) std::ranges::copy(memory, place.begin());
    EXPECT_TRUE(std::ranges::equal(place, memory));
  }
  EXPECT_EQ(copy, test.target.medium->bytes);
  co_await drive->close();
}

TEST_F(Drive, SplitsWhatIsLargerThanTheTargetTakes) {
  target.options.mdts = 2;  // 16 KiB
  options.depth = 5;
  uint64_t largest = 0;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    largest = std::max<uint64_t>(largest, nvme::BlockFields::decode(sqe).blocks);
    return Verdict::kServe;
  });
  run(scattered);
  EXPECT_EQ(largest, 32u);
}

TEST_F(Drive, TakesAnyScatterList) { run(scattered); }

TEST_F(Drive, NeverCutsWhatMustBeWhole) {
  target.options.mdts = 1;  // 16 blocks
  target.options.atomic_power_fail = 4;
  std::vector<nvme::BlockFields> seen;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    seen.push_back(nvme::BlockFields::decode(sqe));
    return Verdict::kServe;
  });
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    EXPECT_EQ(drive->geometry().atomic_blocks, 5u);
    const std::vector<std::byte> data(100 * kBlock);
    const Result<void> done = co_await drive->write(Lba(3), data);
    EXPECT_OK(done);
    co_await drive->close();
  });
  ASSERT_GT(seen.size(), 6u);
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].start.value() % 5, 0u) << "cuts are where atomic writes may not cross";
  }
}

TEST_F(Drive, SplitsWriteZeroesAtTheFieldsLimit) {
  target.medium = std::make_shared<FakeMedium>(150'000);
  std::ranges::fill(target.medium->bytes, std::byte{1});
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Result<void> done = co_await drive->write_zeroes(Lba(1), 149'998);
    EXPECT_OK(done);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kWriteZeroes), 3u);
  const auto& bytes = target.medium->bytes;
  EXPECT_EQ(std::ranges::count(bytes, std::byte{1}), 2 * kBlock);
  EXPECT_EQ(bytes.front(), std::byte{1});
  EXPECT_EQ(bytes.back(), std::byte{1});
}

// --- errors -------------------------------------------------------------------------------------

TEST_F(Drive, StatusesBecomeErrors) {
  nvme::Status next;
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    connection.respond(sqe.cid, next);
    return Verdict::kTaken;
  });
  const std::pair<StatusCode, Errc> cases[] = {
      {StatusCode::kCapacityExceeded, Errc::kNoSpace},
      {StatusCode::kReservationConflict, Errc::kDenied},
      {StatusCode::kInvalidNamespaceOrFormat, Errc::kNotFound},
      {StatusCode::kWriteFault, Errc::kIo},
      {StatusCode::kLbaOutOfRange, Errc::kInvalid},
      {StatusCode::kSuccess, Errc::kCorrupt},  // of a read without data
  };
  for (const auto& [code, expected] : cases) {
    next = nvme::final_status(code);
    finished = false;
    static Errc want;
    want = expected;
    run([](env::Env& env, Drive& test) -> Task<void> {
      std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
      std::vector<std::byte> data(kBlock);
      const Result<void> done = co_await drive->read(Lba(0), data);
      EXPECT_TRUE(!done && done.error() == want) << done.error().text();
      co_await drive->close();
    });
  }
}

TEST_F(Drive, TransientStatusesAreTriedAgainSoOften) {
  int failures = 3;
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    if (failures == 0) return Verdict::kServe;
    --failures;
    connection.respond(sqe.cid, StatusCode::kNamespaceNotReady);
    return Verdict::kTaken;
  });
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    EXPECT_EQ(drive->counters().resent, 3u);
    co_await drive->close();
  });
  failures = 1000;
  finished = false;
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kIo);
    EXPECT_EQ(drive->counters().resent, test.options.retries_max);
    co_await drive->close();
  });
}

TEST_F(Drive, FlippedDataAreReadAgain) {
  options.data_digest = true;
  int flips = 2;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe&) {
    target.options.data_flip = flips > 0 ? 1 : 0;
    --flips;
    return Verdict::kServe;
  });
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kRead), 3u);
}

// A digest is computed when data are sent, and they may be sent in parts, or again.
TEST_F(Drive, WithDigestsWhatIsWrittenIsWhatTheMemoryHeldAtFirst) {
  options.data_digest = true;
  target.options.in_capsule_max = 0;
  target.options.on_command = for_io([this](FakeConnection&, const Sqe&) {
    std::ranges::fill(lent, std::byte{2});
    return Verdict::kServe;
  });
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock, std::byte{1});
    test.lent = data;
    const MutableBytes piece(data);
    const Result<void> done = co_await drive->submit(
        {.kind = Kind::kWrite, .unstable_memory = true, .lba = Lba(0), .blocks = 1}, {&piece, 1});
    test.lent = {};
    EXPECT_OK(done);
    EXPECT_EQ(data[0], std::byte{2});
    co_await drive->close();
  });
  EXPECT_EQ(stored(0, 1)[0], std::byte{1});
}

SIM_TEST_F(Drive, OpensOnlyWhatIsThere) {
  Uri wrong = test.uri();
  wrong.nsid = 7;
  Result<std::unique_ptr<RemoteDrive>> drive = co_await RemoteDrive::open(env, wrong);
  EXPECT_FALSE(drive.has_value());
  wrong = test.uri();
  wrong.nqn = "nqn.2026-11.io.cairn:other";
  drive = co_await RemoteDrive::open(env, wrong);
  EXPECT_TRUE(!drive && drive.error() == Errc::kNotFound) << drive.error().text();
  wrong = test.uri();
  wrong.paths[0].port = 1;
  drive = co_await RemoteDrive::open(env, wrong);
  EXPECT_TRUE(!drive && drive.error() == Errc::kUnreachable);
  wrong.nqn = nvme::kDiscoveryNqn;
  drive = co_await RemoteDrive::open(env, wrong);
  EXPECT_TRUE(!drive && drive.error() == Errc::kInvalid);
  task::Deadline deadline(env, env.now() + 1_s);
  test.target.options.on_command = [](FakeConnection&, const Sqe&) { return Verdict::kIgnore; };
  drive = co_await RemoteDrive::open(env, test.uri(), deadline.token());
  EXPECT_TRUE(!drive && drive.error() == Errc::kTimedOut);
}

TEST_F(Drive, ExecutesCommandsAsTheyAre) {
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    Sqe sqe = Sqe::make(IoOpcode::kReservationRegister, 1);
    std::vector<std::byte> keys(16);
    const Result<nvme::Cqe> done = co_await drive->execute(sqe, keys);
    EXPECT_OK(done);
    EXPECT_EQ(done->get_status().code(), StatusCode::kInvalidOpcode);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kReservationRegister), 1u);
}

TEST_F(Drive, SeesResizedNamespacesAtOnce) {
  meanwhile = [&] {
    if (target.count(IoOpcode::kRead) == 0 || target.medium->blocks == 9000) return;
    target.medium->blocks = 9000;
    target.medium->bytes.resize(9000 * kBlock);
    target.notify(nvme::kNamespacesChanged);
  };
  run([](env::Env& env, Drive& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    Result<void> done = co_await drive->read(Lba(8999), data);
    EXPECT_TRUE(!done && done.error() == Errc::kInvalid);
    done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    const Result<void> slept = co_await task::sleep_for(env, 20_ms);
    EXPECT_OK(slept);
    EXPECT_EQ(drive->geometry().blocks, 9000u);
    done = co_await drive->read(Lba(8999), data);
    EXPECT_OK(done);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::host_tests
