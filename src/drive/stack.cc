// SPDX-License-Identifier: Apache-2.0
#include "drive/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drive/services.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

task::Task<Opened> open_layer(env::Env& env, const Stack& layer, Leaves& leaves);

task::Task<Opened> open_leaf(env::Env& env, const Stack& layer, Leaves& leaves) {
  Leaves::Leaf leaf = co_await leaves.open(env, layer.name);
  if (leaf) co_return std::move(*leaf);
  co_return std::unexpected(StackError{layer.place, std::move(leaf.error())});
}

task::Task<void> close_all(std::vector<std::unique_ptr<Drive>>& drives) {
  for (std::unique_ptr<Drive>& drive : drives) {
    if (drive != nullptr) co_await drive->close();
  }
}

// What the options of a layer that name files get with them.
std::expected<void, StackError> read_files(const Stack& layer, const Service& service,
                                           ServiceParts& parts) {
  for (const ServiceOption& option : service.options) {
    if (option.kind != ServiceOption::Kind::kFile) continue;
    const std::string& path = parts.options.text(option.key);
    if (path == kNoFile) continue;
    std::expected<FileContent, std::string> content = parts.files.read_file(path);
    if (content) {
      parts.contents.emplace(option.key, *content);
      continue;
    }
    const auto given = std::ranges::find(layer.options, option.key, &Stack::Option::key);
    const size_t place = given == layer.options.end() ? layer.place : given->place;
    return std::unexpected(StackError{place, std::move(content.error())});
  }
  return {};
}

task::Task<Opened> open_service(env::Env& env, const Stack& layer, Leaves& leaves) {
  const Service& service = *find_service(layer.name);
  std::vector<task::Task<Opened>> opening;
  for (const Stack& below : layer.below) opening.push_back(open_layer(env, below, leaves));
  std::vector<Opened> opened = co_await task::when_all(std::move(opening));

  std::vector<std::unique_ptr<Drive>> below;
  const StackError* lost = nullptr;
  for (Opened& one : opened) {
    if (!one && lost == nullptr) lost = &one.error();
    below.push_back(one ? std::move(*one) : nullptr);
  }
  StackError failed;
  if (lost != nullptr && !service.survives_loss) {
    failed = *lost;
  } else {
    ServiceParts parts{.env = env,
                       .below = below,
                       .options = *read_options(layer),
                       .contents = {},
                       .files = leaves};
    if (auto read = read_files(layer, service, parts); !read) {
      failed = std::move(read.error());
    } else {
      Result<std::unique_ptr<Drive>> drive = co_await service.open(std::move(parts));
      if (drive) co_return std::move(*drive);
      failed = {layer.place,
                fmt::format("{} cannot be opened: {}", layer.name, drive.error().text())};
      if (lost != nullptr) failed.text += fmt::format("; below it: {}", lost->text);
    }
  }
  co_await close_all(below);
  co_return std::unexpected(std::move(failed));
}

task::Task<Opened> open_layer(env::Env& env, const Stack& layer, Leaves& leaves) {
  return layer.is_leaf ? open_leaf(env, layer, leaves) : open_service(env, layer, leaves);
}

}  // namespace

task::Task<Leaves::Leaf> SourceLeaves::open(env::Env& env, std::string text) {
  const std::expected<Spec, std::string> spec = parse_(text);
  if (!spec) co_return std::unexpected(spec.error());
  Result<std::unique_ptr<Source>> source = Source::make(env, *spec);
  if (!source) co_return std::unexpected(fmt::format("{}: {}", text, source.error().text()));
  Result<std::unique_ptr<Drive>> drive = (*source)->open(env);
  if (!drive) co_return std::unexpected(fmt::format("{}: {}", text, drive.error().text()));
  sources_.push_back(std::move(*source));
  co_return std::move(*drive);
}

task::Task<Opened> open_stack(env::Env& env, Stack stack, Leaves& leaves) {
  if (auto checked = check_stack(stack); !checked) co_return std::unexpected(checked.error());
  Opened drive = co_await open_layer(env, stack, leaves);
  co_return drive;
}

task::Task<Opened> open_stack(env::Env& env, std::string text, Leaves& leaves) {
  std::expected<Stack, StackError> stack = Stack::parse(text);
  if (!stack) co_return std::unexpected(stack.error());
  Opened drive = co_await open_stack(env, std::move(*stack), leaves);
  co_return drive;
}

}  // namespace cairn::drive
