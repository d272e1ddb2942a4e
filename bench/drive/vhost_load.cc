// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vhost_load.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "bench/workload.h"
#include "door/vhost_user/driver.h"
#include "env/sharing.h"
#include "task/gate.h"

namespace cairn::bench {

namespace {

using door::vhost_user::BlkStatus;
using door::vhost_user::Driver;

constexpr uint64_t kSector = 512;

// One task per outstanding request; they share the result.
class VhostUser {
 public:
  VhostUser(Driver& driver, const VhostLoad& load)
      : driver_(driver), load_(load), rng_(load.seed), begin_(now()) {}

  task::Task<void> ask_again_and_again() {
    std::vector<std::byte> data(load_.request_size);
    store(MutableBytes(data), rng_.next());
    while (goes_on_) {
      const uint64_t sector = next_place() / kSector;
      const Time sent = now();
      Result<BlkStatus> status = BlkStatus::kOk;
      if (rng_.bernoulli(load_.read_share)) {
        status = co_await driver_.read(sector, data, {});
      } else {
        status = co_await driver_.write(sector, data, {});
      }
      const Time answered = now();
      if (!status || *status != BlkStatus::kOk) {
        failed_ = true;
        goes_on_ = false;
        co_return;
      }
      ++result_.requests;
      last_ = answered;
      result_.latency_ns.record(static_cast<uint64_t>((answered - sent).ns));
      if (answered - begin_ >= load_.duration) goes_on_ = false;
      if (load_.on_answer && !load_.on_answer(answered)) goes_on_ = false;
    }
  }

  Result<VhostLoadResult> result() {
    if (failed_) return fail(Errc::kIo, "a request over vhost-user failed");
    result_.per_second = static_cast<double>(result_.requests) / (last_ - begin_).seconds();
    return std::move(result_);
  }

 private:
  uint64_t next_place() {
    const uint64_t places = load_.size / load_.request_size;
    return (load_.sequential ? next_++ % places : rng_.below(places)) * load_.request_size;
  }

  Driver& driver_;
  const VhostLoad& load_;
  Rng rng_;
  const Time begin_;
  Time last_;
  uint64_t next_ = 0;
  bool goes_on_ = true;
  bool failed_ = false;
  VhostLoadResult result_;
};

task::Task<void> run_into(env::Env& env, const VhostLoad& load, Result<VhostLoadResult>& into) {
  into = co_await run_vhost_load(env, load);
}

}  // namespace

task::Task<Result<VhostLoadResult>> run_vhost_load(env::Env& env, VhostLoad load) {
  env::Sharing* sharing = env::sharing(env);
  if (sharing == nullptr) co_return fail(Errc::kUnsupported, "this world shares no memory");
  // What others than ours do not have, all do without.
  Driver driver(env, *sharing,
                {.has_inflight = false, .depth = load.depth, .request_max = load.request_size});
  if (const Result<void> ready = driver.prepare(); !ready) {
    co_await driver.close();
    co_return fail(ready.error());
  }
  const Result<void> connected = co_await driver.connect(load.at, {});
  if (!connected) {
    co_await driver.close();
    co_return fail(connected.error());
  }
  if (load.watch.begins) load.watch.begins();
  VhostUser user(driver, load);
  task::Gate gate;
  for (uint32_t i = 0; i < load.depth; ++i) gate.spawn(user.ask_again_and_again());
  co_await gate.close();
  if (load.watch.ended) load.watch.ended();
  const Result<void> left = co_await driver.leave({});
  co_await driver.close();
  if (!left) co_return fail(left.error());
  co_return user.result();
}

Result<VhostLoadResult> run_vhost_load_on(const WorldFactory& factory, int cpu,
                                          const VhostLoad& load) {
  Result<std::unique_ptr<env::World>> world = factory({.cpus = {cpu}});
  if (!world) return fail(world.error());
  Result<VhostLoadResult> result = fail(Errc::kIo, "the load did not begin");
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return run_into(env, load, result); });
  if (!ran) return fail(ran.error());
  return result;
}

}  // namespace cairn::bench
