// SPDX-License-Identifier: Apache-2.0
#include "service/common/joint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::drive {

namespace {

constexpr Error kNoLayer(Errc::kClosed,
                         "a change of the stack failed, and what was there did not open again: "
                         "edit the stack");

struct ViewLayer {
  OpenLayer own;
};

// A drive that a layer shows beside itself: until it is closed, the layer stays.
class View final : private ViewLayer, public Joint {
 public:
  View(env::Env& env, std::unique_ptr<Drive> drive, OpenLayer& of)
      : ViewLayer{{.drive = std::move(drive)}}, Joint(env, own), of_(of) {
    ++of_.views;
  }
  ~View() override { let_go(); }
  // Whoever closed it may keep it longer than the layer is there.
  task::Task<void> close() override {
    co_await own.drive->close();
    let_go();
  }

 private:
  void let_go() {
    if (own.drive == nullptr) return;
    own.drive.reset();
    --of_.views;
  }

  OpenLayer& of_;
};

}  // namespace

Joint::Joint(env::Env& env, OpenLayer& layer)
    : env_(env), layer_(&layer), shape_(layer.drive->geometry()) {
  layer.joint = this;
  released_.set();
}

Joint::~Joint() {
  CHECK(in_flight_ == 0 && waiting_.empty(), "a joint is idle when it is destroyed");
  if (layer_ != nullptr && layer_->joint == this) layer_->joint = nullptr;
}

const Geometry& Joint::geometry() const {
  if (layer_ == nullptr) return shape_;
  const uint32_t transfer_blocks = shape_.transfer_blocks;
  shape_ = layer_->drive->geometry();
  shape_.transfer_blocks = std::min(shape_.transfer_blocks, transfer_blocks);
  return shape_;
}

Extent Joint::extent_at(Lba lba, uint64_t max) const {
  return layer_ == nullptr ? Extent{.blocks = max} : layer_->drive->extent_at(lba, max);
}

std::vector<Fact> Joint::facts() const {
  return layer_ == nullptr ? std::vector<Fact>() : layer_->drive->facts();
}
std::vector<Concern> Joint::concerns() const {
  return layer_ == nullptr ? std::vector<Concern>() : layer_->drive->concerns();
}
std::vector<Job> Joint::jobs() const {
  return layer_ == nullptr ? std::vector<Job>() : layer_->drive->jobs();
}
Incarnation Joint::incarnation() const {
  return layer_ == nullptr ? Incarnation() : layer_->drive->incarnation();
}

task::Task<std::expected<std::string, std::string>> Joint::tell(std::vector<std::string> args) {
  const Result<void> entered = co_await enter();
  if (!entered) co_return std::unexpected(entered.error().text());
  std::expected<std::string, std::string> told = co_await layer_->drive->tell(std::move(args));
  leave();
  co_return told;
}

Result<std::unique_ptr<Drive>> Joint::open_view(std::string_view name) {
  if (is_held_) return fail(Errc::kLimit, "the stack is just being changed: try again");
  if (layer_ == nullptr) return fail(kNoLayer);
  Result<std::unique_ptr<Drive>> view = layer_->drive->open_view(name);
  if (!view) return view;
  return std::make_unique<View>(env_, std::move(*view), *layer_);
}

task::Task<Result<void>> Joint::resize(uint64_t blocks) {
  const Result<void> entered = co_await enter();
  if (!entered) co_return entered;
  const Result<void> resized = co_await layer_->drive->resize(blocks);
  leave();
  co_return resized;
}

task::Task<Result<void>> Joint::enter() {
  while (is_held_) {
    const Result<void> waited = co_await released_.wait();
    if (!waited) co_return waited;
  }
  if (layer_ == nullptr) co_return fail(kNoLayer);
  ++in_flight_;
  co_return Result<void>();
}

void Joint::leave() {
  if (--in_flight_ == 0 && is_held_) idle_.set();
}

void Joint::start(DriveOp& op) {
  if (is_held_) return waiting_.push_back(op);
  pass(op);
}

void Joint::cancel(DriveOp& op) {
  ListHook<DriveOp>& hook = op;
  if (!hook.is_linked()) return;
  hook.unlink();
  op.complete(op.cancelled());
}

void Joint::pass(DriveOp& op) {
  if (layer_ == nullptr) return op.complete(fail(kNoLayer));
  if (op.request.kind == Request::Kind::kFlush && std::exchange(owes_failed_flush_, false)) {
    return op.complete(fail(Errc::kIo, "an earlier flush failed: writes before it may be lost"));
  }
  ++in_flight_;
  const bool is_counted = layer_->is_counted;
  if (is_counted) layer_->figures.begun();
  if (!hand_on(op, *layer_->drive, *this, is_counted ? env_.now() : Time())) gate_.spawn(run(op));
}

void Joint::count(const Request& request, const Result<void>& done, Time begun) {
  const Time now = env_.now();
  layer_->figures.done(request, request.blocks * shape_.block_size, done, now - begun, now);
}

void Joint::relayed(DriveOp& op, const Result<void>& done) {
  if (layer_->is_counted) count(op.request, done, op.handed_on());
  leave();
}

// Somebody above is told of this operation already, so another one goes below.
task::Task<void> Joint::run(DriveOp& op) {
  const Time begun = env_.now();
  const Result<void> done =
      co_await layer_->drive->submit(op.request, op.data(), op.second(), op.token());
  if (layer_->is_counted) count(op.request, done, begun);
  leave();
  op.complete(done);
}

bool Joint::run_now(const Request& request, std::span<const MutableBytes> data,
                    Result<void>& done) {
  if (is_held_ || layer_ == nullptr) return false;
  const std::optional<Result<void>> ran = layer_->drive->try_now(request, data);
  if (!ran) return false;
  done = *ran;
  if (layer_->is_counted) {
    layer_->figures.done_at_once(request, request.blocks * shape_.block_size, done, env_.now());
  }
  return true;
}

Bytes Joint::lend_now(Lba lba, uint64_t blocks) const {
  if (is_held_ || layer_ == nullptr) return {};
  const Bytes lent = layer_->drive->lend(lba, blocks);
  if (lent.empty()) return lent;
  layer_->has_lent = true;
  if (!layer_->is_counted) return lent;
  layer_->figures.done_at_once({.kind = Request::Kind::kRead, .lba = lba, .blocks = blocks},
                               lent.size(), {}, env_.now());
  return lent;
}

task::Task<Result<void>> Joint::hold(task::CancelToken token) {
  CHECK(!is_held_, "a joint is held once");
  is_held_ = true;
  released_.reset();
  idle_.reset();
  if (in_flight_ == 0) co_return Result<void>();
  const Result<void> waited = co_await idle_.wait(token);
  if (!waited) release();
  co_return waited;
}

void Joint::lead_to(OpenLayer* layer) {
  CHECK(is_held_ && in_flight_ == 0, "the layer is exchanged when nothing is in flight");
  if (layer_ != nullptr && layer_->joint == this) layer_->joint = nullptr;
  layer_ = layer;
  if (layer_ != nullptr) layer_->joint = this;
}

void Joint::release() {
  is_held_ = false;
  released_.set();
  // Those that go on may complete at once and bring more: only what has waited till now goes first.
  while (DriveOp* op = waiting_.pop_front()) pass(*op);
}

const Drive& without_joint(const Drive& drive) {
  const auto* joint = dynamic_cast<const Joint*>(&drive);
  return joint == nullptr || joint->layer() == nullptr ? drive : without_joint(*joint->layer());
}

}  // namespace cairn::drive
