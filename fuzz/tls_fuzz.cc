// SPDX-License-Identifier: Apache-2.0
// A server's end of TLS that hears anything: bytes of no sense, or a true client's that were
// changed on the way. No crash, it ends within its time, and no byte comes through that was not
// sent.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "env/io.h"
#include "task/deadline.h"
#include "tls/stream.h"
#include "world/sim/cluster.h"

namespace cairn::tls {
namespace {

using task::Task;

constexpr uint16_t kPort = 4420;
constexpr std::byte kSent{0x5a};

Psk known_key() {
  return {.identity = "NVMe0R01 host subsystem", .key = crypto::Digest(size_t{32})};
}

class Keeper final : public PskKeeper {
 public:
  Task<Result<Psk>> choose(std::vector<std::string> identities) override {
    const bool is_known = std::ranges::find(identities, known_key().identity) != identities.end();
    if (!is_known) co_return fail(Errc::kDenied, "unknown");
    co_return known_key();
  }
};

Task<void> serve(env::Env& env, env::Address at, bool& done) {
  const auto listener = env.listen(at).value();
  Result<env::Connection> accepted = co_await listener->accept();
  CHECK(accepted.has_value());
  const Context context(Role::kServer);
  Keeper keeper;
  task::Gate lingering;
  {
    TlsStream stream(env, env.open(std::move(*accepted)), context, keeper, lingering);
    const Result<void> shaken = co_await stream.shake_hands(1_s);
    std::array<std::byte, 300> into{};
    Result<size_t> read = size_t{shaken.has_value()};
    while (shaken && read && *read > 0) {
      task::Deadline deadline(env, env.now() + 1_s);
      read = co_await stream.read(into, deadline.token());
      if (!read) break;
      CHECK(std::ranges::all_of(std::span(into).first(*read),
                                [](std::byte byte) { return byte == kSent; }));
      const Result<void> written = co_await stream.write(Bytes(into).first(*read));
      if (!written) break;
    }
  }
  co_await lingering.close();
  done = true;
}

// Each three bytes of the input change one byte of what is sent: where, and how.
void change(std::vector<std::byte>& bytes, Bytes& input) {
  while (input.size() >= 3 && !bytes.empty()) {
    const size_t at = std::to_integer<size_t>(input[0]) << 8 | std::to_integer<size_t>(input[1]);
    const std::byte how = input[2];
    input = input.subspan(3);
    if (how == std::byte{0}) return;  // the rest is for what comes later
    bytes[at % bytes.size()] ^= how;
  }
}

// A true client, whose words are changed.
Task<void> talk(env::Stream& stream, Bytes input, task::CancelToken token) {
  const Context context(Role::kClient);
  Engine engine(context, known_key());
  bool is_done = false;
  for (int turn = 0; turn < 8; ++turn) {
    if (!is_done) is_done = engine.shake_hands() == Engine::Step::kDone;
    if (is_done && !engine.write(std::vector<std::byte>(100, kSent))) co_return;
    std::vector<std::byte> out(engine.output().begin(), engine.output().end());
    engine.output_left(out.size());
    change(out, input);
    const Result<void> written = co_await stream.write(out, token);
    if (!written || engine.failure()) co_return;
    const Result<size_t> got = co_await stream.read(engine.input_room(), token);
    if (!got || *got == 0) co_return;
    engine.input_came(*got);
    std::array<std::byte, 1000> into{};
    size_t count = 0;
    if (is_done && engine.read(into, count) == Engine::Step::kFailed) co_return;
  }
}

Task<void> attack(env::Env& env, env::Address at, Bytes input) {
  auto stream = co_await env::connect_stream(env, at);
  CHECK(stream.has_value());
  if (input.empty()) co_return;
  task::Deadline deadline(env, env.now() + 5_s);
  const bool is_true = (input[0] & std::byte{1}) != std::byte{0};
  input = input.subspan(1);
  if (is_true) {
    co_await talk(**stream, input, deadline.token());
    co_return;
  }
  const Result<void> written = co_await (*stream)->write(input, deadline.token());
  if (!written || !(*stream)->finish()) co_return;
  std::array<std::byte, 1000> into{};
  for (;;) {
    const Result<size_t> got = co_await (*stream)->read(into, deadline.token());
    if (!got || *got == 0) co_return;
  }
}

}  // namespace
}  // namespace cairn::tls

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  using cairn::literals::operator""_ms;
  const cairn::Bytes input = std::as_bytes(std::span(bytes, size));
  bool done = false;
  cairn::sim::Cluster cluster;
  cairn::sim::Node& server = cluster.node("server");
  const cairn::env::Address at = server.address(cairn::tls::kPort);
  server.start([&](cairn::env::Env& env) { return cairn::tls::serve(env, at, done); });
  cluster.run_for(1_ms);
  cluster.node("client").start(
      [&](cairn::env::Env& env) { return cairn::tls::attack(env, at, input); });
  CHECK(cluster.run_until([&] { return done; }, 100_s));
  CHECK(cluster.run_until_idle(100_s));
  return 0;
}
