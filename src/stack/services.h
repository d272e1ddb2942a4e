// SPDX-License-Identifier: Apache-2.0
// The table of services, and stacks of them judged by it.
#pragma once

#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "service/common/service.h"
#include "stack/stack_text.h"

namespace cairn::drive {

// Sorted by name.
std::span<const Service* const> services();
// Null: none of that name.
const Service* find_service(std::string_view name);

// Its example with a drive for each {}, as `fill` names them in order.
std::string example_over(const Service& service, const std::function<std::string()>& fill);

// Whether each layer is a service with the right drives and options, and no leaf but memory is
// there twice, unless it is shared by all who stand on it.
std::expected<void, StackError> check_stack(const Stack& stack);
// Says of each leaf of a stack that passed whether it is shared (Stack::is_shared).
void mark_shared_leaves(Stack& stack);
// The options of a layer that check_stack passed.
std::expected<ServiceOptions, StackError> read_options(const Stack& layer);

}  // namespace cairn::drive
