// SPDX-License-Identifier: Apache-2.0
#include "server/open/check.h"

#include <string>
#include <utility>

#include "rest/endpoint.h"
#include "server/common/drive_option.h"
#include "server/open/http_endpoint.h"
#include "server/open/is_stack.h"
#include "server/open/open.h"
#include "server/open/open_volume.h"
#include "server/open/stack_toml.h"
#include "server/open/target_uri.h"
#include "stack/services.h"

namespace cairn::server {

namespace {

Attempt<void> check_leaf(const std::string& text) {
  if (rest::is_place(text)) return check_http(text);
  if (text.find("://") != std::string::npos) return check_target_uri(text, Needs::kNamespace);
  if (is_volume(text)) {
    const Attempt<VolumeUri> volume = VolumeUri::parse(text);
    return volume ? Attempt<void>() : std::unexpected(volume.error());
  }
  const Attempt<drive::Spec> spec = parse_drive(text);
  if (!spec) return std::unexpected(spec.error());
  return {};
}

Attempt<void> check_leaves(const drive::Stack& layer, std::string_view text) {
  if (layer.is_leaf) {
    const Attempt<void> checked = check_leaf(layer.name);
    if (checked) return checked;
    return refuse(drive::StackError{layer.place, checked.error().text}.show(text));
  }
  for (const drive::Stack& below : layer.below) {
    if (Attempt<void> checked = check_leaves(below, text); !checked) return checked;
  }
  return {};
}

Attempt<drive::Stack> check_line(std::string_view text) {
  std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(text);
  if (!stack) return refuse(stack.error().show(text));
  if (const auto checked = drive::check_stack(*stack); !checked) {
    return refuse(checked.error().show(text));
  }
  if (const Attempt<void> checked = check_leaves(*stack, text); !checked) {
    return std::unexpected(checked.error());
  }
  return std::move(*stack);
}

}  // namespace

Attempt<drive::Stack> check_drive_args(std::string_view text) {
  const std::string_view line = without_name(text);
  if (is_stack(line)) return check_line(line);
  const Attempt<drive::Spec> spec = parse_drive(line);
  if (!spec) return std::unexpected(spec.error());
  return drive::Stack{.name = spec->text(), .is_leaf = true};
}

Attempt<drive::Stack> check_stack_file(std::string_view text) {
  const Attempt<drive::Stack> stack = read_stack_toml(std::string(without_name(text)));
  if (!stack) return std::unexpected(stack.error());
  return check_line(stack->text());
}

}  // namespace cairn::server
