// SPDX-License-Identifier: Apache-2.0
#include "stack/stack.h"

#include <fmt/format.h>

#include <utility>

#include "stack/live_stack.h"

namespace cairn::drive {

task::Task<Leaves::Leaf> SourceLeaves::open(env::Env& env, std::string text) {
  const std::expected<Spec, std::string> spec = parse_(text);
  if (!spec) co_return std::unexpected(spec.error());
  co_return open_drive(env, text, Source::make(env, *spec));
}

task::Task<Leaves::Leaf> SourceLeaves::open_shared(env::Env& env, std::string text) {
  const std::expected<Spec, std::string> spec = parse_(text);
  if (!spec) co_return std::unexpected(spec.error());
  if (!shared_) shared_.emplace(env);
  Result<std::unique_ptr<Source>> source = co_await shared_->make(env, *spec);
  co_return open_drive(env, text, std::move(source));
}

Leaves::Leaf SourceLeaves::open_drive(env::Env& env, const std::string& text,
                                      Result<std::unique_ptr<Source>> source) {
  if (!source) return std::unexpected(fmt::format("{}: {}", text, source.error().text()));
  Result<std::unique_ptr<Drive>> drive = (*source)->open(env);
  if (!drive) return std::unexpected(fmt::format("{}: {}", text, drive.error().text()));
  sources_[drive->get()] = std::move(*source);
  return std::move(*drive);
}

task::Task<Opened> open_stack(env::Env& env, Stack stack, Leaves& leaves) {
  LiveOpened opened = co_await open_live_stack(env, std::move(stack), leaves);
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  co_return std::move(*opened);
}

task::Task<Opened> open_stack(env::Env& env, std::string text, Leaves& leaves) {
  std::expected<Stack, StackError> stack = Stack::parse(text);
  if (!stack) co_return std::unexpected(stack.error());
  Opened drive = co_await open_stack(env, std::move(*stack), leaves);
  co_return drive;
}

}  // namespace cairn::drive
