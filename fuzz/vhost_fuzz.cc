// SPDX-License-Identifier: Apache-2.0
// A whole vhost-user server in the simulator against a front end and a guest that do anything:
// messages with fields of the fuzzer's choice, hundreds of requests of any form, rings and memory
// that change under the device, and vanishing at any moment. Whatever comes, the server serves the
// next one and closes in good order.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/rng.h"
#include "door/vhost_user/driver.h"
#include "door/vhost_user/server.h"
#include "drive/source.h"
#include "env/sharing.h"
#include "input.h"
#include "tally.h"
#include "task/deadline.h"
#include "vhost_chains.h"
#include "world/sim/cluster.h"

namespace cairn::door::vhost_user {
namespace {

using fuzz::Input;
using task::Task;

constexpr size_t kStepsMax = 48;

// What the next bytes of the input are.
enum class Step : uint8_t {
  kMessage,  // a request, a value and bytes of payload, perhaps with a descriptor
  kPoke,     // bytes for a place in guest memory
  kKick,
  kWrite,      // a request as it should be
  kBurst,      // a seed and a shape: many requests that are not
  kBurstMore,  // likewise
  kWait,       // some microseconds
  kAgain,      // another connection
  kVanish,     // and another guest
  kStepsCount,
};

env::Address socket() { return env::Address::parse("unix:/run/vhost").value(); }

Task<void> send_message(env::Env& env, Input& input, Driver& driver) {
  env::Sharing& sharing = *env::sharing(env);
  const auto request = static_cast<Request>(input.value<uint8_t>() % 42);
  const auto kind = input.value<uint8_t>() % 3;
  std::vector<std::byte> payload(input.value<uint8_t>() % 80);
  std::ranges::copy(input.take(payload.size()), payload.begin());
  env::Descriptor descriptor;
  if (kind == 1) descriptor = std::move(*sharing.make_shared_memory(8192));
  if (kind == 2) descriptor = std::move(*sharing.make_signal());
  task::Deadline deadline(env, env.now() + 10_ms);
  const Result<uint64_t> answer = co_await driver.send(
      request, payload, descriptor.is_valid() ? &descriptor : nullptr, deadline.token());
  (void)answer;
}

Task<void> write(env::Env& env, Input& input, Driver& driver) {
  const std::vector<std::byte> data(512 * (1 + input.value<uint8_t>() % 16));
  task::Deadline deadline(env, env.now() + 5_ms);
  const auto type = static_cast<BlkType>(input.value<uint8_t>() % 16);
  const Result<BlkStatus> status =
      co_await driver.call(type, input.value<uint8_t>(), data, {}, deadline.token());
  (void)status;
}

// A guest and whatever stands between it and the server.
struct Guest {
  Guest(env::Env& its_env, uint8_t its_shape) : env(its_env), shape(its_shape) { make(); }
  void make() {
    driver = std::make_unique<Driver>(env, *env::sharing(env),
                                      DriverOptions{.is_packed = (shape & 1) != 0,
                                                    .has_event_index = (shape & 2) != 0,
                                                    .queue_size = 64,
                                                    .depth = 1,
                                                    .request_max = 16384});
    CHECK(driver->prepare().has_value());
  }
  Task<void> connect(Duration timeout) {
    task::Deadline deadline(env, env.now() + timeout);
    const Result<void> connected = co_await driver->connect(socket(), deadline.token());
    is_connected = connected.has_value();
  }
  // Without a word, with what is in flight.
  Task<void> start_anew() {
    co_await driver->close();
    make();
    co_await connect(1_s);
    CHECK(is_connected, "the server serves the next guest");
  }

