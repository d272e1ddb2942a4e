// SPDX-License-Identifier: Apache-2.0
// Any queue that connects and any admin and reservation commands on it: each is answered, and the
// registry closes in good order afterwards.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "nvme/controller/registry.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "world/sim/cluster.h"

namespace cairn::nvme {
namespace {

// An input is a list of these; behind one of a reservation come its 16 bytes of data.
struct Step {
  uint8_t kind = 0;       // bit 0: a reservation command; bit 1: wait a little first
  uint8_t data_size = 0;  // in units of 64 bytes
  Sqe sqe;
};
constexpr size_t kStepsMax = 64;

struct Link final : QueueLink {
  void disconnect(const char*) override {}
  bool abort(uint16_t cid) override { return cid % 2 == 0; }
  bool take_traffic() override { return false; }
};

task::Task<void> run_admin(Registry& registry, Controller& controller, Sqe sqe,
                           std::vector<std::byte> data, task::CancelToken token) {
  const Cqe cqe = co_await registry.admin(controller, sqe, data, token);
  CHECK(cqe.cid == sqe.cid);
  CHECK(cqe.get_status().ok() || cqe.get_status().code() != StatusCode::kSuccess);
}

task::Task<void> run_reservation(Registry& registry, Controller& controller, Sqe sqe,
                                 std::vector<std::byte> data) {
  const Status status = co_await registry.reservation(controller, sqe, data);
  CHECK(!status.more());
}

task::Task<void> connect_any(Registry& registry, const Step& step, ConnectData data) {
  Link link;
  ConnectRequest request;
  request.sqe = step.sqe;
  request.data = data;
  request.link = &link;
  const ConnectReply reply = co_await registry.connect(request);
  CHECK(reply.status.ok() == (reply.controller != nullptr));
  if (reply.status.ok()) co_await registry.disconnected(*reply.controller, reply.queue_id, link);
}

task::Task<void> run_steps(env::Env& env, Registry& registry, Controller& controller, Bytes input) {
  task::Gate gate;
  task::CancelSource source;
  for (size_t i = 0; i < kStepsMax && input.size() >= sizeof(Step); ++i) {
    const auto step = load<Step>(input);
    input = input.subspan(sizeof(Step));
    std::vector<std::byte> data(step.data_size * size_t{64});
    const bool is_reservation = (step.kind & 1) != 0;
    const size_t given = std::min<size_t>({data.size(), input.size(), is_reservation ? 16u : 0u});
    std::ranges::copy(input.first(given), data.begin());
    input = input.subspan(given);
    if ((step.kind & 2) != 0) {
      const Result<void> slept = co_await task::sleep_for(env, 1_ms);
      CHECK(slept.has_value());
    }
    if (is_reservation) {
      gate.spawn(run_reservation(registry, controller, step.sqe, std::move(data)));
    } else {
      gate.spawn(run_admin(registry, controller, step.sqe, std::move(data), source.token()));
    }
  }
  source.request();
  co_await gate.close();
}

task::Task<void> serve(env::Env& env, Bytes input, bool& done) {
  {
    Registry registry(env);
    SubsystemOptions options;
    options.nqn = "nqn.2026-11.io.cairn:fuzz";
    CHECK(registry.add_subsystem(options).has_value());
    NamespaceOptions space;
    space.drive = *drive::Spec::parse("mem:size=4K");
    const Result<uint32_t> added = co_await registry.add_namespace(options.nqn, space);
    CHECK(added.has_value());
    const bool discovery = !input.empty() && std::to_integer<uint8_t>(input[0]) == 0xff;
    ConnectData data;
    data.subsystem_nqn.set(discovery ? kDiscoveryNqn : std::string_view(options.nqn));
    data.host_nqn.set("nqn.2014-08.org.nvmexpress:uuid:1");
    if (input.size() >= sizeof(Step)) co_await connect_any(registry, load<Step>(input), data);
    Link link;
    ConnectRequest request;
    ConnectCommand connect;
    connect.queue_size = 31;
    request.sqe = to_sqe(connect);
    request.data = data;
    request.link = &link;
    const ConnectReply reply = co_await registry.connect(request);
    CHECK(reply.status.ok());
    PropertyCommand enable;
    enable.type = FabricsType::kPropertySet;
    enable.offset = 0x14;
    enable.value = 0x0046'0001;
    const Cqe enabled = co_await registry.admin(*reply.controller, to_sqe(enable), {}, {});
    CHECK(enabled.get_status().ok());
    co_await run_steps(env, registry, *reply.controller, input);
    co_await registry.disconnected(*reply.controller, 0, link);
    co_await registry.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::nvme

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::Bytes input = std::as_bytes(std::span(bytes, size));
  bool done = false;
  cairn::sim::Cluster cluster;
  cluster.node("box", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 4}}}})
      .start([&](cairn::env::Env& env) { return cairn::nvme::serve(env, input, done); });
  CHECK(cluster.run_until([&] { return done; }, 100_s));
  return 0;
}
