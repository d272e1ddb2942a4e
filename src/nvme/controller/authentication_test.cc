// SPDX-License-Identifier: Apache-2.0
// Queues that have to authenticate, as the registry treats them.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nvme/controller/registry_testing.h"
#include "task/gate.h"
#include "testing/nvme/two_ends.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

AuthPolicy policy_of(AuthKeys keys) {
  AuthPolicy policy;
  policy.hosts.emplace(kAuthHost, std::move(keys));
  policy.means = {.hashes = {AuthHash::kSha256}, .groups = {AuthGroup::kNull}};
  return policy;
}

// A host that can authenticate its queues.
class AuthHost : public TestHost {
 public:
  AuthHost(env::Env& env, Registry& registry, std::string name = kAuthHost)
      : TestHost(registry), name_(std::move(name)), env_(env), registry_(registry) {
    data.host_nqn.set(name_);
  }
  // Begins a transaction with nonsense, and waits until that is answered or `token`.
  task::Task<void> wait_for_turn(task::CancelToken token) {
    AuthenticationCommand command;
    command.type = FabricsType::kAuthenticationSend;
    command.length = static_cast<uint32_t>(room.size());
    co_await registry_.admin(*controller, to_sqe(command), room, token);
  }

  task::Task<Cqe> carry(FabricsType type, uint16_t queue_id, MutableBytes bytes) {
    AuthenticationCommand command;
    command.type = type;
    command.length = static_cast<uint32_t>(bytes.size());
    co_return co_await registry_.admin(*controller, to_sqe(command), bytes, {}, queue_id);
  }
  task::Task<Status> send(uint16_t queue_id, size_t size) {
    const MutableBytes message = MutableBytes(room).first(size);
    const Cqe cqe = co_await carry(FabricsType::kAuthenticationSend, queue_id, message);
    co_return cqe.get_status();
  }
  task::Task<Status> receive(uint16_t queue_id) {
    gift.fill(std::byte{0});
    const Cqe cqe = co_await carry(FabricsType::kAuthenticationReceive, queue_id, gift);
    co_return cqe.get_status();
  }
  // A whole transaction; every command succeeds whatever comes of it.
  task::Task<Result<void>> authenticate(uint16_t queue_id, AuthKeys keys) {
    const AuthMeans means;
    const AuthDraw draw = AuthDraw::from(env_);
    AuthInitiator initiator({.keys = keys,
                             .means = means,
                             .names = {.host = name_, .subsystem = kTestNqn},
                             .draw = draw});
    Status status = co_await send(queue_id, initiator.negotiate(room));
    EXPECT_TRUE(status.ok()) << text(status, StatusContext::kFabrics);
    status = co_await receive(queue_id);
    EXPECT_TRUE(status.ok()) << text(status, StatusContext::kFabrics);
    Result<size_t> next = initiator.reply(gift, room);
    if (!next) co_return fail(next.error());
    status = co_await send(queue_id, *next);
    EXPECT_TRUE(status.ok()) << text(status, StatusContext::kFabrics);
    status = co_await receive(queue_id);
    EXPECT_TRUE(status.ok()) << text(status, StatusContext::kFabrics);
    next = initiator.finish(gift, room);
    const size_t size = next ? *next : initiator.failure(room).value_or(0);
    if (size > 0) status = co_await send(queue_id, size);
    if (!next) co_return fail(next.error());
    co_return Result<void>{};
  }

  std::array<std::byte, kAuthMessageMax> room{};
  std::array<std::byte, kAuthMessageMax> gift{};

 private:
  std::string name_;
  env::Env& env_;
  Registry& registry_;
};

class Authentication : public RegistryTest {
 public:
  struct Scene {
    env::Env& env;
    Registry& registry;
    std::vector<AuthenticationFailure> failures = {};

    // The registry serves the test subsystem with this policy and notes failures.
    task::Task<void> serve_with(AuthPolicy policy) {
      co_await serve(registry);
      EXPECT_TRUE(registry.set_authentication(kTestNqn, std::move(policy)));
      registry.on_authentication(
          [this](const AuthenticationFailure& failure) { failures.push_back(failure); });
    }
  };
};
INSTANTIATE_TEST_SUITE_P(Cores, Authentication, ::testing::Values(1u, 3u));

