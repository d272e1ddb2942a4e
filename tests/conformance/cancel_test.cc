// SPDX-License-Identifier: Apache-2.0
// Cancellation in each state of each operation: not started, waiting, complete, twice. What races
// with completion is in cancel_race_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Address;
using env::Chunk;
using env::Connection;
using env::Env;
using env::Listener;
using env::Stream;
using task::CancelSource;
using task::CancelToken;
using task::Deadline;
using task::Task;

STREAM_TEST_SUITE(Cancelling);

// An operation that waits until provoke() lets it complete.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual const char* name() const = 0;
  virtual Task<void> prepare(Env& env, Scene& scene) = 0;
  virtual Task<Result<void>> start(CancelToken token) = 0;
  virtual Task<void> provoke() = 0;
};

class Reading final : public Waiting {
 public:
  const char* name() const override { return "read"; }
  Task<void> prepare(Env& env, Scene& scene) override { pair_ = co_await connected(env, scene); }
  Task<Result<void>> start(CancelToken token) override {
    const Result<size_t> got = co_await pair_.b->read(into_, token);
    if (!got) co_return fail(got.error());
    EXPECT_EQ(*got, 1u);
    co_return Result<void>{};
  }
  Task<void> provoke() override {
    const Result<void> written = co_await pair_.a->write(Bytes(into_).first(1));
    EXPECT_EQ(outcome(written), "ok");
  }

 private:
  Pair pair_;
  std::array<std::byte, 16> into_{};
};

class Receiving final : public Waiting {
 public:
  const char* name() const override { return "receive"; }
  Task<void> prepare(Env& env, Scene& scene) override { pair_ = co_await connected(env, scene); }
  Task<Result<void>> start(CancelToken token) override {
    const Result<Chunk> got = co_await pair_.b->receive(token);
    if (!got) co_return fail(got.error());
    EXPECT_EQ(got->bytes().size(), 1u);
    co_return Result<void>{};
  }
  Task<void> provoke() override {
    const std::array<std::byte, 1> byte{};
    const Result<void> written = co_await pair_.a->write(byte);
    EXPECT_EQ(outcome(written), "ok");
  }

 private:
  Pair pair_;
};

// A write larger than all buffers waits until somebody reads.
class Writing final : public Waiting {
 public:
  const char* name() const override { return "write"; }
  Task<void> prepare(Env& env, Scene& scene) override {
    pair_ = co_await connected(env, scene, kSmallBuffers);
  }
  Task<Result<void>> start(CancelToken token) override {
    return write_all(*pair_.a, message_, token);
  }
  Task<void> provoke() override {
    std::vector<std::byte> into(message_.size());
    const Result<void> read = co_await env::read_exactly(*pair_.b, into);
    EXPECT_EQ(outcome(read), "ok");
    EXPECT_EQ(into, message_);
  }

 private:
  Pair pair_;
  std::vector<std::byte> message_ = pattern(2 * kInFlightMax, 1);
};

class Accepting final : public Waiting {
 public:
  const char* name() const override { return "accept"; }
  Task<void> prepare(Env& env, Scene& scene) override {
    env_ = &env;
    listener_ = must(env.listen(scene.any_port()));
    co_return;
  }
  Task<Result<void>> start(CancelToken token) override {
    const Result<Connection> accepted = co_await listener_->accept(token);
    if (!accepted) co_return fail(accepted.error());
    EXPECT_TRUE(accepted->is_valid());
    co_return Result<void>{};
  }
  Task<void> provoke() override {
    const Result<Connection> connection = co_await env_->connect(listener_->local());
    EXPECT_EQ(outcome(connection), "ok");
  }

 private:
  Env* env_ = nullptr;
  std::unique_ptr<Listener> listener_;
};

class Sleeping final : public Waiting {
 public:
  const char* name() const override { return "sleep"; }
  Task<void> prepare(Env& env, Scene&) override {
    env_ = &env;
    co_return;
  }
  // Long enough that no test reaches its end, and short for what has to.
  Task<Result<void>> start(CancelToken token) override {
    return doze(*env_, token.can_cancel() ? 1000_s : 1_ms, token);
  }
  Task<void> provoke() override { co_return; }

