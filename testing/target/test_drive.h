// SPDX-License-Identifier: Apache-2.0
// TestDrive: what a test's box serves, named by a line of text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "drive/shared_drive.h"
#include "drive/source.h"
#include "nvme/controller/registry.h"
#include "stack/live_stack.h"
#include "stack/stack.h"
#include "task/task.h"
#include "testing/drive/forgetful.h"

namespace cairn::target_tests {

// "mem:size=4M" is opened by the registry, on every core; "stack:atomic(mem:size=4M)" is opened
// here as a box opens a stack, once, and shared by all cores; "forgetful:mem:size=4M" likewise, and
// can lose what was not flushed. Closed after its registry.
class TestDrive {
 public:
  // What stays for the caller to say is all but the drive.
  task::Task<nvme::NamespaceOptions> open(env::Env& env, std::string text) {
    constexpr std::string_view kStack = "stack:";
    constexpr std::string_view kForgetful = "forgetful:";
    nvme::NamespaceOptions space;
    if (text.starts_with(kForgetful)) {
      drive::Leaves::Leaf leaf = co_await leaves_.open(env, text.substr(kForgetful.size()));
      CHECK(leaf.has_value(), "a test's drive opens");
      auto own = std::make_unique<drive::ForgetfulDrive>(std::move(*leaf));
      forgetful_ = own.get();
      shared_ = std::make_unique<drive::SharedDrive>(env, std::move(own));
      space.source = shared_.get();
      co_return space;
    }
    if (!text.starts_with(kStack)) {
      space.drive = drive::Spec::parse(text).value();
      co_return space;
    }
    space.stack = text.substr(kStack.size());
    std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(space.stack);
    CHECK(stack.has_value(), "a test's stack");
    drive::LiveOpened opened = co_await drive::open_live_stack(env, std::move(*stack), leaves_);
    CHECK(opened.has_value(), "a test's stack opens");
    shared_ = std::make_unique<drive::SharedDrive>(env, std::move(*opened));
    space.source = shared_.get();
    co_return space;
  }
  task::Task<void> close(env::Env& env) {
    if (shared_ != nullptr) co_await shared_->close(env);
    shared_.reset();
    leaves_.close();
  }

  // Of a forgetful one, on the core that opened it.
  void lose() { forgetful_->lose(); }
  void fail_a_flush() { forgetful_->fail_a_flush(); }

 private:
  drive::SourceLeaves leaves_;
  drive::ForgetfulDrive* forgetful_ = nullptr;  // shared_'s
  std::unique_ptr<drive::SharedDrive> shared_;
};

}  // namespace cairn::target_tests
