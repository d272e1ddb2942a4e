// SPDX-License-Identifier: Apache-2.0
#include "nvme/reservation/reservations.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {
namespace {

using Notice = Reservations::Notice;
using Outcome = Reservations::Outcome;
using enum ReservationType;
using enum ReservationNotice;

constexpr HostId host(uint8_t number) { return {number}; }
constexpr HostId kA = host(1);
constexpr HostId kB = host(2);
constexpr HostId kC = host(3);

constexpr ReservationType kTypes[] = {
    kWriteExclusive,    kExclusiveAccess,   kWriteExclusiveRegistrants, kExclusiveAccessRegistrants,
    kWriteExclusiveAll, kExclusiveAccessAll};
bool is_for_all(ReservationType type) { return type >= kWriteExclusiveAll; }
bool is_shared(ReservationType type) { return type >= kWriteExclusiveRegistrants; }

// Hosts A, B and C with keys 10, 20 and 30.
class ReservationsTest : public ::testing::Test {
 protected:
  Reservations space;

  Outcome enrol(const HostId& who, uint64_t key) {
    return space.registration(who, {.action = RegisterAction::kRegister}, {.new_key = key});
  }
  Outcome unregister(const HostId& who, uint64_t key, bool ignore = false) {
    return space.registration(who, {.action = RegisterAction::kUnregister, .ignore_key = ignore},
                              {.current_key = key});
  }
  struct Keys {
    uint64_t now = 0;
    uint64_t next = 0;
  };
  Outcome replace(const HostId& who, Keys keys, bool ignore = false) {
    return space.registration(who, {.action = RegisterAction::kReplace, .ignore_key = ignore},
                              {.current_key = keys.now, .new_key = keys.next});
  }
  Outcome acquire(const HostId& who, uint64_t key, ReservationType type) {
    return space.acquire(who, {.type = type}, {.current_key = key});
  }
  struct Preempt {
    uint64_t key = 0;
    uint64_t victim = 0;
    ReservationType type = kWriteExclusive;
    bool abort = false;
  };
  Outcome preempt(const HostId& who, Preempt how) {
    const auto action = how.abort ? AcquireAction::kPreemptAndAbort : AcquireAction::kPreempt;
    return space.acquire(who, {.action = action, .type = how.type},
                         {.current_key = how.key, .preempt_key = how.victim});
  }
  Outcome release(const HostId& who, uint64_t key, ReservationType type) {
    return space.release(who, {.type = type}, {.current_key = key});
  }
  Outcome clear(const HostId& who, uint64_t key) {
    return space.release(who, {.action = ReleaseAction::kClear}, {.current_key = key});
  }
  void enrol_all() {
    space = {};
    EXPECT_TRUE(enrol(kA, 10).status.ok());
    EXPECT_TRUE(enrol(kB, 20).status.ok());
    EXPECT_TRUE(enrol(kC, 30).status.ok());
  }
  size_t count() const { return space.registrations().size(); }
};

constexpr auto kConflict = StatusCode::kReservationConflict;
constexpr auto kInvalid = StatusCode::kInvalidField;

TEST_F(ReservationsTest, RegisteringTwiceNeedsTheSameKey) {
  EXPECT_TRUE(enrol(kA, 10).status.ok());
  EXPECT_TRUE(enrol(kA, 10).status.ok());
  EXPECT_EQ(enrol(kA, 11).status, kConflict);
  EXPECT_EQ(enrol(kB, 0).status, kInvalid);
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(space.generation(), 2u);
}

TEST_F(ReservationsTest, ReplacingNeedsTheOldKeyOrToIgnoreIt) {
  enrol_all();
  EXPECT_EQ(replace(kA, {.now = 11, .next = 12}).status, kConflict);
  EXPECT_TRUE(replace(kA, {.now = 10, .next = 12}).status.ok());
  EXPECT_TRUE(replace(kA, {.now = 99, .next = 13}, true).status.ok());
  EXPECT_EQ(space.registrations()[0].key, 13u);
  EXPECT_EQ(replace(kA, {.now = 13, .next = 0}).status, kInvalid);
  EXPECT_EQ(replace(host(9), {.now = 0, .next = 5}).status, kConflict);
  EXPECT_TRUE(replace(host(9), {.now = 0, .next = 5}, true).status.ok()) << "registers";
  EXPECT_EQ(count(), 4u);
}

TEST_F(ReservationsTest, UnregisteringNeedsTheKeyOrToIgnoreIt) {
  enrol_all();
  EXPECT_EQ(unregister(kA, 11).status, kConflict);
  EXPECT_TRUE(unregister(kA, 10).status.ok());
  EXPECT_EQ(unregister(kA, 10).status, kConflict);
  EXPECT_EQ(unregister(kA, 10, true).status, kConflict);
  EXPECT_TRUE(unregister(kB, 99, true).status.ok());
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(space.generation(), 5u);
}

TEST_F(ReservationsTest, ReservedFieldsAreInvalid) {
  enrol_all();
  EXPECT_EQ(space.registration(kA, {.action = RegisterAction{3}}, {}).status, kInvalid);
  EXPECT_EQ(space.registration(kA, {.persist = PersistChange::kReserved}, {.new_key = 10}).status,
            kInvalid);
  EXPECT_EQ(
      space.acquire(kA, {.action = AcquireAction{3}, .type = kWriteExclusive}, {.current_key = 10})
          .status,
      kInvalid);
  EXPECT_EQ(
      space.acquire(kA, {.ignore_key = true, .type = kWriteExclusive}, {.current_key = 10}).status,
      kInvalid);
  for (const int type : {0, 7, 255}) {
    EXPECT_EQ(acquire(kA, 10, ReservationType(type)).status, kInvalid);
  }
  EXPECT_EQ(space.release(kA, {.action = ReleaseAction{2}}, {.current_key = 10}).status, kInvalid);
  EXPECT_EQ(space.release(kA, {.ignore_key = true}, {.current_key = 10}).status, kInvalid);
}

TEST_F(ReservationsTest, OnlyRegistrantsWithTheirKeyAcquire) {
  enrol_all();
  EXPECT_EQ(acquire(host(9), 10, kWriteExclusive).status, kConflict);
  EXPECT_EQ(acquire(kA, 11, kWriteExclusive).status, kConflict);
  EXPECT_TRUE(acquire(kA, 10, kWriteExclusive).status.ok());
  EXPECT_EQ(space.generation(), 3u) << "acquiring does not count";
}

TEST_F(ReservationsTest, AcquiringAgainNeedsTheSameTypeAndHolder) {
  for (const ReservationType type : kTypes) {
    enrol_all();
    EXPECT_TRUE(acquire(kA, 10, type).status.ok());
    EXPECT_TRUE(acquire(kA, 10, type).status.ok());
    EXPECT_EQ(acquire(kB, 20, type).status.ok(), is_for_all(type));
    const ReservationType other = type == kWriteExclusive ? kExclusiveAccess : kWriteExclusive;
    EXPECT_EQ(acquire(kA, 10, other).status, kConflict);
    EXPECT_EQ(space.type(), type);
    EXPECT_TRUE(space.is_holder(kA));
    EXPECT_EQ(space.is_holder(kB), is_for_all(type));
    EXPECT_FALSE(space.is_holder(host(9)));
  }
}

TEST_F(ReservationsTest, ReleasingTellsTheOthersOfSharedTypes) {
  for (const ReservationType type : kTypes) {
    enrol_all();
    EXPECT_TRUE(release(kA, 10, type).status.ok()) << "nothing to release";
    acquire(kA, 10, type);
    const ReservationType other = type == kWriteExclusive ? kExclusiveAccess : kWriteExclusive;
    EXPECT_EQ(release(kA, 10, other).status, kInvalid);
    EXPECT_EQ(release(kA, 11, type).status, kConflict);
    if (!is_for_all(type)) {
      EXPECT_TRUE(release(kB, 20, type).status.ok()) << "not a holder: nothing happens";
      EXPECT_EQ(space.type(), type);
    }
    const Outcome outcome = release(kA, 10, type);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(space.type(), kNone);
    const std::vector<Notice> told = {{kB, kReservationReleased}, {kC, kReservationReleased}};
    EXPECT_EQ(outcome.notices, is_shared(type) ? told : std::vector<Notice>{});
    EXPECT_EQ(space.generation(), 3u);
    EXPECT_EQ(count(), 3u);
  }
}

TEST_F(ReservationsTest, AHolderThatUnregistersReleases) {
  for (const ReservationType type : kTypes) {
    enrol_all();
    acquire(kA, 10, type);
    const Outcome outcome = unregister(kA, 10);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(space.type(), is_for_all(type) ? type : kNone);
    const bool told = is_shared(type) && !is_for_all(type);
    EXPECT_EQ(outcome.notices.size(), told ? 2u : 0u);
    unregister(kB, 20);
    unregister(kC, 30);
    EXPECT_EQ(space.type(), kNone) << "it ends with the last registrant";
  }
}

TEST_F(ReservationsTest, ClearingRemovesEverythingAndTellsTheOthers) {
  for (const ReservationType type : kTypes) {
    enrol_all();
    acquire(kA, 10, type);
    EXPECT_EQ(clear(kB, 21).status, kConflict);
    const Outcome outcome = clear(kB, 20);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.notices,
              (std::vector<Notice>{{kA, kReservationPreempted}, {kC, kReservationPreempted}}));
    EXPECT_EQ(count(), 0u);
    EXPECT_EQ(space.type(), kNone);
    EXPECT_EQ(space.generation(), 4u);
  }
}

