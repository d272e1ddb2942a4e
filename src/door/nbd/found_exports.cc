// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/found_exports.h"

#include <utility>

#include "base/check.h"
#include "env/call.h"

namespace cairn::door::nbd {

task::Task<Result<SharedExport*>> FoundExports::enter(env::Env& from, std::string name) {
  if (finder_ == nullptr) co_return fail(Errc::kNotFound, "no export of that name");
  Result<SharedExport*> entered = co_await env::call_on(
      from, env_.core(), [this, &name](env::Env&) { return enter_here(std::move(name)); });
  co_return entered;
}

task::Task<void> FoundExports::leave(env::Env& from, SharedExport& found) {
  co_await env::call_on(from, env_.core(), [this, &found](env::Env&) { return leave_here(found); });
}

task::Task<Result<SharedExport*>> FoundExports::enter_here(std::string name) {
  const Result<void> mine = co_await turn_.acquire();
  CHECK(mine.has_value());
  const task::Units turn(turn_, 1);
  if (const auto known = found_.find(name); known != found_.end()) {
    ++known->second.users;
    co_return known->second.shared.get();
  }
  Result<ExportOptions> options = co_await finder_->find(name);
  if (!options) co_return fail(options.error());
  options->name = name;
  Found& found = found_[name];
  found.shared = std::make_unique<SharedExport>(std::move(*options), env_.core_count());
  found.users = 1;
  co_return found.shared.get();
}

task::Task<void> FoundExports::leave_here(SharedExport& shared) {
  const Result<void> mine = co_await turn_.acquire();
  CHECK(mine.has_value());
  const task::Units turn(turn_, 1);
  const auto found = found_.find(shared.options.name);
  CHECK(found != found_.end() && found->second.shared.get() == &shared);
  if (--found->second.users > 0) co_return;
  co_await finder_->give_back(*shared.options.source);
  found_.erase(found);
}

task::Task<Result<Export*>> Visit::find(std::string name) {
  const Result<Export*> known = exports_.find(name);
  if (known) known_ = exports_.find_shared(name);
  if (known || known.error() != Errc::kNotFound) co_return known;
  if (shared_ != nullptr && shared_->options.name == name) co_return export_.get();
  co_await leave();
  const Result<SharedExport*> entered = co_await found_.enter(env_, std::move(name));
  if (!entered) co_return fail(entered.error());
  shared_ = *entered;
  Result<std::unique_ptr<drive::Drive>> drive = shared_->options.source->open(env_);
  if (!drive) {
    co_await leave();
    co_return fail(drive.error());
  }
  export_ = std::make_unique<Export>(env_, shared_->options, shared_->ranges, std::move(*drive));
  co_return export_.get();
}

task::Task<void> Visit::leave() {
  known_ = nullptr;
  if (export_ != nullptr) co_await export_->drive().close();
  export_.reset();
  if (SharedExport* shared = std::exchange(shared_, nullptr); shared != nullptr) {
    co_await found_.leave(env_, *shared);
  }
}

}  // namespace cairn::door::nbd
