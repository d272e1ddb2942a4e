// SPDX-License-Identifier: Apache-2.0
// Reservation commands through the registry: cores, notices, persistence.
#include <gtest/gtest.h>

#include <map>

#include "nvme/controller/registry_testing.h"
#include "nvme/format/reservation_format.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class Reserving : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Reserving, ::testing::Values(1, 3));

Task<Status> enrol(Registry& registry, TestHost& host, uint64_t key, PersistChange persist = {}) {
  Sqe sqe = Sqe::make(IoOpcode::kReservationRegister, 1);
  RegisterFields{.persist = persist}.encode(sqe);
  RegisterData data{.current_key = {}, .new_key = key};
  co_return co_await registry.reservation(*host.controller, sqe, mutable_bytes_of(data));
}
struct Acquire {
  uint64_t key = 0;
  ReservationType type = ReservationType::kWriteExclusive;
  AcquireAction action = AcquireAction::kAcquire;
  uint64_t victim = 0;
};
Task<Status> acquire(Registry& registry, TestHost& host, Acquire how) {
  Sqe sqe = Sqe::make(IoOpcode::kReservationAcquire, 1);
  AcquireFields{.action = how.action, .type = how.type}.encode(sqe);
  AcquireData data{.current_key = how.key, .preempt_key = how.victim};
  co_return co_await registry.reservation(*host.controller, sqe, mutable_bytes_of(data));
}
Task<ReservationStatus> report(Registry& registry, TestHost& host) {
  Sqe sqe = Sqe::make(IoOpcode::kReservationReport, 1);
  std::array<std::byte, 256> data;
  ReportFields{.dwords = 63, .extended = true}.encode(sqe);
  const Status status = co_await registry.reservation(*host.controller, sqe, data);
  EXPECT_TRUE(status.ok());
  co_return load<ReservationStatus>(data);
}

// Whether a host may write, as a core checks it.
Task<bool> may_write(Env& env, CoreId core, CoreNamespaces* spaces, HostId host) {
  return env::call_on(
      env, core, [spaces, host](Env&) { return spaces->find(1)->reservation.permits(host, true); });
}

SIM_TEST_P(Reserving, EveryCoreKnowsBeforeTheCommandCompletes) {
  co_await serve(registry);
  TestHost a(registry, 1);
  TestHost b(registry, 2);
  co_await a.arrive();
  co_await b.arrive();
  std::vector<CoreNamespaces*> spaces;
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    const ConnectReply reply =
        co_await a.connect_queue(static_cast<uint16_t>(core + 1), CoreId(core));
    spaces.push_back(reply.namespaces);
  }
  Status status = co_await enrol(registry, a, 10);
  EXPECT_TRUE(status.ok());
  status = co_await acquire(registry, a, {.key = 10});
  EXPECT_TRUE(status.ok());
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    bool may = co_await may_write(env, CoreId(core), spaces[core], a.data.host_id);
    EXPECT_TRUE(may);
    may = co_await may_write(env, CoreId(core), spaces[core], b.data.host_id);
    EXPECT_FALSE(may) << "known to every core when the command completes";
  }
  co_await a.leave_all();
  const ReservationStatus still = co_await report(registry, b);
  EXPECT_EQ(still.type, ReservationType::kWriteExclusive) << "it outlives the connection";
  EXPECT_EQ(still.registrants, 1u);
  co_await b.leave_all();
}