SIM_TEST_P(Authentication, NothingElseIsServedBefore) {
  co_await serve_with(policy_of(test_keys(1)));
  AuthHost host(env, registry);
  const ConnectReply reply = co_await host.connect_queue(0);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_FALSE(reply.authenticated);
  EXPECT_TRUE(ConnectResult::decode(reply.dw0).authenticate);
  const Cqe property = co_await host.set_property(PropertyOffset::kConfiguration, 1);
  EXPECT_EQ(property.get_status(), StatusCode::kAuthenticationRequired);
  EXPECT_TRUE(property.get_status().do_not_retry());
  const Cqe identify = co_await host.admin(Sqe::make(AdminOpcode::kIdentify));
  EXPECT_EQ(identify.get_status(), StatusCode::kAuthenticationRequired);
  const Result<void> done = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(done);
  co_await host.enable();
  co_await host.leave();
  EXPECT_EQ(registry.authentication_totals(kTestNqn).succeeded, 1u);
  EXPECT_TRUE(failures.empty());
}

SIM_TEST_P(Authentication, EachQueueForItself) {
  co_await serve_with(policy_of(test_keys(1, 2)));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  Result<void> done = co_await host.authenticate(0, test_keys(1, 2));
  EXPECT_TRUE(done);
  co_await host.enable();
  const Cqe granted = co_await host.set_feature(Feature::kNumberOfQueues, 0);
  EXPECT_TRUE(granted.get_status().ok());
  const ConnectReply reply = co_await host.connect_queue(1, CoreId(env.core_count() - 1));
  EXPECT_FALSE(reply.authenticated);
  EXPECT_FALSE(host.links[1]->authenticated);
  done = co_await host.authenticate(1, test_keys(1, 2));
  EXPECT_TRUE(done);
  EXPECT_TRUE(host.links[1]->authenticated);
  // Again, while the queue works.
  done = co_await host.authenticate(1, test_keys(1, 2));
  EXPECT_TRUE(done);
  EXPECT_TRUE(host.links[1]->authenticated);
  done = co_await host.authenticate(0, test_keys(1, 2));
  EXPECT_TRUE(done);
  co_await host.leave_all();
  EXPECT_EQ(registry.authentication_totals(kTestNqn).succeeded, 4u);
}

SIM_TEST_P(Authentication, OtherHostsNeedNot) {
  co_await serve_with(policy_of(test_keys(1)));
  TestHost host(registry, 7);
  co_await host.arrive();
  co_await host.leave();
}

SIM_TEST_P(Authentication, FailureIsNotedAndEndsTheQueue) {
  co_await serve_with(policy_of(test_keys(1)));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  const Result<void> done = co_await host.authenticate(0, test_keys(9));
  EXPECT_EQ(done.error(), Errc::kDenied);
  EXPECT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].host_nqn, kAuthHost);
  EXPECT_EQ(failures[0].nqn, kTestNqn);
  EXPECT_EQ(registry.authentication_totals(kTestNqn).failed, 1u);
  const Status again = co_await host.send(0, 72);
  EXPECT_EQ(again, StatusCode::kAuthenticationRequired);
  EXPECT_EQ(host.links[0]->disconnected_why, "") << "the host hears why first";
  co_await let_pass(env, 2_s);
  EXPECT_EQ(host.links[0]->disconnected_why, "authentication failed");
  co_await host.leave();
  EXPECT_EQ(failures.size(), 1u);
}

SIM_TEST_P(Authentication, AFailedSecondTimeClosesAWorkingQueue) {
  co_await serve_with(policy_of(test_keys(1)));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  Result<void> done = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(done);
  co_await host.enable();
  // The key is another from now on: what works goes on until it is asked again.
  EXPECT_TRUE(registry.set_authentication(kTestNqn, policy_of(test_keys(5))));
  co_await host.enable();
  done = co_await host.authenticate(0, test_keys(1));
  EXPECT_FALSE(done);
  const Cqe cqe = co_await host.admin(Sqe::make(AdminOpcode::kKeepAlive));
  EXPECT_EQ(cqe.get_status(), StatusCode::kAuthenticationRequired);
  co_await host.leave();
}

SIM_TEST_P(Authentication, ADawdlingHostIsDisconnected) {
  AuthPolicy policy = policy_of(test_keys(1));
  policy.timeout = 3_s;
  co_await serve_with(std::move(policy));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  co_await let_pass(env, 2900_ms);
  EXPECT_TRUE(failures.empty());
  co_await let_pass(env, 200_ms);
  EXPECT_EQ(host.links[0]->disconnected_why, "authentication failed");
  EXPECT_EQ(failures.size(), 1u);
  co_await host.leave();
}