TEST_F(ReservationsTest, PreemptingTheHolderTakesItsPlace) {
  for (const ReservationType type : kTypes) {
    if (is_for_all(type)) continue;
    for (const ReservationType next : kTypes) {
      enrol_all();
      acquire(kA, 10, type);
      const Outcome outcome = preempt(kB, {.key = 20, .victim = 10, .type = next});
      EXPECT_TRUE(outcome.status.ok());
      EXPECT_EQ(space.type(), next);
      EXPECT_TRUE(space.is_holder(kB));
      EXPECT_FALSE(space.is_holder(kA));
      EXPECT_EQ(count(), 2u);
      std::vector<Notice> told = {{kA, kRegistrationPreempted}};
      if (is_shared(type) && next != type) told.push_back({kC, kReservationReleased});
      EXPECT_EQ(outcome.notices, told);
      EXPECT_TRUE(outcome.preempted.empty());
      EXPECT_EQ(space.generation(), 4u);
    }
  }
}

TEST_F(ReservationsTest, PreemptingAnotherKeyOnlyUnregisters) {
  for (const ReservationType type : kTypes) {
    enrol_all();
    acquire(kA, 10, type);
    const Outcome outcome = preempt(kB, {.key = 20, .victim = 30, .type = kExclusiveAccess});
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(space.type(), type);
    EXPECT_TRUE(space.is_holder(kA));
    EXPECT_EQ(outcome.notices, (std::vector<Notice>{{kC, kRegistrationPreempted}}));
    EXPECT_EQ(count(), 2u);
    EXPECT_EQ(space.generation(), 4u);
  }
}

