// SPDX-License-Identifier: Apache-2.0
#include "server/serve/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "env/call.h"

namespace cairn::server {

namespace {

// On the stack's home core.
Result<std::unique_ptr<drive::SharedDrive>> open_view(env::Env& home, drive::Drive& stack,
                                                      std::string_view view) {
  Result<std::unique_ptr<drive::Drive>> opened = stack.open_view(view);
  if (!opened) return fail(opened.error());
  return std::make_unique<drive::SharedDrive>(home, std::move(*opened));
}

}  // namespace

task::Task<Result<door::ExportOptions>> DriveViews::find(std::string name) {
  const size_t at = name.find('@');
  const std::string drive_name = name.substr(0, at);
  const auto found =
      std::ranges::find(drives_, drive_name, [](const auto& one) { return one->name; });
  ServedDrive* const drive = found == drives_.end() ? nullptr : found->get();
  if (at == std::string::npos || drive == nullptr || drive->stack() == nullptr) {
    co_return fail(Errc::kNotFound, "no export of that name");
  }
  const DriveUse use(*drive);
  if (!use) co_return fail(Errc::kNotFound, "the drive is being removed");
  const std::string view = name.substr(at + 1);
  drive::SharedDrive& stack = drive->stack()->shared();
  Result<std::unique_ptr<drive::SharedDrive>> opened = co_await env::call_on(
      env_, stack.core(),
      [&stack, &view](env::Env& home) { return open_view(home, stack.drive(), view); });
  if (!opened) co_return fail(opened.error());
  open_.push_back({drive_name, std::move(*opened)});
  co_return door::ExportOptions{.name = name,
                                .description = fmt::format("{} of {}", view, drive->text),
                                .read_only = drive->space.read_only || !view.starts_with("clone:"),
                                .source = open_.back().view.get()};
}

task::Task<void> DriveViews::give_back(drive::Source& source) {
  co_await source.close(env_);
  std::erase_if(open_, [&](const auto& one) { return one.view.get() == &source; });
}

bool DriveViews::are_open(std::string_view drive) const {
  return std::ranges::find(open_, drive, &Open::drive) != open_.end();
}

}  // namespace cairn::server
