// SPDX-License-Identifier: Apache-2.0
// StateFolder: where a server keeps, in files, what must survive its restart.
#pragma once

#include <string>

#include "base/problem.h"
#include "server/config/changes.h"

namespace cairn::server {

// DIR/changes.toml is replaced as a whole: written beside, made durable, renamed. Saving blocks the
// caller for as long as the disk takes; it is done when a person changes something.
class StateFolder {
 public:
  // Makes the folder if need be and keeps it for this process alone until destruction. The Problem
  // names the folder and says what to do.
  static Attempt<StateFolder> open(std::string path);
  StateFolder(StateFolder&& other) noexcept;
  StateFolder& operator=(StateFolder&&) = delete;
  ~StateFolder();

  const std::string& path() const { return path_; }
  // None when there is no file yet.
  Attempt<ServerChanges> load() const;
  // On success the changes are on the disk, and nothing of what was there before.
  Attempt<void> save(const ServerChanges& changes) const;

 private:
  StateFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string file() const { return path_ + "/changes.toml"; }

  std::string path_;
  int lock_ = -1;
};

}  // namespace cairn::server
