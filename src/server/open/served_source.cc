// SPDX-License-Identifier: Apache-2.0
#include "server/open/served_source.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "env/call.h"
#include "nvme/controller/every_core.h"
#include "service/common/joint.h"

namespace cairn::server {

namespace {

struct HandleLayer {
  drive::OpenLayer own;
};

}  // namespace

// What a door has of a single drive.
class ServedSource::Handle final : private HandleLayer, public drive::Joint {
 public:
  Handle(env::Env& env, std::unique_ptr<drive::Drive> drive, Core& of)
      : HandleLayer{{.drive = std::move(drive), .is_counted = false}}, Joint(env, own), of_(of) {
    of_.handles.push_back(this);
  }
  ~Handle() override { std::erase(of_.handles, this); }

  // An exchange waits for it as for a request, and it for an exchange: so neither is there for the
  // other half.
  task::Task<void> close() override {
    Result<void> entered = co_await enter();
    CHECK(entered, "a handle leads somewhere");
    co_await own.drive->close();
    own.drive.reset();
    leave();
    while (is_held()) {
      entered = co_await enter();
      CHECK(entered, "a handle leads somewhere");
      leave();
    }
    std::erase(of_.handles, this);
  }

  task::Task<drive::Extent> ask_extent(env::Env& env, Lba lba, uint64_t max) {
    const Result<void> entered = co_await enter();
    CHECK(entered, "a handle leads somewhere");
    const drive::Extent extent = co_await of_.source->extent_at(env, *own.drive, lba, max);
    leave();
    co_return extent;
  }

  // While it is held.
  bool is_closed() const { return own.drive == nullptr; }
  task::Task<Result<void>> flush_layer() {
    const Result<void> flushed = co_await own.drive->flush();
    if (!flushed) owe_failed_flush();
    co_return flushed;
  }
  // Gives the one that it had.
  std::unique_ptr<drive::Drive> exchange(std::unique_ptr<drive::Drive> drive) {
    lead_to(nullptr);
    std::swap(own.drive, drive);
    lead_to(&own);
    return drive;
  }

