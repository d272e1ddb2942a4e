// SPDX-License-Identifier: Apache-2.0
// Admin and reservation commands made of random bits: each completes, none breaks anything.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "nvme/controller/registry_testing.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class RandomAdmin : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, RandomAdmin, ::testing::Values(1, 3));

// Often small, often all ones: where the edges are.
uint32_t edgy(Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return 0;
    case 1:
      return UINT32_MAX;
    case 2:
      return static_cast<uint32_t>(rng.below(4));
    case 3:
      return static_cast<uint32_t>(rng.below(256));
    case 4:
      return 1u << rng.below(32);
    default:
      return static_cast<uint32_t>(rng.next());
  }
}

Sqe random_command(Rng& rng) {
  Sqe sqe;
  constexpr uint8_t kServed[] = {0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x7f};
  const bool served = rng.bernoulli(0.9);
  sqe.opcode = served ? kServed[rng.below(std::size(kServed))] : static_cast<uint8_t>(rng.next());
  if (rng.bernoulli(0.05)) sqe.flags = static_cast<uint8_t>(rng.next());
  sqe.nsid = edgy(rng);
  sqe.cdw10 = edgy(rng);
  if (rng.bernoulli(0.5))
    sqe.cdw10 = (sqe.cdw10 & 0xffff'ff00) | static_cast<uint32_t>(rng.below(32));
  for (Le32* dword : {&sqe.cdw11, &sqe.cdw12, &sqe.cdw13, &sqe.cdw14, &sqe.cdw15}) {
    *dword = edgy(rng);
  }
  // Enabling again is likely, so that most commands find a controller that serves them.
  if (sqe.is_fabrics() && rng.bernoulli(0.5)) {
    PropertyCommand command;
    command.type = FabricsType::kPropertySet;
    command.offset = 0x14;
    command.value = rng.bernoulli(0.7) ? 0x0046'0001 : edgy(rng);
    sqe = to_sqe(command);
  }
  return sqe;
}

Task<void> run_one(Registry& registry, Controller& controller, Sqe sqe, std::vector<std::byte> data,
                   task::CancelToken token, size_t& completed) {
  const Cqe cqe = co_await registry.admin(controller, sqe, data, token);
  EXPECT_EQ(cqe.cid, sqe.cid);
  ++completed;
}

Task<void> run_reservation(Registry& registry, Controller& controller, Sqe sqe,
                           std::vector<std::byte> data, size_t& completed) {
  const Status status = co_await registry.reservation(controller, sqe, data);
  EXPECT_LE(static_cast<int>(status.type()), 3);
  ++completed;
}

SIM_TEST_P(RandomAdmin, EveryCommandCompletes) {
  co_await serve(registry);
  Rng rng(env.core_count());
  for (int round = 0; round < 40; ++round) {
    TestHost host(registry, static_cast<uint8_t>(1 + rng.below(3)));
    if (round % 8 == 7) host.data.subsystem_nqn.set(kDiscoveryNqn);
    const ConnectReply connected = co_await host.connect_queue(0);
    EXPECT_TRUE(connected.status.ok());
    co_await host.enable();
    task::CancelSource source;
    task::Gate gate;
    size_t completed = 0;
    const size_t commands = 500;
    for (size_t i = 0; i < commands; ++i) {
      std::vector<std::byte> data(rng.bernoulli(0.5) ? 4096 : rng.below(4096));
      rng.fill(data);
      if (rng.bernoulli(0.2) && round % 8 != 7) {
        constexpr uint8_t kOpcodes[] = {0x0d, 0x0e, 0x11, 0x15};
        Sqe sqe = Sqe::make(IoOpcode(kOpcodes[rng.below(4)]), static_cast<uint32_t>(rng.below(3)));
        sqe.cdw10 = edgy(rng);
        sqe.cdw11 = edgy(rng);
        for (std::byte& byte : data) byte = static_cast<std::byte>(rng.below(2));
        gate.spawn(run_reservation(registry, *host.controller, sqe, std::move(data), completed));
      } else {
        Sqe sqe = random_command(rng);
        sqe.cid = static_cast<uint16_t>(i);
        gate.spawn(
            run_one(registry, *host.controller, sqe, std::move(data), source.token(), completed));
      }
      if (rng.bernoulli(0.1)) co_await let_pass(env, 10_us);
    }
    source.request();
    co_await gate.close();
    EXPECT_EQ(completed, commands);
    co_await host.leave_all();
  }
}

}  // namespace
}  // namespace cairn::nvme