TEST_F(ReservationsTest, PreemptingWithoutAReservationOnlyUnregisters) {
  enrol_all();
  EXPECT_TRUE(preempt(kB, {.key = 20, .victim = 10}).status.ok());
  EXPECT_EQ(space.type(), kNone);
  EXPECT_EQ(count(), 2u);
}

TEST_F(ReservationsTest, PreemptingForAllWithKeyZeroLeavesOneAlone) {
  for (const ReservationType type : {kWriteExclusiveAll, kExclusiveAccessAll}) {
    enrol_all();
    acquire(kA, 10, type);
    const Outcome outcome =
        preempt(kB, {.key = 20, .victim = 0, .type = kWriteExclusive, .abort = true});
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(count(), 1u);
    EXPECT_EQ(space.type(), kWriteExclusive);
    EXPECT_EQ(space.holder(), kB);
    EXPECT_EQ(outcome.preempted, (std::vector<HostId>{kA, kC}));
    EXPECT_EQ(outcome.notices.size(), 2u);
  }
}

TEST_F(ReservationsTest, PreemptingNobodyIsAConflict) {
  enrol_all();
  EXPECT_EQ(preempt(kB, {.key = 20, .victim = 99}).status, kConflict);
  EXPECT_EQ(preempt(kB, {.key = 20, .victim = 0}).status, kInvalid);
  acquire(kA, 10, kWriteExclusive);
  EXPECT_EQ(preempt(kB, {.key = 20, .victim = 99}).status, kConflict);
  EXPECT_EQ(preempt(kB, {.key = 20, .victim = 0}).status, kInvalid);
  EXPECT_EQ(preempt(kB, {.key = 21, .victim = 10}).status, kConflict);
  EXPECT_EQ(space.generation(), 3u);
}

