// SPDX-License-Identifier: Apache-2.0
// A whole vfio-user server in the simulator against any bytes, with a fake device or an NVMe
// controller: a client made of steps that are messages with fields of the fuzzer's choice, memory
// (so queues too) and doorbells that change at any time, or plain bytes. Whatever comes, the server
// serves the next client and closes in good order.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "door/vfio_user/controller.h"
#include "door/vfio_user/server.h"
#include "drive/source.h"
#include "input.h"
#include "nvme/controller/registry.h"
#include "tally.h"
#include "task/deadline.h"
#include "testing/door/fake_device.h"
#include "testing/guest/client.h"
#include "vfio_user_peer.h"
#include "world/sim/cluster.h"

namespace cairn::door::vfio_user {
namespace {

using fuzz::Input;
using fuzz::Peer;
using task::Task;

constexpr size_t kStepsMax = 64;
constexpr uint64_t kMessagesMax = 4000;  // of an input

// What the next bytes of the input are.
enum class Step : uint8_t {
  kRaw,       // a length byte, and as many bytes to send as they are
  kCommand,   // a number, a length and as many bytes of payload
  kWrite,     // region, offset, and eight bytes to write there
  kRead,      // region, offset, length
  kMap,       // address and size, with the guest's memory behind it
  kUnmap,     // address and size
  kSetIrqs,   // the whole request, with signals or without
  kMemory,    // offset, length, and bytes that appear in the guest's memory
  kDoorbell,  // which, and its value
  kState,     // a device state
  kWait,      // some microseconds
  kAgain,     // another connection
  kBurst,     // a seed and a shape: many messages
};

env::Address socket() { return env::Address::parse("unix:/run/vfio").value(); }

std::vector<std::byte> content(Input& input, size_t count) {
  const Bytes taken = input.take(count);
  return {taken.begin(), taken.end()};
}

// A number of any size, small ones more often.
uint64_t number(Input& input) { return input.value<uint64_t>() >> (input.value<uint8_t>() % 64); }

std::vector<std::byte> write_from(Input& input) {
  constexpr uint32_t kPlaces[] = {kBar0, kBar0, kBar4, kConfig};
  const RegionAccess access{.offset = uint64_t{input.value<uint16_t>()},
                            .region = kPlaces[input.value<uint8_t>() % 4],
                            .count = 8u};
  return payload_of(access, Le64(input.value<uint64_t>()));
}

Task<void> run_step(env::Env& env, Input& input, Peer& peer) {
  // One in four is a burst, where nothing else is meant.
  const auto step = static_cast<uint8_t>(input.value<uint8_t>() % 16);
  switch (std::min(static_cast<Step>(step), Step::kBurst)) {
    case Step::kRaw:
      co_await peer.say_raw(content(input, input.value<uint8_t>()));
      break;
    case Step::kCommand: {
      const auto command = static_cast<Command>(input.value<uint8_t>() % 20);
      co_await peer.say(command, content(input, input.value<uint8_t>()));
      break;
    }
    case Step::kWrite:
      co_await peer.say(Command::kRegionWrite, write_from(input));
      break;
    case Step::kRead: {
      const RegionAccess access{.offset = number(input),
                                .region = uint32_t{input.value<uint8_t>()},
                                .count = static_cast<uint32_t>(number(input))};
      co_await peer.say(Command::kRegionRead, payload_of(access));
      break;
    }
    case Step::kMap: {
      const DmaMap map{.argsz = 32u,
                       .flags = uint32_t{input.value<uint8_t>()} % 4,
                       .offset = uint64_t{input.value<uint8_t>()} % 16 * 4096,
                       .address = number(input),
                       .size = number(input)};
      std::vector<const env::Descriptor*> with;
      if (input.value<uint8_t>() % 4 != 0) with.push_back(peer.memory_descriptor());
      co_await peer.say(Command::kDmaMap, payload_of(map), std::move(with));
      break;
    }
    case Step::kUnmap: {
      const DmaUnmap unmap{.argsz = 24u,
                           .flags = uint32_t{input.value<uint8_t>()} % 4,
                           .address = number(input),
                           .size = number(input)};
      co_await peer.say(Command::kDmaUnmap, payload_of(unmap));
      break;
    }
    case Step::kSetIrqs: {
      const IrqSet set{.argsz = 20u,
                       .flags = uint32_t{input.value<uint8_t>()} % 64,
                       .index = uint32_t{input.value<uint8_t>()} % 6,
                       .start = static_cast<uint32_t>(number(input)),
                       .count = static_cast<uint32_t>(number(input))};
      const std::vector<const env::Descriptor*> with(input.value<uint8_t>() % 4, peer.signal());
      co_await peer.say(Command::kSetIrqs, payload_of(set, Le64(number(input))), with);
      break;
    }
    case Step::kMemory: {
      const MutableBytes room = peer.memory().subspan(input.value<uint16_t>());
      const Bytes bytes = input.take(input.value<uint8_t>());
      std::ranges::copy(bytes.first(std::min(bytes.size(), room.size())), room.begin());
      break;
    }
    case Step::kDoorbell: {
      const uint64_t at = uint64_t{input.value<uint8_t>()} % 32 * 4;
      env::store_shared(peer.client().doorbells().subspan(at).data(), input.value<uint32_t>());
      break;
    }
    case Step::kState: {
      const Feature header{
          .argsz = 16u, .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kMigrationState)};
      const FeatureState state{.state = uint32_t{input.value<uint8_t>()} % 9};
      co_await peer.say(Command::kFeature, payload_of(header, state));
      break;
    }
    case Step::kWait: {
      const Duration pause{int64_t{input.value<uint8_t>()} * 10'000};
      const Result<void> slept = co_await task::sleep_for(env, pause);
      CHECK(slept.has_value());
      break;
    }
    case Step::kAgain:
      co_await peer.dial();
      break;
    case Step::kBurst: {
      const auto seed = input.value<uint32_t>();
      co_await peer.burst(seed, input.value<uint8_t>());
      break;
    }
  }
}

Task<uint64_t> serve_and_attack(env::Env& env, Input& input, DeviceMaker maker,
                                bool is_controller) {
  VfioUserServer server(env, {.greeting_timeout = 2_s, .log = {}});
  CHECK(server.add("a", socket(), std::move(maker)).has_value());
  Peer peer(env, socket(), is_controller);
  co_await peer.dial();
  co_await peer.begin();
  for (size_t i = 0; i < kStepsMax && !input.is_over(); ++i) {
    co_await run_step(env, input, peer);
    if (peer.messages() > kMessagesMax) break;
  }
  // It still serves others.
  co_await peer.dial();
  Le32 ids;
  const Result<void> read = co_await peer.client().read(kConfig, 0, mutable_bytes_of(ids));
  CHECK(read.has_value() && ids == 0xca10'1b36u);
  co_await server.drain(env.now() + 1_s);
  peer.leave();
  co_await server.close();
  co_return peer.messages();
}

const char* const kNqn = "nqn.2026-11.io.cairn:fuzz";

Task<uint64_t> attack_controller(env::Env& env, Input& input) {
  nvme::Registry registry(env);
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = kNqn;
  CHECK(registry.add_subsystem(subsystem).has_value());
  nvme::NamespaceOptions space;
  space.drive = *drive::Spec::parse("mem:size=64K,block=512");
  const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
  CHECK(added.has_value());
  const auto make = [&registry](DeviceParts parts) {
    return PciController::make(std::move(parts), {.registry = registry,
                                                  .control = CoreId(0),
                                                  .nqn = kNqn,
                                                  .vectors = kVectors,
                                                  .on_leave = {}});
  };
  const uint64_t messages = co_await serve_and_attack(env, input, make, true);
  co_await registry.close();
  co_return messages;
}

Task<void> run(env::Env& env, Input input, uint64_t& messages, bool& done) {
  if (input.value<uint8_t>() % 2 == 0) {
    messages = co_await serve_and_attack(env, input, make_fake, false);
  } else {
    messages = co_await attack_controller(env, input);
  }
  done = true;
}

}  // namespace
}  // namespace cairn::door::vfio_user

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::Bytes all = std::as_bytes(std::span(bytes, size));
  if (cairn::door::vfio_user::parse_version(all)) (void)cairn::door::vfio_user::answer_version(all);
  static cairn::fuzz::Tally tally("messages of a vfio-user client");
  uint64_t messages = 0;
  bool done = false;
  cairn::sim::Cluster cluster;
  cairn::sim::Node& node =
      cluster.node("door", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 16}}}});
  node.start([&](cairn::env::Env& env) {
    return cairn::door::vfio_user::run(env, cairn::fuzz::Input(all), messages, done);
  });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  tally.add(messages);
  return 0;
}