SIM_TEST_P(Reserving, BadCommandsAreRefused) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  std::array<std::byte, 64> data{};
  Sqe sqe = Sqe::make(IoOpcode::kReservationReport, 1);
  ReportFields{.dwords = 15, .extended = false}.encode(sqe);
  Status status = co_await registry.reservation(*host.controller, sqe, data);
  EXPECT_EQ(status, final_status(StatusCode::kHostIdInconsistentFormat));
  ReportFields{.dwords = 16, .extended = true}.encode(sqe);
  status = co_await registry.reservation(*host.controller, sqe, data);
  EXPECT_EQ(status, final_status(StatusCode::kDataSglLengthInvalid));
  ReportFields{.dwords = 15, .extended = true}.encode(sqe);
  for (const uint32_t nsid : {0u, 2u, kBroadcastNsid}) {
    sqe.nsid = nsid;
    status = co_await registry.reservation(*host.controller, sqe, data);
    EXPECT_EQ(status, final_status(StatusCode::kInvalidNamespaceOrFormat));
  }
  sqe = Sqe::make(IoOpcode::kReservationRegister, 1);
  status = co_await registry.reservation(*host.controller, sqe, std::span(data).first(15));
  EXPECT_EQ(status, final_status(StatusCode::kDataSglLengthInvalid));
  sqe = Sqe::make(IoOpcode::kRead, 1);
  status = co_await registry.reservation(*host.controller, sqe, data);
  EXPECT_EQ(status, final_status(StatusCode::kInvalidOpcode));
  const Result<void> set = co_await registry.set_ana_state(kTestNqn, 1, AnaState::kInaccessible);
  EXPECT_TRUE(set);
  status = co_await enrol(registry, host, 10);
  EXPECT_EQ(status, Status(StatusCode::kAnaInaccessible));
  co_await report(registry, host);
  co_await host.leave_all();
}

SIM_TEST_P(Reserving, PreemptedHostsReadWhatHappened) {
  co_await serve(registry);
  TestHost a(registry, 1);
  TestHost b(registry, 2);
  co_await a.arrive();
  co_await b.arrive();
  Status status = co_await enrol(registry, a, 10);
  status = co_await enrol(registry, b, 20);
  const Sqe ask = Sqe::make(AdminOpcode::kAsynchronousEventRequest);
  Task<Cqe> event = a.admin(ask);
  Acquire preempt{.key = 20, .action = AcquireAction::kPreempt, .victim = 10};
  status = co_await acquire(registry, b, preempt);
  EXPECT_TRUE(status.ok());
  status = co_await enrol(registry, a, 10);
  status = co_await acquire(registry, b, preempt);
  EXPECT_TRUE(status.ok());
  Cqe cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x0080'0006u);
  event = a.admin(ask);
  auto page = co_await a.log_as<ReservationNoticePage>(LogPage::kReservation);
  EXPECT_EQ(page.count, 1u);
  EXPECT_EQ(page.type, ReservationNotice::kRegistrationPreempted);
  EXPECT_EQ(page.available, 1);
  EXPECT_EQ(page.nsid, 1u);
  cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x0080'0006u) << "there is another to read";
  page = co_await a.log_as<ReservationNoticePage>(LogPage::kReservation);
  EXPECT_EQ(page.count, 2u);
  EXPECT_EQ(page.available, 0);
  page = co_await a.log_as<ReservationNoticePage>(LogPage::kReservation);
  EXPECT_EQ(page.type, ReservationNotice::kEmpty);
  EXPECT_EQ(page.count, 0u);
  // Masked ones are not even kept.
  cqe = co_await a.set_feature(Feature::kReservationNoticeMask,
                               ReservationNoticeMask::kRegistrationPreempted, {}, 1);
  status = co_await enrol(registry, a, 10);
  status = co_await acquire(registry, b, preempt);
  event = a.admin(ask);
  co_await let_pass(env, 1_ms);
  EXPECT_FALSE(event.is_done());
  page = co_await a.log_as<ReservationNoticePage>(LogPage::kReservation);
  EXPECT_EQ(page.type, ReservationNotice::kEmpty);
  co_await a.leave_all();
  co_await b.leave_all();
  co_await event;
}

// A queue with commands that take their time to stop.
struct SlowLink final : QueueLink {
  explicit SlowLink(Env& on) : env(on) {}
  void disconnect(const char*) override {}
  bool abort(uint16_t) override { return false; }
  bool take_traffic() override { return true; }
  Task<void> abort_namespace(uint32_t nsid) override {
    co_await let_pass(env, 5_ms);
    aborted = nsid;
  }
  Env& env;
  uint32_t aborted = 0;
};

