// SPDX-License-Identifier: Apache-2.0
// Exports that are there because somebody asks for their name, such as versions of a drive: opened
// for the first client, shared by all that name it, closed when the last one has left.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "door/common/export.h"
#include "door/common/exports.h"
#include "drive/source.h"
#include "env/env.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::nbd {

// Who knows of more than a server was told. Used on the server's core; outlives the server.
class ExportFinder {
 public:
  // A source for clients of that name, which stays until it is given back. kNotFound: there is
  // nothing of that name; other errors: it cannot be used now.
  virtual task::Task<Result<ExportOptions>> find(std::string name) = 0;
  virtual task::Task<void> give_back(drive::Source& source) = 0;

 protected:
  ~ExportFinder() = default;
};

// What was found and is in use. Called on any core; lives on the server's.
class FoundExports {
 public:
  FoundExports(env::Env& env, ExportFinder* finder) : env_(env), finder_(finder) {}

  // The export stays until leave(), once for each enter(). Errors as ExportFinder::find.
  task::Task<Result<SharedExport*>> enter(env::Env& from, std::string name);
  task::Task<void> leave(env::Env& from, SharedExport& found);

 private:
  struct Found {
    std::unique_ptr<SharedExport> shared;
    size_t users = 0;
  };
  task::Task<Result<SharedExport*>> enter_here(std::string name);
  task::Task<void> leave_here(SharedExport& found);

  env::Env& env_;
  ExportFinder* finder_;  // null: nothing is ever found
  task::Semaphore turn_{1};
  std::map<std::string, Found> found_;
};

// What one connection chooses from, on its core: the server's exports and those that are found.
class Visit {
 public:
  Visit(env::Env& env, CoreExports& exports, FoundExports& found)
      : env_(env), exports_(exports), found_(found) {}

  const std::vector<SharedExport*>& all() const { return exports_.all(); }
  bool has(std::string_view name) const { return exports_.find_shared(name) != nullptr; }
  // Whether it has found this one, of the server's own, and not left since.
  bool uses(const SharedExport& shared) const { return known_ == &shared; }
  // It stays until leave(), or until another name is found. kNotFound; or why it cannot be used.
  task::Task<Result<Export*>> find(std::string name);
  // Before it is destroyed, when nobody uses what it found.
  task::Task<void> leave();

 private:
  env::Env& env_;
  CoreExports& exports_;
  FoundExports& found_;
  const SharedExport* known_ = nullptr;  // of the server's own, that was found
  SharedExport* shared_ = nullptr;       // what was entered
  std::unique_ptr<Export> export_;
};

}  // namespace cairn::door::nbd
