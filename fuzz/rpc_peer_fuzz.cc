// SPDX-License-Identifier: Apache-2.0
// An rpc server and an rpc client whose peer says any frames at all: no crash, each ends in good
// order when it is told to, and no reply is taken for another's.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "env/io.h"
#include "rpc/client.h"
#include "rpc/link.h"
#include "rpc/server.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::rpc {
namespace {

using task::Task;

constexpr uint16_t kPort = 4440;
constexpr size_t kFramesMax = 64;

// An input is a list of these: a frame, and a body of so many bytes.
struct Step {
  uint8_t kind = 0;
  uint8_t status = 0;
  uint8_t method = 0;
  uint8_t id = 0;
  uint8_t amount = 0;
  uint8_t body_size = 0;
};

class Echo final : public Service {
 public:
  std::string_view name() const override { return "echo"; }
  Version version() const override { return {}; }
  std::optional<Method> find(uint16_t method) const override {
    if (method > 2) return std::nullopt;
    return Method{.pushes = method == 2};
  }
  Task<Result<std::string>> call(uint16_t method, std::string body, Caller,
                                 task::CancelToken token) override {
    if (method == 0) co_return body;
    task::Event never;
    const Result<void> waited = co_await never.wait(token);
    co_return fail(waited.error());
  }
  Task<Result<void>> subscribe(uint16_t, std::string body, Caller, Pushes& pushes,
                               task::CancelToken token) override {
    Result<void> pushed;
    while (pushed) pushed = co_await pushes.push(body, token);
    co_return pushed;
  }
};

void say_all(Link& link, Bytes input) {
  for (size_t i = 0; i < kFramesMax && input.size() >= sizeof(Step); ++i) {
    const Step step = load<Step>(input);
    link.send({.kind = static_cast<FrameKind>(step.kind % (kLastFrameKind + 1)),
               .status = step.status,
               .method = step.method,
               .id = step.id,
               .amount = step.amount},
              std::string(step.body_size, 'b'));
    input = input.subspan(sizeof(Step));
  }
}

// Greets like the other end would, and then says anything.
Task<void> say_to(env::Env& env, std::unique_ptr<env::Stream> stream, bool is_client, Bytes input) {
  Link link(env, std::move(stream), {});
  if (is_client) {
    link.send({.kind = FrameKind::kHello},
              encode(Hello{.push_window = 2, .message_max = 1 << 16, .service = "echo"}));
  } else {
    link.send({.kind = FrameKind::kWelcome}, encode(Welcome{.calls_max = 4,
                                                            .subscriptions_max = 4,
                                                            .call_bytes_max = 1 << 16,
                                                            .message_max = 1 << 16}));
  }
  say_all(link, input);
  link.set_body_max(1 << 16);
  for (bool goes_on = true; goes_on;) {
    const Result<Frame> frame = co_await link.receive();
    goes_on = frame.has_value();
  }
  co_await link.close();
}

Task<void> serve(env::Env& env, env::Address at) {
  Echo echo;
  Server server(env, echo);
  CHECK(server.listen(at).has_value());
  [[maybe_unused]] const Result<void> slept =
      co_await task::sleep_for(env, 100_ms, env.stop_token());
  co_await server.close();
}

Task<void> be_client(env::Env& env, env::Address at, Bytes input) {
  auto stream = co_await env::connect_stream(env, std::move(at));
  if (stream) co_await say_to(env, std::move(*stream), true, input);
}

Task<void> be_server(env::Env& env, env::Address at, Bytes input) {
  const auto listener = env.listen(at).value();
  Result<env::Connection> accepted = co_await listener->accept(env.stop_token());
  if (accepted) co_await say_to(env, env.open(std::move(*accepted)), false, input);
}

Task<void> call_it(env::Env& env, env::Address at) {
  Client client(env, {.servers = {std::move(at)}, .session = {.service = "echo"}});
  auto subscription = co_await client.subscribe({.method = 2}, {});
  for (int i = 0; i < 3; ++i) {
    [[maybe_unused]] const Result<Reply> reply =
        co_await client.call({.method = 1, .body = "a"}, {.timeout = 20_ms}, {});
  }
  for (bool goes_on = subscription.has_value(); goes_on;) {
    task::Deadline deadline(env, env.now() + 10_ms);
    const Result<Reply> push = co_await (*subscription)->next(deadline.token());
    goes_on = push && !push->refusal;
  }
  if (subscription) subscription->reset();
  co_await client.close();
}

void run(Bytes input, bool lies_as_client) {
  sim::ClusterOptions options;
  options.trace_capacity = 16;
  sim::Cluster cluster(options);
  const env::Address at = cluster.node("server").address(kPort);
  cluster.node("server").start(
      [&](env::Env& env) { return lies_as_client ? serve(env, at) : be_server(env, at, input); });
  cluster.run_for(1_ms);
  cluster.node("client").start(
      [&](env::Env& env) { return lies_as_client ? be_client(env, at, input) : call_it(env, at); });
  CHECK(cluster.run_until([&] { return !cluster.node("client").is_running(); }, 100_s));
  cluster.node("server").stop();
  CHECK(cluster.run_until_idle(100_s));
}

}  // namespace
}  // namespace cairn::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cairn::Bytes bytes = std::as_bytes(std::span(data, size));
  cairn::rpc::run(bytes, true);
  cairn::rpc::run(bytes, false);
  return 0;
}