TEST_F(ReservationsTest, PreemptingOneselfChangesTheType) {
  enrol_all();
  acquire(kA, 10, kWriteExclusiveRegistrants);
  const Outcome outcome = preempt(kA, {.key = 10, .victim = 10, .type = kExclusiveAccess});
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(space.type(), kExclusiveAccess);
  EXPECT_EQ(space.holder(), kA);
  EXPECT_EQ(count(), 3u);
  EXPECT_EQ(outcome.notices,
            (std::vector<Notice>{{kB, kReservationReleased}, {kC, kReservationReleased}}));
}

TEST_F(ReservationsTest, PreemptAndAbortNamesWhoseCommandsEnd) {
  enrol_all();
  acquire(kA, 10, kWriteExclusive);
  const Outcome outcome = preempt(kB, {.key = 20, .victim = 10, .abort = true});
  EXPECT_EQ(outcome.preempted, (std::vector<HostId>{kA}));
}

TEST_F(ReservationsTest, RegistrantsAreBounded) {
  for (uint32_t i = 0; i < kRegistrantsMax; ++i) {
    EXPECT_TRUE(enrol({static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8), 1}, 5).status.ok());
  }
  EXPECT_FALSE(enrol(kA, 5).status.ok());
  EXPECT_EQ(count(), kRegistrantsMax);
}

TEST_F(ReservationsTest, PersistenceIsKeptOnlyWhereItCanBe) {
  enrol_all();
  const RegisterFields set{.action = RegisterAction::kRegister, .persist = PersistChange::kSet};
  const RegisterFields unset{.action = RegisterAction::kRegister, .persist = PersistChange::kClear};
  EXPECT_TRUE(space.registration(kA, set, {.new_key = 10}).status.ok()) << "as Linux asks";
  EXPECT_FALSE(space.persists());
  EXPECT_EQ(space.save(), Reservations::Saved{});
  space.set_can_persist(true);
  space.registration(kA, set, {.new_key = 10});
  EXPECT_TRUE(space.persists());
  EXPECT_EQ(space.save().registrations, space.registrations());
  space.registration(kA, unset, {.new_key = 10});
  EXPECT_FALSE(space.persists());
}

TEST_F(ReservationsTest, ReportIsGolden) {
  space.set_can_persist(true);
  enrol(kA, 0x1122);
  space.registration(kB, {.persist = PersistChange::kSet}, {.new_key = 0x33});
  acquire(kB, 0x33, kExclusiveAccessRegistrants);
  std::array<uint8_t, 256> bytes;
  bytes.fill(0xee);
  space.report(std::as_writable_bytes(std::span(bytes)));
  std::array<uint8_t, 256> expected{};
  expected[0] = 2;                     // GEN
  expected[4] = 4;                     // RTYPE
  expected[5] = 2;                     // REGCTL
  expected[9] = 1;                     // PTPLS
  expected[64] = expected[65] = 0xff;  // CNTLID
  expected[72] = 0x22;                 // RKEY
  expected[73] = 0x11;
  expected[80] = 1;  // HOSTID
  expected[128] = expected[129] = 0xff;
  expected[130] = 1;  // RCSTS
  expected[136] = 0x33;
  expected[144] = 2;
  EXPECT_EQ(bytes, expected);
  std::array<uint8_t, 72> cut;
  space.report(std::as_writable_bytes(std::span(cut)));
  EXPECT_TRUE(std::equal(cut.begin(), cut.end(), expected.begin()));
}

