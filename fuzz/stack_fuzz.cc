// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stack: no crash, what is read is printed so that it reads the same again, and what
// is wrong can be shown.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "stack/services.h"
#include "stack/stack_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  const auto stack = drive::Stack::parse(text);
  if (!stack) {
    CHECK(stack.error().place <= text.size() && !stack.error().text.empty());
    CHECK(!stack.error().show(text).empty());
    return 0;
  }
  const std::string canonical = stack->text();
  if (const auto again = drive::Stack::parse(canonical)) {
    CHECK(*again == *stack && again->text() == canonical);
  } else {
    CHECK(canonical.size() > drive::kStackTextMax, "only quotes can make it longer");
  }
  if (const auto checked = drive::check_stack(*stack); !checked) {
    CHECK(!checked.error().show(text).empty());
  }
  return 0;
}
