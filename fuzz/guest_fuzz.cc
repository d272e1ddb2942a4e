// SPDX-License-Identifier: Apache-2.0
// A guest that does anything: writes to registers, doorbells and its whole memory, thousands of
// commands of any kind, memory that goes away under them, resets, moves, vanishing. The controller
// answers or fails, can always be reset, and closes in good order; a neighbour reads its own data
// all the while.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "guest_commands.h"
#include "guest_machine.h"
#include "input.h"
#include "nvme/format/io_format.h"
#include "tally.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::fuzz {
namespace {

using door::vfio_user::Doorbell;
using door::vfio_user::DriverQueue;
using task::Task;

constexpr auto kNqn = "nqn.2026-11.io.cairn:fuzz";
constexpr auto kOtherNqn = "nqn.2026-11.io.cairn:other";
constexpr size_t kStepsMax = 60;
constexpr uint64_t kCommandsMax = 4000;  // of an input
constexpr uint64_t kMarked = 3;          // the neighbour's block
constexpr std::byte kMark{0x6e};

// What the next bytes of the input are.
enum class Step : uint8_t {
  kRegister,  // offset, size, and bytes to write there
  kDoorbell,  // which, and its value
  kEntries,   // a queue, and entries of any bytes at the front of its ring
  kBurst,     // a seed and a shape: many commands
  kRival,     // likewise, of another guest with the same drives
  kAdmin,     // likewise, of the admin queue
  kHonest,    // a seed: many commands that leave queues alone, and are all answered
  kPoke,      // bytes that appear in the guest's memory
  kUnlist,    // a region of memory goes, and comes back
  kMove,      // the state is saved, perhaps damaged, and loaded
  kReset,
  kVanish,  // and another guest in the same memory
  kStepsCount,
};

struct Scene {
  env::Env& env;
  nvme::Registry& registry;
  GuestMachine& guest;
  GuestMachine& rival;
  Input input;
};

bool is_usable(GuestMachine& guest) {
  std::array<std::byte, 4> status{};
  guest.device->read(0x1c, status);
  return guest.device->is_enabled() && (load<uint32_t>(status) & 3) == 1;
}

// The part of memory that the driver's rings are not in, and all of it.
CommandMaker make_commands(GuestMachine& guest, uint32_t seed, bool is_honest) {
  const door::vfio_user::DriverMemory data = guest.driver->data();
  return CommandMaker(Rng(seed), {.bytes = data.bytes,
                                  .address = data.address,
                                  .first = GuestMachine::kAddress,
                                  .end = GuestMachine::kEnd,
                                  .is_honest = is_honest});
}

// Rings full of commands, one after the other, and answers taken out. What is in flight at the end
// stays there.
Task<void> run_burst(GuestMachine& guest, Input& input, uint16_t number) {
  const auto seed = input.value<uint32_t>();
  const auto shape = input.value<uint8_t>();
  CommandMaker maker = make_commands(guest, seed, false);
  DriverQueue* queue = &guest.driver->queue(number);
  uint16_t cid = 0;
  for (int round = 0; round < 1 + shape % 8; ++round) {
    if (queue->is_full() || !is_usable(guest)) {
      co_await guest.start();
      queue = &guest.driver->queue(number);
    }
    while (!queue->is_full()) {
      // Ids come again now and then while they are in use.
      if ((shape & 8) == 0 || cid % 16 != 15) ++cid;
      queue->submit(number == 0 ? maker.admin(cid) : maker.io(cid));
    }
    queue->ring();
    guest.device->poll();
    if ((shape & 16) == 0) co_await guest.pass(2_us);
    queue->poll([](const nvme::Cqe&) {}, queue->rings().entries);
  }
}

// Every command is answered once. Data may land on pages that are lists of other commands, and so
// anywhere in memory that an address was made for: the rings are elsewhere.
Task<void> run_honest(Scene& scene) {
  GuestMachine& guest = scene.guest;
  co_await guest.start(*guest.hidden_driver);
  CommandMaker maker = make_commands(guest, scene.input.value<uint32_t>(), true);
  DriverQueue& queue = guest.hidden_driver->queue(1);
  for (int round = 0; round < 4; ++round) {
    uint64_t open = 0;
    for (uint16_t cid = 0; cid < 63; ++cid) {
      nvme::Sqe sqe = maker.io(cid);
      // The first half of a pair waits for the second.
      if (cid == 62 && sqe.fuse() == nvme::Fuse::kFirst) sqe.set_fuse(nvme::Fuse::kNone);
      queue.submit(sqe);
      open |= uint64_t{1} << cid;
    }
    queue.ring();
    for (int looks = 0; open != 0; ++looks) {
      CHECK(looks < 10000, "every command is answered");
      co_await guest.pass(2_us);
      queue.poll([&](const nvme::Cqe& cqe) {
        CHECK(cqe.cid < 63 && (open >> cqe.cid & 1) != 0, "a command is answered once");
        open &= ~(uint64_t{1} << cqe.cid);
      });
    }
  }
  co_await guest.start();
}

// Entries of any bytes, as they stand in the input.
void put_entries(Scene& scene) {
  const auto number = static_cast<uint16_t>(scene.input.value<uint8_t>() % 2);
  const uint32_t count = scene.input.value<uint8_t>() % 16 + 1;
  const MutableBytes ring = scene.guest.driver->queue(number).rings().submission.bytes;
  for (uint32_t i = 0; i < count; ++i) {
    store(ring.subspan(i * sizeof(nvme::Sqe)), scene.input.value<nvme::Sqe>());
  }
  store(scene.guest.doorbells().subspan(Doorbell::tail_of(number).offset()),
        scene.input.value<uint8_t>() % 72u);
}

Task<void> move(Scene& scene) {
  door::vfio_user::Device& device = *scene.guest.device;
  co_await device.pause();
  Result<std::vector<std::byte>> state = device.save();
  CHECK(state.has_value());
  const size_t at = scene.input.value<uint16_t>();
  if (at < state->size()) (*state)[at] ^= std::byte{scene.input.value<uint8_t>()};
  const Result<void> loaded = device.load(*state);
  CHECK(loaded.has_value() || loaded.error() == Errc::kCorrupt ||
        loaded.error() == Errc::kUnsupported);
  device.resume();
}

Task<void> do_step(Scene& scene) {
  GuestMachine& guest = scene.guest;
  Input& input = scene.input;
  switch (static_cast<Step>(input.value<uint8_t>() % static_cast<uint8_t>(Step::kStepsCount))) {
    case Step::kRegister: {
      const uint32_t offset = input.value<uint16_t>() % 0x1010u;
      const size_t size = input.value<uint8_t>() % 9u;
      std::vector<std::byte> word(size);
      std::ranges::copy(input.take(size), word.begin());
      guest.device->write(offset, word);
      guest.device->read(offset, word);
      break;
    }
    case Step::kDoorbell:
      store(guest.doorbells().subspan(input.value<uint16_t>() % 1024u * 4),
            input.value<uint32_t>() % 80);
      break;
    case Step::kEntries:
      put_entries(scene);
      break;
    case Step::kBurst:
      co_await run_burst(guest, input, 1);
      break;
    case Step::kRival:
      if (scene.rival.device == nullptr) {
        co_await scene.rival.plug_in(scene.registry, kNqn);
        co_await scene.rival.start();
      }
      co_await run_burst(scene.rival, input, 1);
      break;
    case Step::kAdmin:
      co_await run_burst(guest, input, 0);
      break;
    case Step::kHonest:
      co_await run_honest(scene);
      break;
    case Step::kPoke: {
      const uint64_t at = input.value<uint16_t>() % (guest.bytes().size() - 64);
      std::ranges::copy(input.take(64), guest.bytes().subspan(at).begin());
      break;
    }
    case Step::kUnlist: {
      const size_t region = input.value<uint8_t>() % GuestMachine::kRegions;
      co_await guest.unlist(region);
      co_await guest.pass(4_us);
      guest.list(region);
      break;
    }
    case Step::kMove:
      co_await move(scene);
      break;
    case Step::kReset:
      co_await guest.start();
      break;
    case Step::kVanish:
      co_await guest.vanish();
      co_await guest.plug_in(scene.registry, kNqn);
      co_await guest.start();
      break;
    case Step::kStepsCount:
      break;
  }
  co_await guest.pass(Duration{input.value<uint8_t>() * 100});
}

// The neighbour's block, with its mark.
Task<void> visit_neighbour(GuestMachine& neighbour, nvme::IoOpcode opcode) {
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(opcode);
  sqe.nsid = 1;
  sqe.cid = 1;
  nvme::BlockFields{.start = Lba(kMarked), .blocks = 1}.encode(sqe);
  const door::vfio_user::DriverMemory data = neighbour.driver->data();
  std::ranges::fill(data.bytes.first(4096),
                    opcode == nvme::IoOpcode::kWrite ? kMark : std::byte{0});
  door::vfio_user::Driver::point(sqe, data.address, 4096, {});
  DriverQueue& queue = neighbour.driver->queue(1);
  queue.submit(sqe);
  queue.ring();
  bool done = false;
  while (!done) {
    co_await neighbour.pass(2_us);
    queue.poll([&](const nvme::Cqe& cqe) { done = cqe.get_status().ok(); });
  }
  CHECK(std::ranges::count(data.bytes.first(4096), kMark) == 4096);
}

Task<uint64_t> run_guests(env::Env& env, nvme::Registry& registry, Input input) {
  static GuestMachine::Memory memory;
  static GuestMachine::Memory memory_of_rival;
  static GuestMachine::Memory memory_of_other;
  const auto shape = input.value<uint8_t>();
  GuestMachine guest(env, memory, {.is_told = (shape & 1) != 0, .shadow = (shape & 2) != 0});
  GuestMachine rival(env, memory_of_rival, {});
  GuestMachine neighbour(env, memory_of_other, {});
  co_await guest.plug_in(registry, kNqn);
  co_await neighbour.plug_in(registry, kOtherNqn);
  co_await neighbour.start();
  co_await visit_neighbour(neighbour, nvme::IoOpcode::kWrite);
  co_await guest.start();
  Scene scene{.env = env, .registry = registry, .guest = guest, .rival = rival, .input = input};
  for (size_t steps = 0; steps < kStepsMax && !scene.input.is_over(); ++steps) {
    co_await do_step(scene);
    if (guest.taken() + rival.taken() > kCommandsMax) break;
  }
  co_await visit_neighbour(neighbour, nvme::IoOpcode::kRead);
  co_await guest.start();
  const uint64_t taken = guest.taken() + rival.taken();
  co_await guest.close();
  co_await rival.close();
  co_await neighbour.close();
  co_return taken;
}

Task<void> add(nvme::Registry& registry, const char* nqn, std::vector<const char*> drives) {
  nvme::SubsystemOptions options;
  options.nqn = nqn;
  CHECK(registry.add_subsystem(options).has_value());
  for (const char* drive : drives) {
    nvme::NamespaceOptions space;
    space.drive = *drive::Spec::parse(drive);
    const Result<uint32_t> added = co_await registry.add_namespace(nqn, space);
    CHECK(added.has_value());
  }
}

Task<void> serve(env::Env& env, Input input, uint64_t& taken, bool& done) {
  {
    nvme::Registry registry(env);
    co_await add(registry, kNqn, {"mem:size=64K,block=512", "file:/d,size=256K,block=4096"});
    co_await add(registry, kOtherNqn, {"mem:size=32K,block=4096"});
    taken = co_await run_guests(env, registry, input);
    co_await registry.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  static cairn::fuzz::Tally tally("NVMe commands of a guest");
  const cairn::fuzz::Input input(std::as_bytes(std::span(bytes, size)));
  uint64_t taken = 0;
  bool done = false;
  cairn::sim::Cluster cluster;
  cluster.node("box", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 16}}}})
      .start([&](cairn::env::Env& env) { return cairn::fuzz::serve(env, input, taken, done); });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  tally.add(taken);
  return 0;
}
