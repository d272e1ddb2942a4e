// SPDX-License-Identifier: Apache-2.0
#include "server/open/take_drive.h"

#include <memory>
#include <utility>

#include "server/common/drive_option.h"
#include "server/open/is_stack.h"

namespace cairn::server {

Attempt<void> take_drive(std::string_view text, LookUp when, nvme::NamespaceOptions& options) {
  if (is_stack(text)) {
    const Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(text, when);
    if (!plan) return std::unexpected(plan.error());
    options.stack = (*plan)->whole_text();
    return {};
  }
  Attempt<drive::Spec> spec = parse_drive(text);
  if (!spec) return std::unexpected(spec.error());
  options.drive = std::move(*spec);
  return {};
}

void set_kept_size(nvme::NamespaceOptions& options, uint64_t bytes) {
  if (options.stack.empty()) {
    options.drive.size = bytes;
  } else if (const auto plan = StackPlan::prepare(options.stack, LookUp::kWhenOpened); plan) {
    options.stack = (*plan)->grown_text();
  }
}

}  // namespace cairn::server
