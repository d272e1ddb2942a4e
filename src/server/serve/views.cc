// SPDX-License-Identifier: Apache-2.0
#include "server/serve/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "env/call.h"
#include "server/serve/server.h"

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

task::Task<Result<door::nbd::ExportOptions>> DriveViews::find(std::string name) {
  const size_t at = name.find('@');
  const auto drive = std::ranges::find(drives_, name.substr(0, at), &ServedDrive::name);
  if (at == std::string::npos || drive == drives_.end() || drive->stack == nullptr) {
    co_return fail(Errc::kNotFound, "no export of that name");
  }
  const std::string view = name.substr(at + 1);
  drive::SharedDrive& stack = drive->stack->shared();
  Result<std::unique_ptr<drive::SharedDrive>> opened = co_await env::call_on(
      env_, stack.core(),
      [&stack, &view](env::Env& home) { return open_view(home, stack.drive(), view); });
  if (!opened) co_return fail(opened.error());
  open_.push_back(std::move(*opened));
  co_return door::nbd::ExportOptions{.name = name,
                                     .description = fmt::format("{} of {}", view, drive->text),
                                     .read_only = read_only_ || !view.starts_with("clone:"),
                                     .source = open_.back().get()};
}

task::Task<void> DriveViews::give_back(drive::Source& source) {
  co_await source.close(env_);
  std::erase_if(open_, [&](const auto& one) { return one.get() == &source; });
}

}  // namespace cairn::server
