// SPDX-License-Identifier: Apache-2.0
#include "door/common/exports.h"

#include <utility>

namespace cairn::door {

// Whoever writes a part of a block holds it alone while it looks at the option: that is nobody,
// on any core, while the whole drive is held alone.
task::Task<void> SharedExport::expect_other_writers(env::Env& env) {
  constexpr uint64_t kEverything = uint64_t{1} << 62;
  drive::SharedRanges::Alone alone(ranges, 0, kEverything);
  co_await alone.enter(env);
  options.has_other_writers = true;
  co_await alone.leave(env);
}

SharedExport* CoreExports::find_shared(std::string_view name) const {
  if (name.empty() && !all_.empty()) return all_.front();
  for (SharedExport* each : all_) {
    if (each->options.name == name) return each;
  }
  return nullptr;
}

Result<Export*> CoreExports::find(std::string_view name) {
  SharedExport* shared = find_shared(name);
  if (shared == nullptr) return fail(Errc::kNotFound, "no export of that name");
  std::unique_ptr<Export>& mine = open_[shared];
  if (mine == nullptr) {
    Result<std::unique_ptr<drive::Drive>> drive = shared->options.source->open(env_);
    if (!drive) return fail(drive.error());
    mine = std::make_unique<Export>(env_, shared->options, shared->ranges, std::move(*drive));
  }
  return mine.get();
}

task::Task<Result<void>> CoreExports::resize(std::string_view name, uint64_t blocks) {
  const auto mine = open_.find(find_shared(name));
  if (mine == open_.end() || mine->second == nullptr) co_return Result<void>{};
  const Result<void> done = co_await mine->second->drive().resize(blocks);
  co_return done;
}

task::Task<void> CoreExports::close(const SharedExport& shared) {
  auto node = open_.extract(&shared);
  if (!node.empty() && node.mapped() != nullptr) co_await node.mapped()->drive().close();
}

task::Task<void> CoreExports::close() {
  for (auto& [shared, mine] : open_) {
    if (mine != nullptr) co_await mine->drive().close();
  }
  open_.clear();
}

}  // namespace cairn::door