 private:
  Env* env_ = nullptr;
};

// A connect to an address that never answers; only cancelling ends it.
class Connecting final : public Waiting {
 public:
  const char* name() const override { return "connect"; }
  Task<void> prepare(Env& env, Scene& scene) override {
    env_ = &env;
    silent_ = scene.silent_address();
    listener_ = must(env.listen(scene.any_port()));
    co_return;
  }
  Task<Result<void>> start(CancelToken token) override {
    const Address to = token.can_cancel() ? silent_ : listener_->local();
    const Result<Connection> connection = co_await env_->connect(to, token);
    if (!connection) co_return fail(connection.error());
    co_return Result<void>{};
  }
  Task<void> provoke() override { co_return; }

 private:
  Env* env_ = nullptr;
  Address silent_;
  std::unique_ptr<Listener> listener_;
};

std::vector<std::unique_ptr<Waiting>> every_operation() {
  std::vector<std::unique_ptr<Waiting>> all;
  all.push_back(std::make_unique<Reading>());
  all.push_back(std::make_unique<Receiving>());
  all.push_back(std::make_unique<Writing>());
  all.push_back(std::make_unique<Accepting>());
  all.push_back(std::make_unique<Sleeping>());
  all.push_back(std::make_unique<Connecting>());
  return all;
}

Task<void> expect_works(Waiting& operation) {
  Task<Result<void>> running = operation.start({});
  co_await operation.provoke();
  const Result<void> result = co_await running;
  EXPECT_EQ(outcome(result), "ok") << operation.name();
}

WORLD_TEST(Cancelling, BeforeTheStartNothingStarts) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    CancelSource stop;
    stop.request();
    for (int i = 0; i < 3; ++i) {
      Task<Result<void>> task = operation->start(stop.token());
      EXPECT_TRUE(task.is_done()) << operation->name();
      const Result<void> result = co_await task;
      EXPECT_EQ(outcome(result), "cancelled") << operation->name();
    }
    co_await expect_works(*operation);
  }
}

WORLD_TEST(Cancelling, WhileWaitingEndsTheWait) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    CancelSource stop;
    Task<Result<void>> waiting = operation->start(stop.token());
    for (int i = 0; i < 20; ++i) co_await turn(env);
    EXPECT_FALSE(waiting.is_done()) << operation->name();
    stop.request();
    const Result<void> result = co_await waiting;
    EXPECT_EQ(outcome(result), "cancelled") << operation->name();
  }
}

WORLD_TEST(Cancelling, RightAfterTheStartEndsTheWait) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    CancelSource stop;
    Task<Result<void>> waiting = operation->start(stop.token());
    stop.request();
    const Result<void> result = co_await waiting;
    EXPECT_EQ(outcome(result), "cancelled") << operation->name();
  }
}

WORLD_TEST(Cancelling, TwiceIsOnce) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    CancelSource stop;
    CancelSource child(stop.token());
    Task<Result<void>> waiting = operation->start(child.token());
    co_await turn(env);
    child.request();
    stop.request();
    child.request();
    co_await turn(env);
    stop.request();
    const Result<void> result = co_await waiting;
    EXPECT_EQ(outcome(result), "cancelled") << operation->name();
  }
}

WORLD_TEST(Cancelling, ByADeadlineSaysTimedOut) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    const Time start = env.now();
    Deadline deadline(env, start + 3_ms);
    const Result<void> result = co_await operation->start(deadline.token());
    EXPECT_EQ(outcome(result), "timed_out") << operation->name();
    EXPECT_GE(env.now() - start, 3_ms) << operation->name();
  }
}

WORLD_TEST(Cancelling, AfterCompletionChangesNothing) {
  for (const auto& operation : every_operation()) {
    co_await operation->prepare(env, scene);
    co_await expect_works(*operation);
  }
  // With a token that is requested when all is over.
  const Pair pair = co_await connected(env, scene);
  CancelSource stop;
  std::array<std::byte, 4> bytes{};
  Task<Result<size_t>> reading = read_some(*pair.b, bytes, stop.token());
  const Result<void> written = co_await pair.a->write(bytes, stop.token());
  EXPECT_EQ(outcome(written), "ok");
  while (!reading.is_done()) co_await turn(env);
  stop.request();
  const Result<size_t> read = co_await reading;
  EXPECT_EQ(outcome(read), "ok");
}

