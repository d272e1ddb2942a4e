// SPDX-License-Identifier: Apache-2.0
// A lane that dies in the middle of a caravan: cut after each of its bytes in turn, and after each
// byte of the answers. Exactly what was not answered is sent again, what must not be executed twice
// is not, and every caller is told what became of its request.
#include <map>
#include <set>
#include <utility>

#include "host/drive_fixture.h"
#include "nvme/format/io_format.h"
#include "task/when_all.h"

namespace cairn::host_tests {
namespace {

constexpr uint64_t kReads = 8;
constexpr uint64_t kWrites = 5;
constexpr uint64_t kReadsAt = 100;
constexpr uint64_t kWritesAt = 200;
constexpr uint64_t kPairAt = 300;
constexpr uint64_t kRegisterAt = 0;  // it names no block
constexpr size_t kCommands = kReads + kWrites + 1 + 2;
constexpr size_t kRepeatable = kReads + kWrites;

// Sanitizers make each run many times slower; they look at some of the bytes.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kStep = 31;
#else
constexpr uint64_t kStep = 1;
#endif

// What a lane's connecting takes, with digests.
constexpr uint64_t kGreetings = sizeof(nvme::IcReq) + sizeof(nvme::CapsuleCmd) +
                                sizeof(nvme::ConnectData) + 2 * nvme::kDigestSize;
constexpr uint64_t kWelcomes = sizeof(nvme::IcResp) + sizeof(nvme::CapsuleResp) + nvme::kDigestSize;

// A command as the target knows it.
using Identity = std::pair<IoOpcode, uint64_t>;

class CaravanDeath : public DriveTest {
 public:
  CaravanDeath() {
    options.header_digest = options.data_digest = true;
    options.keep_alive = 0_s;
    options.doorbell = {.mode = fabric::DoorbellOptions::Mode::kFixed, .count = 16};
    world.network.jitter_max = 0_s;
    world.buggify.site = 0;
    world.trace_capacity = 16;
    target.options.on_command = for_io([this](FakeConnection& connection, const Sqe& sqe) {
      const bool has_lba = sqe.io_opcode() != IoOpcode::kReservationRegister;
      const uint64_t lba = has_lba ? nvme::BlockFields::decode(sqe).start.value() : kRegisterAt;
      seen[connection.target().io_connects].insert({sqe.io_opcode(), lba});
      return Verdict::kServe;
    });
  }

  // True: the connection lived long enough to be cut there.
  bool die_at(bool to_server, uint64_t position) {
    world.network.cut = {
        .connection = 1, .to_server = to_server, .position = position, .breaks = true};
    target.medium = std::make_shared<FakeMedium>(1024);
    target.io_connects = 0;
    seen.clear();
    finished = false;
    on_host<CaravanDeath>(*this, &CaravanDeath::body, 100_s);
    return was_cut;
  }

  std::map<uint64_t, std::multiset<Identity>> seen;  // by life of the lane, from 1
  Result<void> pair_result;
  Result<nvme::Cqe> register_result = nvme::Cqe();
  uint64_t resent = 0;
  bool was_cut = false;

 private:
  static Task<void> one(RemoteDrive& drive, bool writes, uint64_t lba,
                        std::vector<std::byte>& data) {
    Result<void> done;
    if (writes) {
      done = co_await drive.write(Lba(lba), data);
    } else {
      done = co_await drive.read(Lba(lba), data);
    }
    EXPECT_OK(done);
  }
  static Task<void> compare_and_write(RemoteDrive& drive, CaravanDeath& test,
                                      std::vector<std::byte>& with, std::vector<std::byte>& data) {
    const MutableBytes old(with);
    const MutableBytes next(data);
    const Request request{.kind = Kind::kCompareAndWrite, .lba = Lba(kPairAt), .blocks = 1};
    test.pair_result = co_await drive.submit(request, std::span(&old, 1), std::span(&next, 1));
  }
  static Task<void> reserve(RemoteDrive& drive, CaravanDeath& test, MutableBytes data) {
    const Sqe sqe = Sqe::make(IoOpcode::kReservationRegister, 1);
    test.register_result = co_await drive.execute(sqe, data);
  }

