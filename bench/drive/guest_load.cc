// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/guest_load.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/workload.h"
#include "nvme/format/io_format.h"
#include "task/deadline.h"
#include "testing/guest/client.h"
#include "testing/guest/client_access.h"
#include "testing/guest/driver.h"

namespace cairn::bench {

namespace {

using door::vfio_user::Client;
using door::vfio_user::ClientAccess;
using door::vfio_user::Driver;
using door::vfio_user::DriverMemory;
using door::vfio_user::DriverQueue;

constexpr uint64_t kBase = 0x1'0000'0000;  // where the device knows our memory
constexpr uint64_t kPage = 4096;           // of the guest, and a block of its drive
constexpr uint64_t kQueueRoom = 1_MiB;
constexpr uint64_t kMeasuredMin = 16;
constexpr Duration kSilenceMax = 60_s;  // a shared disk may stand still for long
constexpr Duration kConnectMax = 10_s;

// Of a command: its data, and a page for the list of their pages.
uint64_t slot_room(const GuestLoad& load) { return load.request_size + kPage; }

// One slot per outstanding command; its number is the command's id and says where its data are.
class Spinner {
 public:
  Spinner(Driver& driver, const GuestLoad& load)
      : queue_(driver.queue(1)),
        data_(driver.data()),
        load_(load),
        rng_(load.seed),
        sent_at_(load.depth) {}

  // Every place once, each unlike the others.
  Result<void> fill() {
    const auto write_next = [this](uint32_t slot, Time at) {
      if (filled_ == places()) return;
      store(room(slot).bytes, nvme::Le64(filled_ + 1));
      submit(slot, at, nvme::IoOpcode::kWrite, filled_++);
    };
    for (uint32_t slot = 0; slot < load_.depth; ++slot) write_next(slot, now());
    return spin([&](uint32_t slot, Time at) { write_next(slot, at); });
  }

  Result<GuestResult> run() {
    const Time start = now();
    const Time measured_from = start + load_.warm_up;
    const Time end = measured_from + load_.duration;
    Time last = measured_from;
    if (load_.watch.begins) load_.watch.begins();
    for (uint32_t slot = 0; slot < load_.depth; ++slot) submit_some(slot, start);
    const Result<void> done = spin([&](uint32_t slot, Time at) {
      ++result_.requests;
      // On a machine too busy to let it run in its time, until it has done something to measure.
      const bool goes_on = at < end || result_.latency_ns.count() < kMeasuredMin;
      if (!goes_on) return;
      if (at >= measured_from) {
        result_.latency_ns.record(static_cast<uint64_t>((at - sent_at_[slot]).ns));
        last = at;
      }
      submit_some(slot, at);
    });
    if (!done) return fail(done.error());
    if (load_.watch.ended) load_.watch.ended();
    result_.per_second =
        static_cast<double>(result_.latency_ns.count()) / (last - measured_from).seconds();
    return std::move(result_);
  }

 private:
  // Until nothing is in flight; `then(slot, at)` follows each command that has ended well.
  Result<void> spin(auto then) {
    queue_.ring();
    Time last = now();
    while (in_flight_ > 0) {
      const Time at = now();
      const size_t taken = queue_.poll([&](const nvme::Cqe& cqe) {
        --in_flight_;
        failed_ |= !cqe.get_status().ok();
        if (!failed_) then(cqe.cid, at);
      });
      if (taken > 0) {
        queue_.ring();
        last = at;
      } else if (at - last > kSilenceMax) {
        return fail(Errc::kTimedOut, "the controller completes nothing");
      }
    }
    if (failed_) return fail(Errc::kIo, "a command of the guest failed");
    return {};
  }
  void submit_some(uint32_t slot, Time at) {
    const bool reads = rng_.bernoulli(load_.read_share);
    submit(slot, at, reads ? nvme::IoOpcode::kRead : nvme::IoOpcode::kWrite, rng_.below(places()));
  }
  uint64_t places() const { return load_.size / load_.request_size; }
  DriverMemory room(uint32_t slot) const {
    return data_.part(slot * slot_room(load_), slot_room(load_));
  }
  void submit(uint32_t slot, Time at, nvme::IoOpcode opcode, uint64_t place) {
    const uint64_t blocks = load_.request_size / kPage;
    const DriverMemory room = this->room(slot);
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(opcode);
    sqe.nsid = 1;
    sqe.cid = static_cast<uint16_t>(slot);
    nvme::BlockFields{.start = Lba(place * blocks), .blocks = static_cast<uint32_t>(blocks)}.encode(
        sqe);
    Driver::point(sqe, room.address, load_.request_size, room.part(load_.request_size, kPage));
    sent_at_[slot] = at;
    queue_.submit(sqe);
    ++in_flight_;
  }

  DriverQueue& queue_;
  DriverMemory data_;
  const GuestLoad& load_;
  Rng rng_;
  std::vector<Time> sent_at_;
  uint64_t filled_ = 0;  // places
  uint32_t in_flight_ = 0;
  bool failed_ = false;
  GuestResult result_;
};

task::Task<void> run_into(env::Env& env, const GuestLoad& load, Result<GuestResult>& into) {
  into = co_await run_guest_load(env, load);
}

// Whoever was there before may not have been put away yet.
task::Task<Result<std::unique_ptr<Client>>> connect(env::Env& env, env::Address at) {
  const Time limit = env.now() + kConnectMax;
  for (;;) {
    Result<std::unique_ptr<Client>> client = co_await Client::connect(env, at);
    if (client || env.now() > limit) co_return client;
    const Result<void> waited = co_await task::sleep_for(env, 1_ms);
    if (!waited) co_return fail(waited.error());
  }
}

}  // namespace

task::Task<Result<GuestResult>> run_guest_load(env::Env& env, GuestLoad load) {
  const Result<std::unique_ptr<Client>> client = co_await connect(env, load.at);
  if (!client) co_return fail(client.error());
  env::Sharing& sharing = (*client)->sharing();
  const uint64_t size = kQueueRoom + load.depth * slot_room(load);
  const Result<env::Descriptor> descriptor = sharing.make_shared_memory(size);
  if (!descriptor) co_return fail(descriptor.error());
  const auto memory = sharing.map_shared(*descriptor, {.size = size});
  if (!memory) co_return fail(memory.error());
  Result<void> done = co_await (*client)->map(kBase, *descriptor, {.size = size});
  if (!done) co_return fail(done.error());
  ClientAccess access(**client);
  Driver driver(env, access, {.bytes = (*memory)->bytes(), .address = kBase},
                {.entries = 1024, .interrupts = false});
  done = co_await driver.start();
  if (!done) co_return fail(done.error());
  Spinner spinner(driver, load);
  const Result<void> filled = spinner.fill();
  Result<GuestResult> result = filled ? spinner.run() : fail(filled.error());
  done = co_await driver.stop();
  if (!done && result) result = fail(done.error());
  done = co_await access.close();
  if (!done && result) result = fail(done.error());
  co_return result;
}

Result<GuestResult> run_guest_load_on(const WorldFactory& factory, int cpu, const GuestLoad& load) {
  Result<std::unique_ptr<env::World>> world = factory({.cpus = {cpu}});
  if (!world) return fail(world.error());
  Result<GuestResult> result = fail(Errc::kIo, "the guest did nothing");
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return run_into(env, load, result); });
  if (!ran) return fail(ran.error());
  return result;
}

}  // namespace cairn::bench