WORLD_TEST(Cancelling, OneTokenStopsManyAtOnce) {
  CancelSource stop;
  std::vector<std::unique_ptr<Waiting>> operations;
  for (int i = 0; i < 5; ++i) {
    for (auto& operation : every_operation()) operations.push_back(std::move(operation));
  }
  std::vector<Task<Result<void>>> waiting;
  for (const auto& operation : operations) {
    co_await operation->prepare(env, scene);
    waiting.push_back(operation->start(stop.token()));
  }
  co_await turn(env);
  stop.request();
  for (Task<Result<void>>& each : waiting) {
    const Result<void> result = co_await each;
    EXPECT_EQ(outcome(result), "cancelled");
  }
}

WORLD_TEST(Cancelling, ReadCanBeRepeatedAndLosesNoBytes) {
  const Pair pair = co_await connected(env, scene);
  std::array<std::byte, 8> into{};
  for (int i = 0; i < 5; ++i) {
    CancelSource stop;
    Task<Result<size_t>> reading = read_some(*pair.b, into, stop.token());
    co_await turn(env);
    stop.request();
    const Result<size_t> read = co_await reading;
    EXPECT_EQ(outcome(read), "cancelled");
  }
  const std::vector<std::byte> message = pattern(8, 1);
  const Result<void> written = co_await pair.a->write(message);
  const Result<void> read = co_await env::read_exactly(*pair.b, into);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(outcome(read), "ok");
  EXPECT_TRUE(is_pattern(into, 1));
}

WORLD_TEST(Cancelling, ReadLeavesTheOtherDirectionAlone) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  std::array<std::byte, 8> into{};
  CancelSource stop;
  Task<Result<void>> writing = write_all(*pair.a, message);
  Task<Result<size_t>> reading = read_some(*pair.a, into, stop.token());
  co_await turn(env);
  stop.request();
  const Result<size_t> read = co_await reading;
  EXPECT_EQ(outcome(read), "cancelled");
  EXPECT_FALSE(writing.is_done());
  std::vector<std::byte> arrived(message.size());
  const Result<void> all = co_await env::read_exactly(*pair.b, arrived);
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(all), "ok");
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(arrived, message);
}

WORLD_TEST(Cancelling, WriteThatWaitedMakesLaterWritesFail) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  CancelSource stop;
  Task<Result<void>> writing = write_all(*pair.a, message, stop.token());
  co_await turn(env);
  stop.request();
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "cancelled");
  for (int i = 0; i < 2; ++i) {
    const Result<void> later = co_await pair.a->write(Bytes(message).first(1));
    EXPECT_NE(outcome(later), "ok") << "an unknown prefix was sent";
  }
  // The other direction still works.
  std::vector<std::byte> back(100);
  auto answer = pattern(100, 2);
  const Result<void> answered = co_await pair.b->write(answer);
  const Result<void> read = co_await env::read_exactly(*pair.a, back);
  EXPECT_EQ(outcome(answered), "ok");
  EXPECT_EQ(outcome(read), "ok");
  EXPECT_EQ(back, answer);
}

WORLD_TEST(Cancelling, AcceptCanBeRepeatedAndLosesNoConnection) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  for (int i = 0; i < 5; ++i) {
    CancelSource stop;
    Task<Result<Connection>> accepting = accept_one(*listener, stop.token());
    co_await turn(env);
    stop.request();
    const Result<Connection> accepted = co_await accepting;
    EXPECT_EQ(outcome(accepted), "cancelled");
  }
  const Result<Connection> connection = co_await env.connect(listener->local());
  const Result<Connection> accepted = co_await listener->accept();
  EXPECT_EQ(outcome(connection), "ok");
  EXPECT_EQ(outcome(accepted), "ok");
}

}  // namespace
}  // namespace cairn::conformance
