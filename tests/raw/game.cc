// SPDX-License-Identifier: Apache-2.0
#include "raw/game.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "nvme/format/reservation_format.h"
#include "raw/history.h"
#include "raw/raw_queue.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/fabric/sim_box.h"
#include "world/sim/cluster.h"

namespace cairn::raw_tests {
namespace {

using lane_tests::kNqn;
using lane_tests::kPort;
using nvme::IoOpcode;
using nvme::SglDescriptor;
using nvme::Sqe;
using target_tests::RawHost;
using task::Task;

constexpr uint32_t kHosts = 2;
constexpr uint32_t kQueues = 2;  // of each that do I/O

struct DriveKind {
  const char* drive;
  uint32_t pair_blocks;
};
constexpr std::array<DriveKind, 5> kDrives = {{
    {"mem:size=1M,block=512", 1},
    {"stack:mem:size=1M,block=512", 1},
    {"stack:atomic(mem:size=2M,block=512)", 128},
    {"stack:limit(mem:size=1M,block=512, iops=50000)", 1},
    {"file:disk,size=1M,block=512", 1},
}};

// A host: an admin queue for aborts, a queue for reservations, and queues for all else.
struct Host {
  Host(env::Env& env, uint32_t its_number) : number(its_number), admin(env), control(env) {}
  uint64_t key() const { return uint64_t{number} * 11; }
  void hold(bool held) {
    for (const auto& queue : queues) queue->hold(held);
  }
  bool is_idle() const {
    return std::ranges::all_of(queues, [](const auto& queue) { return queue->is_idle(); });
  }
  uint32_t number;
  RawHost admin;
  RawHost control;
  std::vector<std::unique_ptr<RawQueue>> queues;
};

class Game {
 public:
  Game(env::Env& env, History& history, const DriveKind& kind, uint64_t seed)
      : env_(env), history_(history), kind_(kind), rng_(mix64(seed)) {}

  Task<void> play(env::Address box) {
    for (uint32_t i = 0; i < kHosts; ++i) {
      hosts_.push_back(std::make_unique<Host>(env_, i + 1));
      co_await arrive(*hosts_.back(), box);
    }
    // Who aborts and fences frees those who wait for each other; some runs are without.
    std::vector<Task<void>> others;
    const bool is_quiet = rng_.bernoulli(0.3);
    for (const auto& host : hosts_) {
      if (!is_quiet) others.push_back(abort_some(*host));
    }
    if (!is_quiet) others.push_back(fence_some());
    std::vector<Task<void>> queues;
    for (const auto& host : hosts_) {
      for (const auto& queue : host->queues) queues.push_back(queue->run());
    }
    co_await task::when_all(std::move(queues));
    is_over_ = true;
    co_await task::when_all(std::move(others));
    for (const auto& host : hosts_) {
      for (const auto& queue : host->queues) answers += queue->answers();
      host->admin.stream.reset();
      host->control.stream.reset();
    }
  }
  uint64_t answers = 0;
  uint64_t fences = 0;
  uint64_t aborts = 0;