  env::Env& env;
  uint8_t shape;
  std::unique_ptr<Driver> driver;
  bool is_connected = false;
};

// Rings full of requests, one after the other. What is in flight at the end stays there.
Task<void> run_burst(env::Env& env, Input& input, Guest& guest) {
  const auto seed = input.value<uint32_t>();
  const auto shape = input.value<uint8_t>();
  for (int round = 0; round < 1 + shape % 8; ++round) {
    const bool is_stuck = guest.driver->ring(0).outstanding() > 0 || !guest.is_connected;
    if (is_stuck) co_await guest.start_anew();
    const MutableBytes memory = guest.driver->memory();
    const uint64_t rings = align_up(DriverRing::room(64, (guest.shape & 1) != 0), 4096);
    const MutableBytes data = memory.subspan(rings);
    fuzz::ChainMaker maker(Rng(seed + static_cast<uint32_t>(round)),
                           {.data = data, .address = 4ull << 30, .rings = rings});
    DriverRing& ring = guest.driver->ring(0);
    const DriverRing::Table table{.bytes = data.first(1024), .address = 4ull << 30};
    for (int i = 0; i < 64; ++i) {
      const bool in_table = (shape & 8) != 0 && i % 4 == 0;
      if (!ring.add(maker.chain(), 0, in_table ? &table : nullptr)) break;
    }
    guest.driver->kick(0);
    if ((shape & 16) != 0) continue;
    for (int looks = 0; looks < 50 && ring.outstanding() > 0; ++looks) {
      const Result<void> slept = co_await task::sleep_for(env, 2_us);
      CHECK(slept.has_value());
    }
  }
}

Task<void> run_step(env::Env& env, Input& input, Guest& guest) {
  Driver& driver = *guest.driver;
  switch (static_cast<Step>(input.value<uint8_t>() % static_cast<uint8_t>(Step::kStepsCount))) {
    case Step::kMessage:
      if (guest.is_connected) co_await send_message(env, input, driver);
      break;
    case Step::kPoke: {
      const MutableBytes memory = driver.memory();
      const size_t at = input.value<uint16_t>() % memory.size();
      const Bytes bytes = input.take(input.value<uint8_t>());
      const size_t count = std::min(bytes.size(), memory.size() - at);
      std::ranges::copy(bytes.first(count), memory.begin() + static_cast<ptrdiff_t>(at));
      break;
    }
    case Step::kKick:
      driver.kick(0);
      break;
    case Step::kWrite:
      if (driver.ring(0).outstanding() == 0) co_await write(env, input, driver);
      break;
    case Step::kBurst:
    case Step::kBurstMore:
      co_await run_burst(env, input, guest);
      break;
    case Step::kWait: {
      const Result<void> slept =
          co_await task::sleep_for(env, Duration{input.value<uint8_t>() * 1000});
      CHECK(slept.has_value());
      break;
    }
    case Step::kAgain:
      co_await guest.connect(100_ms);
      break;
    case Step::kVanish:
      co_await guest.start_anew();
      break;
    case Step::kStepsCount:
      break;
  }
}

Task<void> run(env::Env& env, Input input, uint64_t& requests, bool& done) {
  {
    Result<std::unique_ptr<drive::Source>> source =
        drive::Source::make(env, *drive::Spec::parse("mem:size=64K"));
    CHECK(source.has_value());
    VhostServer server(env, {.adaptive_window = 2_us, .stall_timeout = 1_s, .log = {}});
    const auto shape = input.value<uint8_t>();
    const Result<void> served = co_await server.serve(
        {.drive = {.name = "a", .description = "", .source = source->get()},
         .at = socket(),
         .core = {},
         .waiting = (shape & 4) != 0 ? Waiting::kInterrupt : Waiting::kAdaptive});
    CHECK(served.has_value());
    {
      Guest guest(env, shape);
      co_await guest.connect(1_s);
      CHECK(guest.is_connected);
      for (size_t i = 0; i < kStepsMax && !input.is_over(); ++i) {
        co_await run_step(env, input, guest);
      }
      co_await guest.driver->close();
    }
    // It still serves others.
    Driver next(env, *env::sharing(env), {.queue_size = 16, .depth = 1, .request_max = 4096});
    CHECK(next.prepare().has_value());
    const Result<void> connected = co_await next.connect(socket(), {});
    CHECK(connected.has_value());
    std::array<std::byte, 4096> data{};
    const Result<BlkStatus> read = co_await next.read(0, data, {});
    CHECK(read.has_value() && *read == BlkStatus::kOk);
    co_await next.close();
    const Result<VhostFigures> figures = co_await server.figures("a");
    CHECK(figures.has_value());
    requests = figures->requests;
    co_await server.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::door::vhost_user

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::Bytes all = std::as_bytes(std::span(bytes, size));
  static cairn::fuzz::Tally tally("requests of a virtio disk");
  uint64_t requests = 0;
  bool done = false;
  cairn::sim::Cluster cluster;
  cairn::sim::Node& node = cluster.node(
      "door", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 64}, {65536, 8}}}});
  node.start([&](cairn::env::Env& env) {
    return cairn::door::vhost_user::run(env, cairn::fuzz::Input(all), requests, done);
  });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  tally.add(requests);
  return 0;
}