SIM_TEST_P(Reserving, PreemptAndAbortWaitsForTheCommandsToEnd) {
  co_await serve(registry);
  TestHost a(registry, 1);
  TestHost b(registry, 2);
  co_await a.arrive();
  co_await b.arrive();
  SlowLink link(env);
  ConnectRequest request;
  a.connect.queue_id = 1;
  request.sqe = to_sqe(a.connect);
  request.data = a.data;
  request.link = &link;
  const ConnectReply reply = co_await registry.connect(request);
  EXPECT_TRUE(reply.status.ok());
  Status status = co_await enrol(registry, a, 10);
  status = co_await enrol(registry, b, 20);
  status = co_await acquire(registry, b,
                            {.key = 20, .action = AcquireAction::kPreemptAndAbort, .victim = 10});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(link.aborted, 1u) << "they have ended when the command completes";
  co_await registry.disconnected(*a.controller, 1, link);
  co_await a.leave_all();
  co_await b.leave_all();
}

struct TestStore final : ReservationStore {
  Task<Result<void>> save(std::string_view, uint32_t nsid, Bytes bytes) override {
    ++saves;
    if (fails) co_return fail(Errc::kNoSpace, "test");
    states[nsid] = std::vector<std::byte>(bytes.begin(), bytes.end());
    co_return Result<void>{};
  }
  std::map<uint32_t, std::vector<std::byte>> states;
  int saves = 0;
  bool fails = false;
};

SIM_TEST_P(Reserving, PersistentOnesSurviveARestart) {
  TestStore store;
  SubsystemOptions options;
  options.keep_reservations = true;
  options.reservation_store = &store;
  co_await serve(registry, options);
  TestHost host(registry);
  co_await host.arrive();
  Status status = co_await enrol(registry, host, 10);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(store.saves, 0) << "nothing persists yet";
  status = co_await enrol(registry, host, 10, PersistChange::kSet);
  status = co_await acquire(registry, host, {.key = 10});
  EXPECT_EQ(store.saves, 2);
  store.fails = true;
  status = co_await acquire(registry, host,
                            {.key = 10,
                             .type = ReservationType::kExclusiveAccess,
                             .action = AcquireAction::kPreempt,
                             .victim = 10});
  EXPECT_EQ(status, Status(StatusCode::kInternalError));
  ReservationStatus now = co_await report(registry, host);
  EXPECT_EQ(now.type, ReservationType::kWriteExclusive) << "what is not stored did not happen";
  store.fails = false;
  Cqe cqe = co_await host.get_feature(Feature::kReservationPersistence, FeatureSelect::kCurrent, 0,
                                      {}, 1);
  EXPECT_EQ(cqe.dw0, 1u);
  co_await host.leave_all();
  // As after a restart: the same namespace, with what was stored.
  NamespaceOptions space = registry.namespaces(kTestNqn)[0].options;
  Result<void> removed = co_await registry.remove_namespace(kTestNqn, 1);
  EXPECT_TRUE(removed);
  space.reservations = store.states[1];
  space.reservations[40] ^= std::byte{1};
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, space);
  EXPECT_EQ(added.error(), Errc::kCorrupt);
  space.reservations = store.states[1];
  added = co_await registry.add_namespace(kTestNqn, space);
  EXPECT_EQ(added.value_or(0), 1u);
  co_await host.arrive();
  now = co_await report(registry, host);
  EXPECT_EQ(now.type, ReservationType::kWriteExclusive);
  EXPECT_EQ(now.registrants, 1u);
  EXPECT_EQ(now.persist, 1);
  EXPECT_EQ(now.generation, 2u);
  TestHost other(registry, 2);
  co_await other.arrive();
  ConnectReply reply = co_await other.connect_queue(1);
  EXPECT_FALSE(reply.namespaces->find(1)->reservation.permits(other.data.host_id, true));
  cqe = co_await host.set_feature(Feature::kReservationPersistence, 0, {}, 1);
  EXPECT_TRUE(cqe.get_status().ok());
  now = co_await report(registry, host);
  EXPECT_EQ(now.persist, 0);
  co_await host.leave_all();
  co_await other.leave_all();
  removed = co_await registry.remove_subsystem(kTestNqn);
  EXPECT_TRUE(removed);
}

}  // namespace
}  // namespace cairn::nvme
