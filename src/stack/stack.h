// SPDX-License-Identifier: Apache-2.0
// Opening a stack: from its text to the Drive on top.
//
//   SourceLeaves leaves;
//   Opened drive = co_await open_stack(env, "stripe(file:/a, file:/b, chunk=64K)", leaves);
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "drive/drive.h"
#include "drive/shared_sources.h"
#include "drive/source.h"
#include "env/env.h"
#include "service/common/files.h"
#include "stack/stack_text.h"
#include "task/task.h"

namespace cairn::drive {

// Opens the leaves of stacks, and reads the files that services name: this folder knows sources,
// others know networks and file systems. Outlives the drives.
class Leaves : public Files {
 public:
  // A drive on `env`'s core, or why there is none, as a sentence.
  using Leaf = std::expected<std::unique_ptr<Drive>, std::string>;
  virtual task::Task<Leaf> open(env::Env& env, std::string text) = 0;
  // The same medium for each who asks for it so, as long as one of them has it.
  virtual task::Task<Leaf> open_shared(env::Env& env, std::string text) {
    return open(env, std::move(text));
  }
  // Whether the user has said that what drives hold may be lost (ServiceParts::may_format). Asked
  // when layers are opened, not for those that come late.
  virtual bool may_format() const { return false; }
  // A drive of these was closed and destroyed before all the others: its medium can go.
  virtual void gone(const Drive* drive) { (void)drive; }

 protected:
  ~Leaves() = default;
};

// mem:, file: and flash: drives. It keeps their media until it is destroyed.
class SourceLeaves : public Leaves {
 public:
  using Parse = std::function<std::expected<Spec, std::string>(std::string_view)>;
  // `parse` fills in the profiles of modelled drives.
  explicit SourceLeaves(Parse parse = Spec::parse) : parse_(std::move(parse)) {}
  task::Task<Leaf> open(env::Env& env, std::string text) override;
  task::Task<Leaf> open_shared(env::Env& env, std::string text) override;
  void gone(const Drive* drive) override { sources_.erase(drive); }
  // Lets go of the media before its own end; the drives are gone by then.
  void close() { sources_.clear(); }

 private:
  Leaf open_drive(env::Env& env, const std::string& text, Result<std::unique_ptr<Source>> source);

  Parse parse_;
  std::optional<SharedSources> shared_;
  std::map<const Drive*, std::unique_ptr<Source>> sources_;  // by their drives
};

// The drive on top, which owns all below it and closes them with itself; used on `env`'s core. The
// error names the layer at fault; what was opened is closed again. Leaves are opened side by side,
// so that a stack of remote drives waits for the slowest one and not for all in turn.
using Opened = std::expected<std::unique_ptr<Drive>, StackError>;
task::Task<Opened> open_stack(env::Env& env, Stack stack, Leaves& leaves);
// The same from text; the error is about a byte of it.
task::Task<Opened> open_stack(env::Env& env, std::string text, Leaves& leaves);

}  // namespace cairn::drive
