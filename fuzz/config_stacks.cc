// SPDX-License-Identifier: Apache-2.0
// What a configuration asks of stacks, for the fuzzers: without looking up the hosts and reading
// the files that stacks name.
#include <utility>

#include "server/common/drive_option.h"
#include "server/open/is_stack.h"
#include "server/open/take_drive.h"
#include "stack/services.h"
#include "stack/stack_text.h"

namespace cairn::server {

Attempt<void> take_drive(std::string_view text, LookUp, nvme::NamespaceOptions& options) {
  if (is_stack(text)) {
    const auto stack = drive::Stack::parse(text);
    if (!stack) return refuse(stack.error().show(text));
    if (auto checked = drive::check_stack(*stack); !checked) {
      return refuse(checked.error().show(text));
    }
    options.stack = stack->text();
    return {};
  }
  Attempt<drive::Spec> spec = parse_drive(text);
  if (!spec) return std::unexpected(spec.error());
  options.drive = std::move(*spec);
  return {};
}

}  // namespace cairn::server