TEST_F(ReservationsTest, ViewPermitsWhatTheTypeSays) {
  struct Row {
    ReservationType type;
    bool registrant_reads, registrant_writes, stranger_reads;
  };
  for (const Row& row :
       {Row{kWriteExclusive, true, false, true}, Row{kExclusiveAccess, false, false, false},
        Row{kWriteExclusiveRegistrants, true, true, true},
        Row{kExclusiveAccessRegistrants, true, true, false},
        Row{kWriteExclusiveAll, true, true, true}, Row{kExclusiveAccessAll, true, true, false}}) {
    enrol_all();
    acquire(kA, 10, row.type);
    const ReservationView view = space.view();
    EXPECT_TRUE(view.permits(kA, false) && view.permits(kA, true));
    EXPECT_EQ(view.permits(kB, false), row.registrant_reads);
    EXPECT_EQ(view.permits(kB, true), row.registrant_writes);
    EXPECT_EQ(view.permits(host(9), false), row.stranger_reads);
    EXPECT_FALSE(view.permits(host(9), true));
  }
}

// Whatever comes: somebody registered holds what is held, and failures change nothing.
TEST_F(ReservationsTest, RandomCommandsKeepTheInvariants) {
  Rng rng(7);
  for (int i = 0; i < 200'000; ++i) {
    const Reservations before = space;
    const HostId who = host(static_cast<uint8_t>(rng.below(5)));
    const uint64_t key = rng.below(4);
    const uint64_t second = rng.below(4);
    const auto type = ReservationType(rng.below(8));
    Outcome outcome;
    switch (rng.below(3)) {
      case 0:
        outcome = space.registration(who,
                                     {.action = RegisterAction(rng.below(4)),
                                      .ignore_key = rng.bernoulli(0.3),
                                      .persist = PersistChange(rng.below(4))},
                                     {.current_key = key, .new_key = second});
        break;
      case 1:
        outcome = space.acquire(who,
                                {.action = AcquireAction(rng.below(4)),
                                 .ignore_key = rng.bernoulli(0.05),
                                 .type = type},
                                {.current_key = key, .preempt_key = second});
        break;
      default:
        outcome =
            space.release(who,
                          {.action = ReleaseAction(rng.bernoulli(0.1) ? 1 : rng.below(3) * 2 / 2),
                           .ignore_key = rng.bernoulli(0.05),
                           .type = type},
                          {.current_key = key});
        break;
    }
    if (!outcome.status.ok()) {
      ASSERT_TRUE(outcome.status.do_not_retry());
      ASSERT_EQ(space.registrations(), before.registrations());
      ASSERT_EQ(space.type(), before.type());
      ASSERT_EQ(space.holder(), before.holder());
      ASSERT_EQ(space.generation(), before.generation());
      ASSERT_TRUE(outcome.notices.empty() && outcome.preempted.empty());
    }
    std::map<HostId, int> seen;
    bool held = false;
    for (const Reservations::Registration& each : space.registrations()) {
      ASSERT_EQ(++seen[each.host], 1);
      ASSERT_NE(each.key, 0u);
      held = held || space.is_holder(each.host);
    }
    ASSERT_EQ(held, space.type() != kNone);
    for (const Notice& notice : outcome.notices) ASSERT_NE(notice.host, who);
  }
}

}  // namespace
}  // namespace cairn::nvme
