// SPDX-License-Identifier: Apache-2.0
// What a server serves, by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "door/common/export.h"
#include "drive/shared_ranges.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::door {

// An export as all cores share it.
struct SharedExport {
  SharedExport(ExportOptions its, uint32_t cores) : options(std::move(its)), ranges(cores) {}
  // The drive is about to be served at another door: done when nobody writes a part of a block any
  // more who does not know. From any core.
  task::Task<void> expect_other_writers(env::Env& env);

  ExportOptions options;
  drive::SharedRanges ranges;
};

// The exports as one core serves them: a drive is opened there when the first client asks for it.
class CoreExports {
 public:
  explicit CoreExports(env::Env& env) : env_(env) {}

  // An export outlives this, or is removed.
  void add(SharedExport& shared) { all_.push_back(&shared); }
  // New clients do not find it any more; present ones continue.
  void hide(const SharedExport& shared) { std::erase(all_, &shared); }
  // Closes its drive, which nobody uses any more.
  task::Task<void> close(const SharedExport& shared);

  const std::vector<SharedExport*>& all() const { return all_; }
  // Null: there is none of that name. The empty one is that of the first.
  SharedExport* find_shared(std::string_view name) const;
  // kNotFound; or errors as Source::open.
  Result<Export*> find(std::string_view name);
  // Makes the open drive so large. Nothing happens where it is not open.
  task::Task<Result<void>> resize(std::string_view name, uint64_t blocks);
  // Closes the drives; nobody uses them any more.
  task::Task<void> close();

 private:
  env::Env& env_;
  std::vector<SharedExport*> all_;
  std::map<const SharedExport*, std::unique_ptr<Export>> open_;
};

}  // namespace cairn::door
