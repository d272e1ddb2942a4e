// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/runtime.h"

#include <utility>
#include <vector>

#include "base/list.h"
#include "service/common/service_drive.h"
#include "task/deadline.h"
#include "task/sync.h"

namespace cairn::bench::leapio {

namespace {

// A command that waits until the core has it in hand, on either of its ways.
struct Turn : ListHook<> {
  task::Event taken;
};

class RuntimeDrive final : public drive::ServiceDrive {
 public:
  RuntimeDrive(env::Env& env, std::vector<std::unique_ptr<drive::Drive>> below,
               const RuntimeCosts& costs)
      : ServiceDrive(std::move(below)), env_(env), costs_(costs) {
    geometry_ = this->below().geometry();
    core_.spawn(poll());
  }

  task::Task<void> close() override {
    stop_.request();
    co_await core_.close();
    co_await ServiceDrive::close();
  }

 private:
  task::Task<Result<void>> run(drive::DriveOp& op) override {
    ++in_flight_;
    co_await turn(submitted_);
    const Result<void> done =
        co_await below().submit(op.request, op.data(), op.second(), op.token());
    co_await turn(ended_);
    --in_flight_;
    co_return done;
  }
  task::Task<void> turn(List<Turn>& queue) {
    Turn turn;
    queue.push_back(turn);
    work_.set();
    // Nobody cancels this: the core takes all that is there.
    (void)co_await turn.taken.wait();
  }

  task::Task<void> poll() {
    while (!stop_.requested()) {
      if (may_rest()) {
        const Time idle_from = env_.now();
        work_.reset();
        const Result<void> woken = co_await work_.wait(stop_.token());
        if (!woken) co_return;
        co_await end_empty_round(idle_from);
      }
      co_await visit(submitted_, costs_.submit);
      co_await visit(ended_, costs_.complete);
    }
  }
  // Empty looks need not be played while nothing can come of them, or while they cost nothing.
  bool may_rest() const {
    return submitted_.empty() && ended_.empty() && (in_flight_ == 0 || costs_.access.ns == 0);
  }
  // An idle core goes on looking at both queues: what comes waits until it has looked at them.
  task::Task<void> end_empty_round(Time idle_from) {
    const int64_t round = 2 * costs_.access.ns;
    if (round == 0) co_return;
    const int64_t gone = (env_.now() - idle_from).ns % round;
    co_await spend(Duration{round - gone});
  }

  // Looks at a queue, and carries what is there on to the next, which is written to once.
  task::Task<void> visit(List<Turn>& queue, Duration each) {
    if (costs_.access.ns > 0) co_await spend(costs_.access);
    List<Turn> batch;
    while (Turn* turn = queue.pop_front()) batch.push_back(*turn);
    if (batch.empty()) co_return;
    List<Turn> carried;
    while (Turn* turn = batch.pop_front()) {
      co_await spend(each);
      if (costs_.access.ns == 0) {
        turn->taken.set();
      } else {
        carried.push_back(*turn);
      }
    }
    if (carried.empty()) co_return;
    co_await spend(costs_.access);
    while (Turn* turn = carried.pop_front()) turn->taken.set();
  }
  task::Task<void> spend(Duration time) { (void)co_await task::sleep_for(env_, time); }

  env::Env& env_;
  const RuntimeCosts costs_;
  List<Turn> submitted_;
  List<Turn> ended_;
  uint64_t in_flight_ = 0;
  task::Event work_;
  task::CancelSource stop_;
  task::Gate core_;
};

class RuntimeSource final : public drive::Source {
 public:
  RuntimeSource(std::unique_ptr<drive::Source> source, const RuntimeCosts& costs)
      : source_(std::move(source)), costs_(costs) {}

  Result<std::unique_ptr<drive::Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<drive::Drive>> below = source_->open(env);
    if (!below) return fail(below.error());
    return with_runtime(env, std::move(*below), costs_);
  }
  task::Task<void> close(env::Env& env) override { return source_->close(env); }

 private:
  std::unique_ptr<drive::Source> source_;
  const RuntimeCosts costs_;
};

}  // namespace

std::unique_ptr<drive::Drive> with_runtime(env::Env& env, std::unique_ptr<drive::Drive> below,
                                           const RuntimeCosts& costs) {
  std::vector<std::unique_ptr<drive::Drive>> all;
  all.push_back(std::move(below));
  return std::make_unique<RuntimeDrive>(env, std::move(all), costs);
}

std::unique_ptr<drive::Source> with_runtime(std::unique_ptr<drive::Source> source,
                                            const RuntimeCosts& costs) {
  return std::make_unique<RuntimeSource>(std::move(source), costs);
}

}  // namespace cairn::bench::leapio
