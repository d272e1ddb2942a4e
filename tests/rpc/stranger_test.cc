// SPDX-License-Identifier: Apache-2.0
// A server and clients that do not keep to the rules: they end, and others do not notice.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "env/io.h"
#include "rpc/link.h"
#include "rpc/test_service.h"

namespace cairn::rpc_tests {
namespace {

using rpc::Frame;
using rpc::FrameHead;
using rpc::FrameKind;
using rpc::GoodbyeReason;
using rpc::Hello;

const Hello kHello{
    .service_version = {.major = 3}, .push_window = 4, .message_max = 1 << 20, .service = "test"};

void put(std::string& bytes, const FrameHead& head, const std::string& body = {}) {
  const auto encoded = rpc::encode_head(head, as_bytes(body));
  bytes += as_text(encoded);
  bytes += body;
}
std::string greeting() {
  std::string bytes;
  put(bytes, {.kind = FrameKind::kHello}, rpc::encode(kHello));
  return bytes;
}

// What became of a stranger.
struct End {
  std::optional<GoodbyeReason> goodbye;
  bool is_over = false;  // the server ended the connection
  Duration took;
  uint64_t bytes_read = 0;
};

Task<std::unique_ptr<env::Stream>> say(Env& env, env::Address at, const std::string& bytes) {
  auto stream = co_await env::connect_stream(env, at);
  EXPECT_TRUE(stream);
  [[maybe_unused]] const Result<void> written =
      co_await (*stream)->write(as_bytes(bytes), env.stop_token());
  co_return std::move(*stream);
}

// Says this, and then reads what comes.
Task<void> misbehave(Env& env, env::Address at, std::string bytes, End& end) {
  const Time begin = env.now();
  const std::unique_ptr<env::Stream> stream = co_await say(env, std::move(at), bytes);
  std::string heard;
  std::array<std::byte, 4096> part;
  for (size_t got = 1; got > 0;) {
    const Result<size_t> read = co_await stream->read(part, env.stop_token());
    got = read ? *read : 0;
    heard += as_text(Bytes(part).first(got));
  }
  end.is_over = !env.stop_token().requested();
  end.took = env.now() - begin;
  end.bytes_read = heard.size();
  for (Bytes left = as_bytes(heard); left.size() >= rpc::kHeadSize;) {
    const Result<FrameHead> head = rpc::decode_head(left.first(rpc::kHeadSize));
    if (!head || left.size() < rpc::kHeadSize + head->body_size) break;
    if (head->kind == FrameKind::kGoodbye) end.goodbye = static_cast<GoodbyeReason>(head->status);
    left = left.subspan(rpc::kHeadSize + head->body_size);
  }
}

Task<void> echo_into(Env&, rpc::Client& client, bool& is_answered) {
  const Result<Reply> reply =
      co_await client.call({.method = TestMethods::kEcho, .body = "x"}, within(1_s), {});
  is_answered = reply && reply->body == "x";
}

class RpcStranger : public testing::Test, public Stage {
 protected:
  void SetUp() override { start_server(); }
  End end_of(const std::string& bytes) {
    End end;
    run("stranger", [&](Env& env) { return misbehave(env, at, bytes, end); });
    EXPECT_TRUE(end.is_over);
    bool is_answered = false;
    run_client("friend",
               [&](Env& env, rpc::Client& client) { return echo_into(env, client, is_answered); });
    EXPECT_TRUE(is_answered) << "others do not notice";
    EXPECT_EQ(service->under_way, 0u);
    return end;
  }
};

TEST_F(RpcStranger, WhoSendsNonsenseIsDropped) {
  const End end = end_of("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n");
  EXPECT_LT(end.took, 3_s);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0], "it sent what is no request of this protocol");
}

TEST_F(RpcStranger, WhoSpeaksTlsIsTold) {
  std::string record("\x16\x03\x01\x02\x00", 5);
  record += std::string(512, 'x');
  const End end = end_of(record);
  EXPECT_EQ(end.goodbye, GoodbyeReason::kNoTls);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0], "it speaks TLS, and this server has no keys");
}

TEST_F(RpcStranger, WhoSaysNothingIsDroppedInTime) {
  EXPECT_EQ(end_of("").took / 1_s, 10);
  EXPECT_EQ(end_of("CRPC").took / 1_s, 10) << "nor in the middle of a frame";
}