SIM_TEST_P(Authentication, FailuresMakeTheNextAttemptsWait) {
  co_await serve_with(policy_of(test_keys(1)));
  Duration last = 0_s;
  for (int i = 0; i < 5; ++i) {
    AuthHost host(env, registry);
    co_await host.connect_queue(0);
    const Time began = env.now();
    const Result<void> done = co_await host.authenticate(0, test_keys(9));
    EXPECT_FALSE(done);
    const Duration took = env.now() - began;
    EXPECT_TRUE(i == 0 ? took == 0_s : took > last) << i;
    last = took;
    co_await host.leave();
  }
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  const Result<void> done = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(done);
  co_await host.leave();
}

// Whoever shares an address with those who guess gets in at once.
SIM_TEST_P(Authentication, OtherHostsOfTheAddressDoNotWait) {
  AuthPolicy policy = policy_of(test_keys(1));
  policy.hosts.emplace("nqn.guesser", test_keys(2));
  co_await serve_with(std::move(policy));
  for (int i = 0; i < 20; ++i) {
    AuthHost guesser(env, registry, "nqn.guesser");
    co_await guesser.connect_queue(0);
    const Result<void> wrong = co_await guesser.authenticate(0, test_keys(9));
    EXPECT_FALSE(wrong);
    co_await guesser.leave();
    AuthHost host(env, registry);
    co_await host.connect_queue(0);
    const Time before = env.now();
    const Result<void> done = co_await host.authenticate(0, test_keys(1));
    EXPECT_TRUE(done);
    EXPECT_EQ(env.now(), before);
    co_await host.leave();
  }
}

// Others guess in its name, at its address: it may have to try again, and its queues go on.
SIM_TEST_P(Authentication, WhoComesTooOftenHasNotFailed) {
  co_await serve_with(policy_of(test_keys(1)));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  const Result<void> done = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(done);
  for (int i = 0; i < 10; ++i) {
    AuthHost guesser(env, registry);
    co_await guesser.connect_queue(0);
    const Result<void> wrong = co_await guesser.authenticate(0, test_keys(9));
    EXPECT_FALSE(wrong);
    co_await guesser.leave();
  }
  // As many more as may wait, which they do until they leave.
  task::Gate waiting;
  task::CancelSource enough;
  std::vector<std::unique_ptr<AuthHost>> guessers;
  for (int i = 0; i < 4; ++i) {
    guessers.push_back(std::make_unique<AuthHost>(env, registry));
    co_await guessers.back()->connect_queue(0);
    waiting.spawn(guessers.back()->wait_for_turn(enough.token()));
  }
  const uint64_t failed = registry.authentication_totals(kTestNqn).failed;
  const AuthMeans means;
  const AuthDraw draw = AuthDraw::from(env);
  AuthInitiator initiator({.keys = test_keys(1),
                           .means = means,
                           .names = {.host = kAuthHost, .subsystem = kTestNqn},
                           .draw = draw});
  const Status status = co_await host.send(0, initiator.negotiate(host.room));
  EXPECT_EQ(status.code(), StatusCode::kAuthenticationRequired);
  EXPECT_FALSE(status.do_not_retry());
  EXPECT_EQ(registry.authentication_totals(kTestNqn).failed, failed);
  enough.request();
  co_await waiting.close();
  co_await host.enable();
  co_await let_pass(env, 60_s);
  EXPECT_EQ(host.links[0]->disconnected_why, "");
  co_await host.enable();
  const Result<void> again = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(again);
  for (const auto& guesser : guessers) co_await guesser->leave();
  co_await host.leave();
}

SIM_TEST_P(Authentication, MalformedCommandsAreRefusedAndChangeNothing) {
  co_await serve_with(policy_of(test_keys(1)));
  AuthHost host(env, registry);
  co_await host.connect_queue(0);
  std::vector<std::byte> bytes(4096);
  const auto carried = [&](const AuthenticationCommand& command) {
    return registry.admin(*host.controller, to_sqe(command), bytes, {}, 0);
  };
  AuthenticationCommand command;
  command.length = 4097;
  Cqe cqe = co_await carried(command);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField) << "oversize";
  command.length = 0;
  cqe = co_await carried(command);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField) << "empty";
  command.length = 72;
  command.security_protocol = 0xea;
  cqe = co_await carried(command);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField);
  const Status early = co_await host.receive(0);
  EXPECT_EQ(early, StatusCode::kCommandSequenceError);
  const Result<void> done = co_await host.authenticate(0, test_keys(1));
  EXPECT_TRUE(done);
  co_await host.leave();
}

SIM_TEST_P(Authentication, AHostThatIsNotAskedIsTold) {
  co_await serve(registry);
  AuthHost host(env, registry);
  co_await host.arrive();
  const Status status = co_await host.send(0, 72);
  EXPECT_EQ(status, StatusCode::kInvalidOpcode);
  co_await host.leave();
}

}  // namespace
}  // namespace cairn::nvme
