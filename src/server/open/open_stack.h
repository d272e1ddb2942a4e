// SPDX-License-Identifier: Apache-2.0
// Opening a stack that a user named: one line of text to the drive on top.
//
//   Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(text);    // before the world
//   Attempt<std::unique_ptr<drive::LiveStack>> drive = co_await (*plan)->open(env);
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/problem.h"
#include "drive/shared_sources.h"
#include "drive/source.h"
#include "env/env.h"
#include "fabric/host/uri.h"
#include "rest/endpoint.h"
#include "stack/live_stack.h"
#include "stack/stack.h"
#include "task/task.h"

namespace cairn::server {

class StackPlan;

// Where a stack's layers go, or come from; see drive::Handover. On the core of the stack.
class StackMover {
 public:
  virtual task::Task<Attempt<std::unique_ptr<StackPlan>>> give(env::Env& env) = 0;
  virtual task::Task<bool> take_back(env::Env& env) = 0;

 protected:
  ~StackMover() = default;
};

// Whose source a stack's one layer stands on.
class SourceLender {
 public:
  // On the core of the stack, once: nothing of it is open there any more.
  virtual void returned(env::Env& there) = 0;

 protected:
  ~SourceLender() = default;
};

// When host names are looked up and keys are read.
enum class LookUp : uint8_t {
  kNow,         // what cannot be is a Problem of the line; may block
  kWhenOpened,  // what cannot be is a drive that does not open; the core goes on meanwhile
};

// A stack whose words were all understood. Outlives the drives it opens.
class StackPlan final : private drive::Leaves {
 public:
  // Reads the line and loads profiles; with kNow not inside a world that serves somebody. The
  // Problem shows the place with a caret.
  static Attempt<std::unique_ptr<StackPlan>> prepare(std::string_view text,
                                                     LookUp when = LookUp::kNow);

  const drive::Stack& stack() const { return stack_; }
  // The line as it is from any folder, with addresses for the host names that were looked up:
  // preparing it looks nothing else up, and gives the same stack.
  std::string whole_text() const;
  // The same without the sizes of files, for a stack that was open before: they have one.
  std::string grown_text() const;

  // Where a leaf of that text leads, and how patient its host is; null: it is no remote drive.
  const fabric::Uri* place_of(const std::string& leaf) const;

  // Where it looks for drives that layers of several stacks share; else only its own layers do.
  // Before open(); outlives it.
  void share(drive::SharedSources& sources) { shared_ = &sources; }

  // The user has said so: what its drives hold may be lost. Counts for one open(), or for the edit
  // that this is the aim of.
  void allow_format() { may_format_ = true; }

  // Remote drives take no larger requests: what stands for them one day may not be able to. Before
  // open().
  void limit_transfers(uint32_t blocks) { transfer_blocks_ = blocks; }
  // The stack is a single leaf, which is opened on this source: it is open already, on other cores
  // too. Before open(). An edit that does without it gives it back.
  void borrow(drive::Source& source, SourceLender& lender) {
    borrowed_ = &source;
    lender_ = &lender;
  }
  // What it opened on it; null: nothing, or it was given back.
  const drive::Drive* borrowed_drive() const { return borrowed_drive_; }

  // On `env`'s core, which also closes it. A file that somebody killed a moment ago still holds is
  // waited for. The Problem names the layer at fault.
  task::Task<Attempt<std::unique_ptr<drive::LiveStack>>> open(env::Env& env);
  // Makes what it opened the stack of another plan, on the same core. The Problem shows the layer
  // at fault.
  task::Task<Attempt<void>> edit(drive::LiveStack& live, std::unique_ptr<StackPlan> to);
  // Has its layers leave, or come. Gives how long requests had to wait. The Problem says why it is
  // what it was.
  task::Task<Attempt<Duration>> move(env::Env& env, drive::LiveStack& live, StackMover& mover);
  // A leaf whose blocks are in the memory of this process alone; empty: there is none.
  std::string leaf_in_memory() const;
  // Lets go of the media, on the same core, when the drives are closed and destroyed.
  void close() { sources_.clear(); }

 private:
  class Handing;
  StackPlan() = default;
  // Knows the leaves and files of another plan from now on.
  void learn(StackPlan& other);
  struct RemoteUri {
    fabric::Uri uri;
    std::string text;  // with addresses
  };
  // A drive elsewhere, with its keys.
  using Remote = std::variant<RemoteUri, rest::Endpoint>;
  // A drive elsewhere that is looked up when it is opened.
  struct Sought {
    bool is_leg = false;
    std::string problem;  // of the last time, for whoever opens it next; empty: look again
  };
  // `is_leg`: a service above goes on without it.
  Attempt<void> prepare_leaves(const drive::Stack& layer, bool is_leg, LookUp when);
  Attempt<void> prepare_files(const drive::Stack& layer);
  // May block.
  static Attempt<Remote> find_remote(const std::string& leaf, bool is_leg);
  void keep(const std::string& leaf, Remote remote);
  // Finds what is sought, as far as it can be found.
  task::Task<void> look_up(env::Env& env);
  // Finds one that could not be found when the stack was opened.
  task::Task<Attempt<void>> find_late(env::Env& env, std::string leaf);
  task::Task<Leaf> open(env::Env& env, std::string text) override;
  task::Task<Leaf> open_shared(env::Env& env, std::string text) override;
  // `shared` null: a medium of its own.
  task::Task<Leaf> open_source(env::Env& env, const drive::Spec& spec,
                               drive::SharedSources* shared);
  Leaf open_borrowed(env::Env& env, const drive::Spec& spec);
  void gone(const drive::Drive* drive) override;
  bool may_format() const override { return may_format_; }
  // Those the stack names were read before the world, and are handed over once; what a command
  // names later is read then.
  std::expected<drive::FileContent, std::string> read_file(const std::string& path) override;
  // As it is opened: leaves and files by their whole names, so that one is known again however it
  // is written, files of data without the size they have.
  drive::Stack whole_stack() const { return made_whole(stack_, false); }
  drive::Stack made_whole(const drive::Stack& layer, bool with_sizes) const;
  // The same stack with the names that leaves were opened by.
  drive::Stack as_opened(drive::Stack layer) const;

  std::string text_;  // as it was typed: places are bytes of it
  drive::Stack stack_;
  // By the leaf's text, typed and whole.
  std::map<std::string, drive::Spec> specs_;
  std::map<std::string, RemoteUri> remote_uris_;
  std::map<std::string, rest::Endpoint> http_;
  std::map<std::string, Sought> sought_;             // by the leaf's text, as typed
  std::map<std::string, std::string> found_late_;    // leaves as typed, by whole text
  std::map<std::string, drive::FileContent> files_;  // by whole path
  bool may_format_ = false;
  drive::SharedSources* shared_ = nullptr;
  std::unique_ptr<drive::SharedSources> own_shared_;
  std::map<const drive::Drive*, std::unique_ptr<drive::Source>> sources_;
  drive::Source* borrowed_ = nullptr;  // until it was opened
  const drive::Drive* borrowed_drive_ = nullptr;
  SourceLender* lender_ = nullptr;
  env::Env* home_ = nullptr;      // of the borrowed drive
  uint32_t transfer_blocks_ = 0;  // 0: as they are
};

}  // namespace cairn::server
