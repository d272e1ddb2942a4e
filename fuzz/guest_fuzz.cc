// SPDX-License-Identifier: Apache-2.0
// A guest that does anything: writes to registers, doorbells and its whole memory, commands with
// any bits, memory that goes away, resets and moves. The controller answers or fails, can always be
// reset, and closes in good order; a neighbour reads its own data all the while.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "door/vfio_user/controller.h"
#include "door/vfio_user/driver.h"
#include "env/call.h"
#include "input.h"
#include "nvme/io_format.h"
#include "sim/cluster.h"
#include "task/deadline.h"

namespace cairn::vfio_user {
namespace {

constexpr uint64_t kAddress = 0x4000'0000;
constexpr uint64_t kMemory = 256 << 10;
constexpr auto kNqn = "nqn.2026-11.io.cairn:fuzz";
constexpr auto kOtherNqn = "nqn.2026-11.io.cairn:other";

class HeapMemory final : public env::SharedMemory {
 public:
  explicit HeapMemory(size_t size) : room_(size + 4096) {
    const auto begin = reinterpret_cast<uintptr_t>(room_.data());
    bytes_ = MutableBytes(room_).subspan(align_up(begin, 4096) - begin, size);
  }

 private:
  std::vector<std::byte> room_;
};

class Guest final : public DriverAccess {
 public:
  explicit Guest(env::Env& env)
      : env_(env), page_(4096), memory_of_it_(std::make_unique<HeapMemory>(kMemory)) {
    bytes = memory_of_it_->bytes();
    list_memory();
    driver = std::make_unique<Driver>(env, *this, DriverMemory{.bytes = bytes, .address = kAddress},
                                      DriverOptions{.entries = 16, .patience = 1_s});
  }

  void list_memory() {
    if (memory_of_it_ == nullptr) memory_of_it_ = std::make_unique<HeapMemory>(kMemory);
    bytes = memory_of_it_->bytes();
    CHECK(memory.add(kAddress, std::move(memory_of_it_)).has_value());
  }
  task::Task<void> plug_in(nvme::Registry& registry, const char* nqn) {
    Result<std::unique_ptr<Device>> made = co_await PciController::make(
        {.env = env_,
         .memory = memory,
         .doorbells = page_.bytes(),
         .is_told = false,
         .raise = [](uint16_t vector) { CHECK(vector < 4); },
         .wake = {}},
        {.registry = registry, .control = CoreId(0), .nqn = nqn, .vectors = 4, .on_leave = {}});
    CHECK(made.has_value());
    device = std::move(*made);
  }
  task::Task<void> pass(Duration duration) {
    const Time until = env_.now() + duration;
    while (env_.now() < until) {
      device->poll();
      const Result<void> slept = co_await task::sleep_for(env_, 1_us);
      CHECK(slept.has_value());
    }
  }
  task::Task<void> close() {
    co_await device->close();
    device.reset();
    co_await memory.clear();
  }

  task::Task<Result<void>> read(uint64_t offset, MutableBytes into) override {
    device->poll();
    device->read(offset, into);
    co_return Result<void>{};
  }
  task::Task<Result<void>> write(uint64_t offset, Bytes from) override {
    device->write(offset, from);
    co_return Result<void>{};
  }
  MutableBytes doorbells() override { return page_.bytes(); }
  void ring(Doorbell /*doorbell*/, uint32_t /*value*/) override {}

  MutableBytes bytes;
  door::GuestMemory memory;
  std::unique_ptr<Device> device;
  std::unique_ptr<Driver> driver;

