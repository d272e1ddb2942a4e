// SPDX-License-Identifier: Apache-2.0
// What a configuration asks of stacks, for the fuzzers: without looking up the hosts and reading
// the files that stacks name.
#include <utility>

#include "apps/box/drive_option.h"
#include "apps/box/stacks.h"
#include "apps/drive/is_stack.h"
#include "drive/services.h"
#include "drive/stack_text.h"

namespace cairn::apps {

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

}  // namespace cairn::apps