TEST_F(RpcStranger, WhoAnswersNoPingsIsDropped) {
  const End end = end_of(greeting());
  EXPECT_GE(end.took, 10_s);
  EXPECT_LE(end.took / 1_s, 20);
}

TEST_F(RpcStranger, WhoStopsInTheMiddleOfAFrameIsDropped) {
  std::string bytes = greeting();
  put(bytes, {.kind = FrameKind::kCall, .method = TestMethods::kEcho, .id = 1}, "12345678");
  bytes.pop_back();
  EXPECT_LE(end_of(bytes).took, 20_s);
}

TEST_F(RpcStranger, WhoAnnouncesHugeFramesIsDroppedAtOnce) {
  std::string bytes = greeting();
  const std::string body(5_MiB, 'x');
  const auto head = rpc::encode_head(
      {.kind = FrameKind::kCall, .method = TestMethods::kEcho, .id = 1}, as_bytes(body));
  bytes += as_text(head);
  EXPECT_LT(end_of(bytes).took, 3_s);
}

TEST_F(RpcStranger, WhoUsesAnIdTwiceIsTold) {
  std::string bytes = greeting();
  put(bytes, {.kind = FrameKind::kCall, .method = TestMethods::kWait, .id = 7});
  put(bytes, {.kind = FrameKind::kCall, .method = TestMethods::kWait, .id = 7});
  EXPECT_EQ(end_of(bytes).goodbye, GoodbyeReason::kNonsense);
}

TEST_F(RpcStranger, WhoAsksForMoreThanItWasGrantedIsTold) {
  std::string bytes = greeting();
  for (uint64_t id = 1; id <= 257; ++id) {
    put(bytes, {.kind = FrameKind::kCall, .method = TestMethods::kWait, .id = id});
  }
  EXPECT_EQ(end_of(bytes).goodbye, GoodbyeReason::kLimit);
  EXPECT_EQ(service->ends.size(), 256u) << "those before were cancelled";
}

TEST_F(RpcStranger, WhoGrantsMoreCreditThanItsWindowIsTold) {
  std::string bytes = greeting();
  put(bytes, {.kind = FrameKind::kSubscribe, .method = TestMethods::kCount, .id = 1});
  put(bytes, {.kind = FrameKind::kCredit, .id = 1, .amount = 4});
  put(bytes, {.kind = FrameKind::kCredit, .id = 1, .amount = 4});
  put(bytes, {.kind = FrameKind::kCredit, .id = 1, .amount = UINT32_MAX});
  EXPECT_EQ(end_of(bytes).goodbye, GoodbyeReason::kNonsense);
}

TEST_F(RpcStranger, PingsWithoutEndGetFewAnswers) {
  std::string bytes = greeting();
  for (int i = 0; i < 10'000; ++i) put(bytes, {.kind = FrameKind::kPing});
  put(bytes, {.kind = FrameKind::kWelcome}, "x");
  const End end = end_of(bytes);
  EXPECT_LT(end.bytes_read, 100'000u);
  EXPECT_GT(end.bytes_read, rpc::kHeadSize) << "it was greeted, and had some answers";
}

// It asks for much and reads nothing: what waits for it is bounded, and it is dropped.
Task<void> read_nothing(Env& env, env::Address at, std::string bytes) {
  const std::unique_ptr<env::Stream> stream = co_await say(env, std::move(at), bytes);
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 60_s, env.stop_token());
}

TEST_F(RpcStranger, WhoTakesNoRepliesIsNotHeardAndThenDropped) {
  std::string bytes = greeting();
  for (uint64_t id = 1; id <= 200; ++id) {
    put(bytes, {.kind = FrameKind::kCall, .method = TestMethods::kSize, .id = id}, "1048576");
  }
  cluster.node("stranger").start([&](Env& env) { return read_nothing(env, at, bytes); });
  cluster.run_for(5_s);
  EXPECT_LT(service->sized, 16u) << "the queue's limit, and what the network holds";
  bool is_answered = false;
  run_client("friend",
             [&](Env& env, rpc::Client& client) { return echo_into(env, client, is_answered); });
  EXPECT_TRUE(is_answered);
  cluster.run_for(20_s);
  EXPECT_LT(service->sized, 16u);
}

}  // namespace
}  // namespace cairn::rpc_tests
