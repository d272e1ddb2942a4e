// SPDX-License-Identifier: Apache-2.0
#include "server/open/open.h"

#include <utility>

#include "server/common/advice.h"
#include "server/common/drive_option.h"
#include "server/common/holder_retry.h"
#include "server/open/is_stack.h"
#include "server/open/stack_source.h"
#include "server/open/stack_toml.h"

namespace cairn::server {

namespace {

struct Named {
  std::string_view name;
  std::string_view rest;
};

// A drive's own text has a ':' or a '(' before its first '='.
Named split_name(std::string_view text) {
  const size_t end = text.find('=');
  if (end == std::string_view::npos || !is_drive_name(text.substr(0, end)))
    return {.name = "", .rest = text};
  return {.name = text.substr(0, end), .rest = text.substr(end + 1)};
}

Attempt<DriveArgs> args_of_stack(std::string_view name, std::string_view line, LookUp when) {
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(line, when);
  if (!plan) return std::unexpected(plan.error());
  DriveArgs args{.name = std::string(name)};
  args.text = (*plan)->whole_text();
  args.stack = std::move(*plan);
  return args;
}

}  // namespace

std::string_view without_name(std::string_view args) { return split_name(args).rest; }

Attempt<DriveArgs> parse_drive_args(std::string_view text, LookUp when) {
  const Named named = split_name(text);
  if (is_stack(named.rest)) return args_of_stack(named.name, named.rest, when);
  Attempt<drive::Spec> spec = parse_drive(named.rest);
  if (!spec) return std::unexpected(spec.error());
  DriveArgs args{.name = std::string(named.name)};
  args.text = spec->text();
  args.spec = std::move(*spec);
  return args;
}

Attempt<DriveArgs> read_stack_file(std::string_view text, LookUp when) {
  const Named named = split_name(text);
  const Attempt<drive::Stack> stack = read_stack_toml(std::string(named.rest));
  if (!stack) return std::unexpected(stack.error());
  return args_of_stack(named.name, stack->text(), when);
}

task::Task<Attempt<std::unique_ptr<drive::Source>>> open_drive(env::Env& env, DriveArgs& args,
                                                               CoreId home) {
  if (args.stack != nullptr) {
    Attempt<std::unique_ptr<StackSource>> stack =
        co_await StackSource::open_on(env, home, std::move(args.stack));
    if (!stack) co_return std::unexpected(stack.error());
    co_return std::move(*stack);
  }
  Result<std::unique_ptr<drive::Source>> source = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env);
  for (bool again = true; again;) {
    source = drive::Source::make(env, args.spec);
    again = co_await retry.after(source);
  }
  if (!source) co_return std::unexpected(cannot_serve(args.spec, source.error()));
  co_return std::move(*source);
}

}  // namespace cairn::server
