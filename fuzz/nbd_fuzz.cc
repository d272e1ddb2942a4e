// SPDX-License-Identifier: Apache-2.0
// A whole NBD server in the simulator against any bytes: a client made of steps that are valid
// options and requests with fields of the fuzzer's choice, or plain bytes. Whatever comes, the
// server serves the next client and closes in good order.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "door/nbd/keys.h"
#include "door/nbd/option_request.h"
#include "door/nbd/server.h"
#include "drive/source.h"
#include "input.h"
#include "task/deadline.h"
#include "testing/door/nbd_client.h"
#include "world/sim/cluster.h"

namespace cairn::door::nbd {
namespace {

using door_tests::Content;
using door_tests::NbdClient;
using task::Task;

constexpr uint16_t kPort = 10809;
constexpr size_t kStepsMax = 64;

// What the next bytes of the input are.
enum class Step : uint8_t {
  kRaw,         // a length byte, and as many bytes to send as they are
  kOption,      // a number, a length and as many bytes
  kGo,          // the export is chosen as it should be
  kStructured,  // and before it, this
  kContext,
  kRequest,  // command, flags, offset, length; a write's data
  kWait,     // some milliseconds
  kAgain,    // another connection
  kStepsCount,
};

using fuzz::Input;

Content content(Input& input, size_t count) {
  const Bytes taken = input.take(count);
  return {taken.begin(), taken.end()};
}

// One connection and a task that takes whatever the server says.
class Peer {
 public:
  explicit Peer(env::Env& env) : env_(env) {}

  Task<void> dial(env::Address at) {
    client_ = std::make_unique<NbdClient>(env_);
    const Result<void> dialled = co_await client_->dial(std::move(at));
    CHECK(dialled.has_value());
    stopping_ = std::make_unique<task::CancelSource>();
    listener_ = listen();
    const Be32 flags(kFixedNewstyle | kNoZeroes);
    co_await send(bytes_of(flags));
  }
  Task<void> option(Option option, Content payload) {
    const OptionHeader header{.option = static_cast<uint32_t>(option),
                              .length = static_cast<uint32_t>(payload.size())};
    Content bytes(bytes_of(header).begin(), bytes_of(header).end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    co_await send(bytes);
  }
  Task<void> request(RequestHeader header) {
    const bool writes = header.command == static_cast<uint16_t>(Command::kWrite);
    Content bytes(bytes_of(header).begin(), bytes_of(header).end());
    if (writes) bytes.resize(bytes.size() + std::min<uint32_t>(header.length, 1 << 17));
    co_await send(bytes);
  }
  Task<void> send(Bytes bytes) {
    task::Deadline deadline(env_, env_.now() + 1_s);
    const Result<void> sent = co_await client_->stream().write(bytes, deadline.token());
    if (!sent) co_return;  // it was left, as it deserves
  }
  Task<void> close() {
    stopping_->request();
    co_await listener_;
    client_->hang_up();
  }

 private:
  Task<void> listen() {
    std::vector<std::byte> room(4096);
    Result<size_t> got = size_t{1};
    while (got && *got > 0) got = co_await client_->stream().read(room, stopping_->token());
  }

  env::Env& env_;
  std::unique_ptr<NbdClient> client_;
  std::unique_ptr<task::CancelSource> stopping_;
  Task<void> listener_;
};

RequestHeader request_from(Input& input) {
  return {.flags = input.value<uint8_t>(),
          .command = static_cast<uint16_t>(input.value<uint8_t>() % 10),
          .cookie = input.value<uint8_t>(),
          .offset = input.value<uint32_t>() % (80 << 10),
          .length = input.value<uint32_t>() >> (input.value<uint8_t>() % 32)};
}

Task<void> run_step(env::Env& env, Input& input, Peer& peer, env::Address at) {
  switch (static_cast<Step>(input.value<uint8_t>() % static_cast<uint8_t>(Step::kStepsCount))) {
    case Step::kRaw: {
      const Content bytes = content(input, input.value<uint8_t>());
      co_await peer.send(bytes);
      break;
    }
    case Step::kOption: {
      const auto option = static_cast<Option>(input.value<uint8_t>() % 16);
      Content payload = content(input, input.value<uint8_t>());
      co_await peer.option(option, std::move(payload));
      break;
    }
    case Step::kGo:
      co_await peer.option(Option::kGo, door_tests::info_payload("a"));
      break;
    case Step::kStructured:
      co_await peer.option(Option::kStructuredReply, {});
      break;
    case Step::kContext: {
      Content payload = door_tests::context_payload("a", {"base:allocation"});
      co_await peer.option(Option::kSetMetaContext, std::move(payload));
      break;
    }
    case Step::kRequest: {
      const RequestHeader header = request_from(input);
      co_await peer.request(header);
      break;
    }
    case Step::kWait: {
      const Duration pause{int64_t{input.value<uint8_t>()} * 1'000'000};
      const Result<void> slept = co_await task::sleep_for(env, pause);
      CHECK(slept.has_value());
      break;
    }
    case Step::kAgain:
      co_await peer.close();
      co_await peer.dial(std::move(at));
      break;
    case Step::kStepsCount:
      break;
  }
}

Task<void> run(env::Env& env, Input input, env::Address at, bool& done) {
  {
    Result<std::unique_ptr<drive::Source>> source =
        drive::Source::make(env, *drive::Spec::parse("mem:size=64K,block=512"));
    CHECK(source.has_value());
    NbdOptions options;
    options.negotiation_timeout = options.stall_timeout = 2_s;
    NbdServer server(env, options);
    const ExportOptions exported{.name = "a", .description = "", .source = source->get()};
    const Result<void> added = co_await server.add(exported);
    CHECK(added.has_value());
    CHECK(server.listen(at).has_value());
    Peer peer(env);
    co_await peer.dial(at);
    for (size_t i = 0; i < kStepsMax && !input.is_over(); ++i) {
      co_await run_step(env, input, peer, at);
    }
    const Result<void> slept = co_await task::sleep_for(env, 5_ms);
    CHECK(slept.has_value());
    co_await peer.close();
    // It still serves others.
    NbdClient next(env);
    const auto told = co_await next.arrive(at, "a", true);
    CHECK(told.has_value() && told->size == 64 << 10);
    const auto read = co_await next.call({Command::kRead, 100, 1000, 0});
    CHECK(read.has_value() && read->error == 0);
    next.hang_up();
    co_await server.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::door::nbd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::Bytes all = std::as_bytes(std::span(bytes, size));
  const auto keys = cairn::door::nbd::NbdKeys::parse(cairn::as_text(all));
  const auto info = cairn::door::nbd::parse_info_request(all);
  const auto context = cairn::door::nbd::parse_context_request(all);
  (void)keys, (void)info, (void)context;  // whatever comes of any bytes
  bool done = false;
  cairn::sim::Cluster cluster;
  cairn::sim::Node& node = cluster.node("door", {.cores = 1, .clock = {}, .buffers = {}});
  node.start([&](cairn::env::Env& env) {
    return cairn::door::nbd::run(env, cairn::door::nbd::Input(all),
                                 node.address(cairn::door::nbd::kPort), done);
  });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  return 0;
}