 private:
  Task<void> pause(Duration max) {
    const Duration time{static_cast<int64_t>(rng_.below(static_cast<uint64_t>(max.ns)))};
    const Result<void> slept = co_await task::sleep_for(env_, time);
    CHECK(slept.has_value());
  }
  Task<void> arrive(Host& host, env::Address box) {
    const auto number = static_cast<uint8_t>(host.number);
    const nvme::IcReqOptions style{.header_digest = rng_.bernoulli(0.3),
                                   .data_digest = rng_.bernoulli(0.3)};
    co_await host.admin.arrive(box, {}, {.nqn = kNqn, .host_number = number});
    co_await host.control.dial(box);
    co_await host.control.greet();
    const nvme::Cqe cqe = co_await host.control.connect(
        {.id = 1, .controller = host.admin.controller_id, .nqn = kNqn, .host_number = number});
    CHECK(cqe.get_status().ok());
    for (uint16_t i = 0; i < kQueues; ++i) {
      host.queues.push_back(
          std::make_unique<RawQueue>(env_, history_, rng_.fork(),
                                     RawQueueOptions{.host = host.number,
                                                     .pair_blocks = kind_.pair_blocks,
                                                     .only_pairs = rng_.bernoulli(0.25)}));
      co_await host.queues.back()->connect(box, host.admin, static_cast<uint16_t>(i + 2), kNqn,
                                           style);
    }
  }
  Task<void> abort_some(Host& host) {
    while (!is_over_) {
      co_await pause(2_ms);
      const auto queue = static_cast<uint16_t>(rng_.below(kQueues));
      const std::optional<uint16_t> cid = host.queues[queue]->any_command();
      if (!cid) continue;
      Sqe sqe = Sqe::make(nvme::AdminOpcode::kAbort);
      nvme::AbortFields{.sqid = static_cast<uint16_t>(queue + 2), .cid = *cid}.encode(sqe);
      sqe.cid = host.admin.next_cid();
      const nvme::Cqe cqe = co_await host.admin.ask(sqe);
      if (!cqe.get_status().ok()) history_.complain("an Abort failed");
      aborts += (cqe.dw0 & 1) == 0 ? 1 : 0;
    }
  }
  Task<nvme::Status> reserve(Host& host, Sqe sqe, uint64_t first, uint64_t second) {
    std::vector<std::byte> data(sizeof(nvme::RegisterData));
    store(data, nvme::RegisterData{.current_key = first, .new_key = second});
    sqe.sgl1 = SglDescriptor::in_capsule(static_cast<uint32_t>(data.size()));
    sqe.cid = host.control.next_cid();
    const nvme::Cqe cqe = co_await host.control.ask(sqe, data);
    co_return cqe.get_status();
  }
  Task<void> must_reserve(Host& host, Sqe sqe, uint64_t first, uint64_t second) {
    const nvme::Status status = co_await reserve(host, sqe, first, second);
    if (!status.ok()) {
      history_.complain("a reservation command failed: " + std::string(nvme::name(status.code())));
    }
  }
  // One host has the namespace for itself; the other fences it off, and nothing of the first
  // happens from then on. When all that it had asked for is answered, it may come back.
  Task<void> fence(Host& victim, Host& fencer) {
    const auto type = nvme::ReservationType::kWriteExclusive;
    Sqe enter = Sqe::make(IoOpcode::kReservationRegister, 1);
    nvme::RegisterFields{.ignore_key = true}.encode(enter);
    co_await must_reserve(victim, enter, 0, victim.key());
    co_await must_reserve(fencer, enter, 0, fencer.key());
    Sqe acquire = Sqe::make(IoOpcode::kReservationAcquire, 1);
    nvme::AcquireFields{.type = type}.encode(acquire);
    co_await must_reserve(victim, acquire, victim.key(), 0);
    co_await pause(1_ms);
    Sqe preempt = Sqe::make(IoOpcode::kReservationAcquire, 1);
    nvme::AcquireFields{.action = nvme::AcquireAction::kPreemptAndAbort, .type = type}.encode(
        preempt);
    co_await must_reserve(fencer, preempt, fencer.key(), victim.key());
    history_.fence(victim.number);
    ++fences;
    victim.hold(true);
    while (!victim.is_idle() && history_.wrong().empty()) co_await pause(100_us);
    co_await pause(1_ms);
    Sqe clear = Sqe::make(IoOpcode::kReservationRelease, 1);
    nvme::ReleaseFields{.action = nvme::ReleaseAction::kClear}.encode(clear);
    co_await must_reserve(fencer, clear, fencer.key(), 0);
    victim.hold(false);
  }
  Task<void> fence_some() {
    while (!is_over_ && history_.wrong().empty()) {
      co_await pause(3_ms);
      const size_t victim = rng_.below(kHosts);
      co_await fence(*hosts_[victim], *hosts_[1 - victim]);
    }
  }

  env::Env& env_;
  History& history_;
  const DriveKind kind_;
  Rng rng_;
  std::vector<std::unique_ptr<Host>> hosts_;
  bool is_over_ = false;
};

Task<void> play(env::Env& env, env::Address box, History& history, const DriveKind& kind,
                uint64_t seed, Figures& figures, bool& finished) {
  Game game(env, history, kind, seed);
  co_await game.play(box);
  figures.answers += game.answers;
  figures.fences += game.fences;
  figures.aborts += game.aborts;
  finished = true;
}

// What went wrong; empty: nothing.
std::string judge(const sim::Cluster& cluster, const History& history, bool finished) {
  if (!history.wrong().empty()) return history.wrong();
  return finished ? "" : "it does not come to its end\n" + cluster.report();
}

}  // namespace

bool play_game(uint64_t seed, Figures& figures,
               const std::function<void(const std::string&)>& on_wrong) {
  Rng rng(seed);
  sim::ClusterOptions world;
  world.seed = seed;
  world.trace_capacity = 64;
  world.disk.block_size = kBlock;
  world.network.faults.segment = rng.bernoulli(0.5) ? rng.uniform() : 0;
  world.network.send_buffer_size = static_cast<uint32_t>(rng.between(1, 64)) << 10;
  world.network.receive_buffer_size = static_cast<uint32_t>(rng.between(1, 64)) << 10;
  const DriveKind& kind = kDrives[rng.below(kDrives.size())];
  lane_tests::SimBoxOptions options;
  options.drive = kind.drive;
  options.queue_entries = 64;
  sim::Cluster cluster(world);
  lane_tests::SimBox box(options);
  const auto small = static_cast<uint32_t>(rng.between(2, 16));
  const BufferPoolOptions few = {
      .classes = {{4096, small}, {16384, 2}, {65536, 2}, {262144, 2}, {1048576, 2}}};
  sim::Node& node =
      cluster.node("box", {.cores = static_cast<uint32_t>(rng.between(1, 2)), .buffers = few});
  node.start(box.program(node.address(kPort)));
  CHECK(cluster.run_until([&] { return box.is_serving(); }, 1_s));
  History history(kDriveBlocks);
  bool finished = false;
  cluster.node("hosts").start([&](env::Env& env) {
    return play(env, node.address(kPort), history, kind, seed, figures, finished);
  });
  cluster.run_until([&] { return finished || !history.wrong().empty(); }, 60_s);
  const std::string wrong = judge(cluster, history, finished);
  if (!wrong.empty()) {
    on_wrong(wrong);
    return false;
  }
  node.stop();
  if (cluster.run_until_idle(100_s) && !node.is_running()) return true;
  on_wrong("the box does not come to its end");
  return false;
}

}  // namespace cairn::raw_tests
