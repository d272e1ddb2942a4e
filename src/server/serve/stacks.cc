// SPDX-License-Identifier: Apache-2.0
#include "server/serve/stacks.h"

#include "server/open/open_stack.h"

namespace cairn::server {

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