 private:
  env::Env& env_;
  HeapMemory page_;
  std::unique_ptr<HeapMemory> memory_of_it_;
};

task::Task<void> poll_while(env::Env& env, Guest& guest, const bool& going) {
  while (going) {
    if (guest.device != nullptr) guest.device->poll();
    const Result<void> slept = co_await task::sleep_for(env, 1_us);
    CHECK(slept.has_value());
  }
}

// Commands whose fields are close to what makes sense, in the ring of one of the queues.
void put_commands(Guest& guest, fuzz::Input& input) {
  const auto queue = input.value<uint8_t>() % 2;
  const uint32_t count = input.value<uint8_t>() % 16 + 1;
  const uint64_t at = queue == 0 ? 3 * 4096 : 3 * 4096 + 2 * 4096;
  for (uint32_t i = 0; i < count; ++i) {
    auto sqe = input.value<nvme::Sqe>();
    const auto shape = input.value<uint8_t>();
    if ((shape & 1) != 0) sqe.nsid = 1;
    if ((shape & 2) != 0) sqe.flags = static_cast<uint8_t>(sqe.flags & 0x40);
    if ((shape & 4) != 0) {
      sqe.sgl1.address = kAddress + (sqe.sgl1.address % (kMemory + 8192) & ~uint64_t{3});
    }
    if ((shape & 8) != 0) sqe.set_cdw10_11(sqe.cdw10_11() % 300);
    if ((shape & 16) != 0) sqe.cdw12 = sqe.cdw12 & 0xff;
    store(guest.bytes.subspan(at + i * sizeof sqe), sqe);
  }
  store(guest.doorbells().subspan(Doorbell::tail_of(static_cast<uint16_t>(queue)).offset()),
        input.value<uint8_t>() % 20u);
}

task::Task<void> do_step(Guest& guest, fuzz::Input& input) {
  switch (input.value<uint8_t>() % 10) {
    case 0: {
      const uint32_t offset = input.value<uint16_t>() % 0x1010u;
      const size_t size = input.value<uint8_t>() % 9u;
      std::vector<std::byte> word(size);
      std::ranges::copy(input.take(size), word.begin());
      guest.device->write(offset, word);
      guest.device->read(offset, word);
      break;
    }
    case 1:
      store(guest.doorbells().subspan(input.value<uint16_t>() % 1024u * 4),
            input.value<uint32_t>() % 40);
      break;
    case 2:
    case 3:
    case 4:
    case 5:
      put_commands(guest, input);
      break;
    case 6: {
      const uint64_t at = input.value<uint32_t>() % (kMemory - 64);
      std::ranges::copy(input.take(64), guest.bytes.subspan(at).begin());
      break;
    }
    case 7: {
      guest.device->abandon(kAddress, kMemory);
      const Result<void> removed = co_await guest.memory.remove(kAddress, kMemory);
      CHECK(removed.has_value());
      co_await guest.pass(5_us);
      guest.list_memory();
      break;
    }
    case 8: {
      co_await guest.device->pause();
      Result<std::vector<std::byte>> state = guest.device->save();
      CHECK(state.has_value());
      const size_t at = input.value<uint16_t>();
      if (at < state->size()) (*state)[at] ^= std::byte{input.value<uint8_t>()};
      const Result<void> loaded = guest.device->load(*state);
      CHECK(loaded.has_value() || loaded.error() == Errc::kCorrupt ||
            loaded.error() == Errc::kUnsupported);
      guest.device->resume();
      break;
    }
    default:
      co_await guest.device->reset();
      break;
  }
  co_await guest.pass(Duration{input.value<uint8_t>() * 100});
}

task::Task<void> check_neighbour(Guest& neighbour) {
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(nvme::IoOpcode::kRead);
  sqe.nsid = 1;
  nvme::BlockFields{.start = Lba(3), .blocks = 1}.encode(sqe);
  const DriverMemory data = neighbour.driver->data();
  Driver::point(sqe, data.address, 4096, {});
  const Result<nvme::Cqe> cqe = co_await neighbour.driver->execute(neighbour.driver->queue(1), sqe);
  CHECK(cqe.has_value() && cqe->get_status().ok());
}

task::Task<void> run_guests(env::Env& env, nvme::Registry& registry, fuzz::Input input) {
  Guest guest(env);
  Guest neighbour(env);
  co_await guest.plug_in(registry, kNqn);
  co_await neighbour.plug_in(registry, kOtherNqn);
  bool going = true;
  task::Gate polls;
  polls.spawn(poll_while(env, neighbour, going));
  const Result<void> other = co_await neighbour.driver->start();
  CHECK(other.has_value());
  polls.spawn(poll_while(env, guest, going));
  const Result<void> started = co_await guest.driver->start();
  CHECK(started.has_value());
  for (int steps = 0; steps < 60 && !input.is_over(); ++steps) co_await do_step(guest, input);
  co_await check_neighbour(neighbour);
  co_await guest.device->reset();
  going = false;
  co_await polls.close();
  co_await guest.close();
  co_await neighbour.close();
}

task::Task<void> add(nvme::Registry& registry, const char* nqn, std::vector<const char*> drives) {
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

task::Task<void> serve(env::Env& env, fuzz::Input input, bool& done) {
  {
    nvme::Registry registry(env);
    co_await add(registry, kNqn, {"mem:size=1M,block=4096", "file:/d,size=1M,block=4096"});
    co_await add(registry, kOtherNqn, {"file:/other,size=1M,block=4096"});
    co_await run_guests(env, registry, input);
    co_await registry.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::vfio_user

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::fuzz::Input input(std::as_bytes(std::span(bytes, size)));
  bool done = false;
  cairn::sim::Cluster cluster;
  cluster.node("box", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 64}}}})
      .start([&](cairn::env::Env& env) { return cairn::vfio_user::serve(env, input, done); });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  return 0;
}
