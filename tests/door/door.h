// SPDX-License-Identifier: Apache-2.0
// An NBD server in the test's own world, over memory: two exports, on every core.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "door/nbd/server.h"
#include "drive/source.h"
#include "task/task.h"
#include "testing/door/nbd_client.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::door_tests {

using conformance::Conformance;
using conformance::must;
using conformance::outcome;
using conformance::pattern;
using conformance::Scene;
using conformance::WorldNames;
using conformance::Worlds;
using door::nbd::Command;
using task::Task;

inline constexpr uint64_t kSize = 4 << 20;

// What a step gives without which the rest makes no sense.
template <class T>
Task<T> sure(Task<Result<T>> step, std::source_location where = std::source_location::current()) {
  Result<T> result = co_await step;
  if constexpr (std::is_void_v<T>) {
    must(std::move(result), where);
  } else {
    co_return must(std::move(result), where);
  }
}

// Opened, used, closed; on one core of any world.
class Door {
 public:
  explicit Door(env::Env& env, const door::nbd::NbdOptions& options = {})
      : env_(env), server_(env, options) {}

  Task<void> open(env::Address at) {
    co_await add({.name = "a", .description = "the first"}, "mem:size=4M");
    co_await add({.name = "small", .description = ""}, "mem:size=1M,block=512");
    co_await add({.name = "fixed", .description = "", .read_only = true}, "mem:size=1M");
    address = must(server_.listen(at));
  }
  Task<void> add(door::ExportOptions options, const char* drive) {
    return add(std::move(options), drive::Spec::parse(drive).value());
  }
  Task<void> add(door::ExportOptions options, const drive::Spec& drive) {
    return add(std::move(options), must(drive::Source::make(env_, drive)));
  }
  Task<void> add(door::ExportOptions options, std::unique_ptr<drive::Source> source) {
    sources_.push_back(std::move(source));
    options.source = sources_.back().get();
    co_await sure(server_.add(std::move(options)));
  }
  Task<void> close() { return server_.close(); }

  door::nbd::NbdServer& server() { return server_; }
  drive::Source& source(size_t index) { return *sources_[index]; }
  env::Address address;

 private:
  env::Env& env_;
  std::vector<std::unique_ptr<drive::Source>> sources_;
  door::nbd::NbdServer server_;
};

}  // namespace cairn::door_tests
