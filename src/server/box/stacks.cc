// SPDX-License-Identifier: Apache-2.0
#include "server/box/stacks.h"

#include "server/common/drive_option.h"
#include "server/open/is_stack.h"
#include "server/open/open_stack.h"

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

task::Task<Attempt<std::unique_ptr<StackSource>>> BoxStacks::open(nvme::NamespaceOptions& options,
                                                                  bool format) {
  if (options.stack.empty() || options.source != nullptr) co_return nullptr;
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(options.stack, LookUp::kWhenOpened);
  if (!plan) co_return std::unexpected(plan.error());
  (*plan)->share(shared_);
  if (format) (*plan)->allow_format();
  const CoreId home(opened_++ % env_.core_count());
  Attempt<std::unique_ptr<StackSource>> stack =
      co_await StackSource::open_on(env_, home, std::move(*plan));
  if (stack) options.source = stack->get();
  co_return stack;
}

void BoxStacks::keep(const std::string& nqn, uint32_t nsid, std::unique_ptr<StackSource> stack) {
  if (stack != nullptr) kept_[{nqn, nsid}] = std::move(stack);
}

StackSource* BoxStacks::find(const std::string& nqn, uint32_t nsid) {
  const auto kept = kept_.find({nqn, nsid});
  return kept == kept_.end() ? nullptr : kept->second.get();
}

task::Task<void> BoxStacks::drop(std::unique_ptr<StackSource> stack) {
  if (stack != nullptr) co_await stack->close(env_);
}

task::Task<void> BoxStacks::close(std::string nqn, uint32_t nsid) {
  auto node = kept_.extract({std::move(nqn), nsid});
  if (!node.empty()) co_await node.mapped()->close(env_);
}

task::Task<void> BoxStacks::close_all() {
  for (auto& [name, stack] : kept_) co_await stack->close(env_);
  kept_.clear();
}

}  // namespace cairn::server
