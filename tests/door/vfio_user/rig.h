// SPDX-License-Identifier: Apache-2.0
// A server with fake devices, and guests of it: what tests of vfio-user are written in.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "door/vfio_user/server.h"
#include "task/deadline.h"
#include "testing/door/fake_device.h"
#include "testing/guest/client.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::vfio_user_tests {

using conformance::Conformance;
using conformance::must;
using conformance::outcome;
using conformance::Scene;
using conformance::WorldNames;
using conformance::Worlds;
using task::Task;
using namespace door::vfio_user;  // NOLINT: its words are those of these tests

template <class T>
Task<T> sure(Task<Result<T>> step, std::source_location where = std::source_location::current()) {
  Result<T> result = co_await step;
  if constexpr (std::is_void_v<T>) {
    must(std::move(result), where);
  } else {
    co_return must(std::move(result), where);
  }
}

// Until the device raises it.
inline Task<void> sure_of(env::Signal& signal) {
  Result<void> raised = co_await signal.wait();
  must(std::move(raised));
}

inline constexpr uint64_t kGuestBase = 0x10'0000'0000;
inline constexpr uint64_t kGuestSize = 1 << 20;

// A guest with a megabyte of memory, listed at kGuestBase.
struct Guest {
  std::unique_ptr<Client> client;
  env::Descriptor memory_descriptor;
  std::unique_ptr<env::SharedMemory> memory;
  uint32_t rings = 0;

  MutableBytes at(uint64_t offset, size_t size) { return memory->bytes().subspan(offset, size); }
  // Makes the device copy, and does not wait for it.
  Task<Result<void>> order(Order order) {
    store(at(0, sizeof(order)), order);
    ++rings;
    if (client->doorbells().empty()) {
      const Le32 value(rings);
      Result<void> rung = co_await client->write(kBar0, kDoorbellsAt, bytes_of(value));
      co_return rung;
    }
    env::store_shared(client->doorbells().data(), rings);
    co_return Result<void>{};
  }
  // Copies within the guest's memory, by offsets.
  Task<Result<void>> copy(uint64_t from, uint64_t to, uint32_t length, uint16_t vector = 0,
                          Duration delay = {}) {
    return order({.from = kGuestBase + from,
                  .to = kGuestBase + to,
                  .length = length,
                  .vector = uint32_t{vector},
                  .delay_ns = static_cast<uint64_t>(delay.ns)});
  }
};

inline Task<Result<void>> enable(Client& client) {
  const Le64 where(kGuestBase);
  const Result<void> told = co_await client.write(kBar0, kOrderAt, bytes_of(where));
  if (!told) co_return told;
  const Le32 on(1u);
  Result<void> enabled = co_await client.write(kBar0, kEnableAt, bytes_of(on));
  co_return enabled;
}

inline Task<Result<Guest>> arrive(env::Env& env, env::Address at, bool is_enabled = true) {
  Guest guest;
  Result<std::unique_ptr<Client>> client = co_await Client::connect(env, at, env.stop_token());
  if (!client) co_return fail(client.error());
  guest.client = std::move(*client);
  env::Sharing& sharing = guest.client->sharing();
  Result<env::Descriptor> memory = sharing.make_shared_memory(kGuestSize);
  if (!memory) co_return fail(memory.error());
  guest.memory_descriptor = std::move(*memory);
  guest.memory = must(sharing.map_shared(guest.memory_descriptor, {.size = kGuestSize}));
  const Result<void> mapped = co_await guest.client->map(kGuestBase, guest.memory_descriptor,
                                                         {.size = kGuestSize}, env.stop_token());
  if (!mapped) co_return fail(mapped.error());
  if (is_enabled) {
    const Result<void> enabled = co_await enable(*guest.client);
    if (!enabled) co_return fail(enabled.error());
  }
  co_return guest;
}

// A server with one device, "a".
struct Rig {
  explicit Rig(env::Env& its, Pace its_pace = Pace::kAdaptive, Duration greeting_timeout = 10_s)
      : env(its), pace(its_pace) {
    server = std::make_unique<VfioUserServer>(
        env, SessionOptions{.greeting_timeout = greeting_timeout,
                            .log = [this](std::string_view text) { log.emplace_back(text); }});
  }
  void open(const Scene& scene) { open(scene.local_socket("vfio").value()); }
  void open(env::Address at) {
    address = std::move(at);
    must(server->add("a", address, make_fake, pace));
  }
  // When the last one leaves, in its turn.
  Task<Guest> guest(bool is_enabled = true) { return sure(arrive(env, address, is_enabled)); }
  Task<void> close() { return server->close(); }

  env::Env& env;
  Pace pace;
  std::unique_ptr<VfioUserServer> server;
  env::Address address;
  std::vector<std::string> log;
};

}  // namespace cairn::vfio_user_tests
