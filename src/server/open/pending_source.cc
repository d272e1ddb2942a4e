// SPDX-License-Identifier: Apache-2.0
#include "server/open/pending_source.h"

#include <utility>

#include "base/check.h"
#include "env/call.h"

namespace cairn::server {

task::Task<void> PendingSource::fill(env::Env& env, std::unique_ptr<drive::Source> source) {
  CHECK(source_ == nullptr, "a drive is opened once");
  source_ = std::move(source);
  drive::Source* const opened = source_.get();
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    co_await env::call_on(env, CoreId(core), [this, opened](env::Env& there) {
      there_[there.core().value()] = opened;
    });
  }
}

Result<std::unique_ptr<drive::Drive>> PendingSource::open(env::Env& env) {
  drive::Source* const source = there_[env.core().value()];
  if (source == nullptr) {
    return fail(Errc::kUnreachable, "the drive could not be opened: 'cairn drive show' says why");
  }
  return source->open(env);
}

task::Task<void> PendingSource::close(env::Env& env) {
  if (source_ != nullptr) co_await source_->close(env);
}

task::Task<drive::Extent> PendingSource::extent_at(env::Env& env, const drive::Drive& opened,
                                                   Lba lba, uint64_t max) {
  return there_[env.core().value()]->extent_at(env, opened, lba, max);
}

std::vector<env::Disk::Extent> PendingSource::data() const {
  return source_ == nullptr ? std::vector<env::Disk::Extent>() : source_->data();
}

const drive::ModelledMedium* PendingSource::modelled() const {
  return source_ == nullptr ? nullptr : source_->modelled();
}

}  // namespace cairn::server