 private:
  Core& of_;
};

task::Task<void> ServedSource::fill(env::Env& env, std::unique_ptr<drive::Source> source) {
  CHECK(source_ == nullptr && stack_ == nullptr, "a drive is opened once");
  home_ = env.core();
  drive::Source* const opened = source.get();
  const bool is_stack = dynamic_cast<StackSource*>(opened) != nullptr;
  if (is_stack) {
    stack_.reset(static_cast<StackSource*>(source.release()));
  } else {
    source_ = std::move(source);
  }
  co_await nvme::on_every_core(env, [this, opened, is_stack](env::Env& there) {
    on(there).source = opened;
    on(there).has_handles = !is_stack;
  });
}

Result<std::unique_ptr<drive::Drive>> ServedSource::open(env::Env& env) {
  Core& here = on(env);
  if (here.source == nullptr) {
    return fail(Errc::kUnreachable, "the drive could not be opened: 'cairn drive show' says why");
  }
  Result<std::unique_ptr<drive::Drive>> drive = here.source->open(env);
  if (!drive || !here.has_handles) return drive;
  auto handle = std::make_unique<Handle>(env, std::move(*drive), here);
  if (here.is_held) {
    const task::Task<Result<void>> held = handle->hold({});
    CHECK(held.is_done(), "nothing has come to it yet");
  }
  return handle;
}

task::Task<void> ServedSource::close(env::Env& env) {
  if (stack_ != nullptr) co_await stack_->close(env);
  if (source_ != nullptr) co_await source_->close(env);
}

task::Task<drive::Extent> ServedSource::extent_at(env::Env& env, const drive::Drive& opened,
                                                  Lba lba, uint64_t max) {
  Core& here = on(env);
  const auto handle =
      std::ranges::find_if(here.handles, [&opened](const Handle* each) { return each == &opened; });
  if (handle != here.handles.end()) return (*handle)->ask_extent(env, lba, max);
  return here.source->extent_at(env, opened, lba, max);
}

std::vector<env::Disk::Extent> ServedSource::data() const {
  return source_ == nullptr ? std::vector<env::Disk::Extent>() : source_->data();
}

const drive::ModelledMedium* ServedSource::modelled() const {
  return source_ == nullptr ? nullptr : source_->modelled();
}

task::Task<Attempt<void>> ServedSource::become_stack(env::Env& env, CoreId home,
                                                     std::unique_ptr<StackPlan> plan) {
  CHECK(source_ != nullptr && stack_ == nullptr, "a single drive becomes a stack");
  plan->borrow(*source_, *this);
  Attempt<std::unique_ptr<StackSource>> stack = co_await StackSource::open_on(
      env, home, std::move(plan), drive::SharedDrive::Opening::kOfDrive);
  if (!stack) co_return std::unexpected(stack.error());
  const Result<bool> led = co_await exchange(env, **stack);
  if (!led) {
    co_await close_stack(env, **stack);
    co_return refuse(led.error().text());
  }
  stack_ = std::move(*stack);
  has_lent_ = has_lent_ || *led;
  if (has_lent_) co_await stack_->note_lent(env);
  co_return Attempt<void>();
}

task::Task<void> ServedSource::become_single(env::Env& env) {
  CHECK(is_single_below(), "it was a single drive");
  const StackSource::Borrowed borrowed = co_await stack_->borrowed(env);
  if (!borrowed.is_alone) co_return;
  has_lent_ = has_lent_ || borrowed.has_lent;
  const Result<bool> led = co_await exchange(env, *source_);
  if (!led) co_return;
  co_await close_stack(env, *stack_);
  stack_.reset();
}

task::Task<void> ServedSource::close_stack(env::Env& env, StackSource& stack) {
  keeps_source_ = true;
  co_await stack.close(env);
  keeps_source_ = false;
}

task::Task<Result<bool>> ServedSource::exchange(env::Env& env, drive::Source& to) {
  drive::Source& from = *on(env).source;
  Result<bool> outcome = false;
  const std::vector<Result<void>> held =
      co_await nvme::on_every_core(env, [this](env::Env& there) { return hold(there); });
  for (const Result<void>& each : held) {
    if (!each) outcome = fail(each.error());
  }
  if (outcome) {
    const std::vector<Result<bool>> led = co_await nvme::on_every_core(
        env, [this, &to](env::Env& there) { return lead_to(there, to); });
    for (const Result<bool>& each : led) {
      if (!each) outcome = fail(each.error());
      if (outcome) outcome = *outcome || *each;
    }
    if (!outcome) {
      // Only of single drives opening can fail, so this is back to the stack.
      const std::vector<Result<bool>> back = co_await nvme::on_every_core(
          env, [this, &from](env::Env& there) { return lead_to(there, from); });
      for (const Result<bool>& each : back) CHECK(each, "a stack is open for every core");
    }
  }
  co_await nvme::on_every_core(env, [this](env::Env& there) { release(there); });
  co_return outcome;
}

// Whoever opens it meanwhile gets what is held; whoever closes it waits.
task::Task<Result<void>> ServedSource::hold(env::Env& there) {
  Core& here = on(there);
  here.is_held = true;
  Result<void> outcome;
  for (size_t i = 0; i < here.handles.size(); ++i) {
    Handle& handle = *here.handles[i];
    if (handle.is_held()) continue;
    const Result<void> held = co_await handle.hold({});
    CHECK(held, "nobody ends this wait");
    if (handle.is_closed()) continue;
    const Result<void> flushed = co_await handle.flush_layer();
    if (!flushed) outcome = flushed;
  }
  co_return outcome;
}

task::Task<Result<bool>> ServedSource::lead_to(env::Env& there, drive::Source& to) {
  Core& here = on(there);
  if (here.source == &to) co_return false;
  std::vector<std::unique_ptr<drive::Drive>> drives;
  for (const Handle* handle : here.handles) {
    if (handle->is_closed()) continue;
    Result<std::unique_ptr<drive::Drive>> drive = to.open(there);
    if (!drive) {
      for (const auto& opened : drives) co_await opened->close();
      co_return fail(drive.error());
    }
    drives.push_back(std::move(*drive));
  }
  bool has_lent = false;
  size_t next = 0;
  for (Handle* handle : here.handles) {
    if (handle->is_closed()) continue;
    has_lent = has_lent || handle->has_lent();
    drives[next] = handle->exchange(std::move(drives[next]));
    ++next;
  }
  here.source = &to;
  for (const auto& left : drives) co_await left->close();
  co_return has_lent;
}

void ServedSource::release(env::Env& there) {
  Core& here = on(there);
  here.is_held = false;
  for (size_t i = 0; i < here.handles.size(); ++i) here.handles[i]->release();
}

void ServedSource::returned(env::Env& there) {
  returned_.to = this;
  there.post(home_, returned_);
}

void ServedSource::returned_home(env::Message& message, env::Env&) {
  ServedSource& self = *static_cast<Returned&>(message).to;
  if (!self.keeps_source_) self.source_.reset();
}

}  // namespace cairn::server