  static Task<void> body(env::Env& env, CaravanDeath& test) {
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::vector<std::byte>> data;
    for (uint64_t i = 0; i < kReads; ++i) {
      const std::vector<std::byte> bytes = random_bytes(kBlock, i);
      std::ranges::copy(bytes, test.target.medium->bytes.begin() + (kReadsAt + i) * kBlock);
      data.emplace_back(kBlock);
    }
    for (uint64_t i = 0; i < kWrites; ++i) data.push_back(random_bytes(kBlock, 50 + i));
    std::vector<std::byte> zeroes(kBlock);
    std::vector<std::byte> next = random_bytes(kBlock, 99);
    std::vector<std::byte> keys(16);
    std::vector<Task<void>> all;
    for (uint64_t i = 0; i < kReads; ++i) all.push_back(one(*drive, false, kReadsAt + i, data[i]));
    for (uint64_t i = 0; i < kWrites; ++i) {
      all.push_back(one(*drive, true, kWritesAt + i, data[kReads + i]));
    }
    all.push_back(reserve(*drive, test, keys));
    all.push_back(compare_and_write(*drive, test, zeroes, next));  // rings for all
    co_await task::when_all(std::move(all));
    for (uint64_t i = 0; i < kReads; ++i) EXPECT_EQ(data[i], random_bytes(kBlock, i));
    for (uint64_t i = 0; i < kWrites; ++i) {
      EXPECT_TRUE(std::ranges::equal(test.stored(kWritesAt + i, 1), data[kReads + i]));
    }
    const bool is_written = std::ranges::equal(test.stored(kPairAt, 1), next);
    if (test.pair_result) EXPECT_TRUE(is_written);
    if (!is_written) EXPECT_TRUE(std::ranges::equal(test.stored(kPairAt, 1), zeroes));
    test.resent = drive->counters().resent;
    co_await drive->close();
    test.was_cut = test.cluster().was_cut();
  }
};

// What both lives of the lane carried, against what callers were told.
void expect_nothing_twice(CaravanDeath& test, uint64_t position) {
  const std::multiset<Identity>& first = test.seen[1];
  const std::multiset<Identity>& second = test.seen[2];
  EXPECT_LE(test.seen.size(), 2u) << position;
  for (const std::multiset<Identity>* life : {&first, &second}) {
    for (const Identity& each : *life) EXPECT_EQ(life->count(each), 1u) << position;
  }
  // What must not be executed twice stays with the lane it was sent on.
  for (const Identity& once :
       {Identity{IoOpcode::kReservationRegister, kRegisterAt},
        Identity{IoOpcode::kCompare, kPairAt}, Identity{IoOpcode::kWrite, kPairAt}}) {
    EXPECT_EQ(second.count(once), 0u) << position;
  }
  if (test.pair_result) {
    EXPECT_EQ(first.count({IoOpcode::kWrite, kPairAt}), 1u) << position;
  } else {
    EXPECT_EQ(test.pair_result.error(), Errc::kReset) << position;
  }
  if (test.register_result) {
    EXPECT_EQ(first.count({IoOpcode::kReservationRegister, kRegisterAt}), 1u) << position;
  } else {
    EXPECT_EQ(test.register_result.error(), Errc::kReset) << position;
  }
  EXPECT_EQ(test.resent, second.size()) << position;
}

// No answer has come, so everything that may be sent again is: all of it, once.
TEST_F(CaravanDeath, AfterAnyByteOfTheCommands) {
  size_t arrived = 0;
  uint64_t position = kGreetings + 1;
  for (; !HasFailure() && die_at(true, position); position += kStep) {
    expect_nothing_twice(*this, position);
    EXPECT_EQ(seen[2].size(), kRepeatable) << position;
    EXPECT_GE(seen[1].size(), arrived) << position;
    arrived = seen[1].size();
    EXPECT_FALSE(pair_result.has_value()) << position;
    EXPECT_FALSE(register_result.has_value()) << position;
  }
  EXPECT_FALSE(HasFailure()) << "at byte " << position;
  if (kStep == 1) EXPECT_EQ(arrived, kCommands) << "the last cut is behind the whole caravan";
}

// All were executed, and some answers came: the others are sent again.
TEST_F(CaravanDeath, AfterAnyByteOfTheAnswers) {
  size_t again = kRepeatable;
  uint64_t position = kWelcomes + 1;
  for (; !HasFailure() && die_at(false, position); position += kStep) {
    EXPECT_EQ(seen[1].size(), kCommands) << position;
    expect_nothing_twice(*this, position);
    EXPECT_LE(seen[2].size(), again) << position;
    again = seen[2].size();
  }
  EXPECT_FALSE(HasFailure()) << "at byte " << position;
  if (kStep == 1) EXPECT_EQ(again, 0u) << "the last cut is behind all answers";
  EXPECT_GT(position, kWelcomes + kReads * kBlock);
}

}  // namespace
}  // namespace cairn::host_tests
