// SPDX-License-Identifier: Apache-2.0
// `cairn nvme copy`: a range of a namespace to another place, there or in another namespace.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/copy_range.h"
#include "apps/nvme/range.h"
#include "config/bytes_text.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

class CopyCommand final : public Command {
 public:
  explicit CopyCommand(CLI::App& app) {
    add_place(app, "FROM", from_, server::Needs::kNamespace, "the namespace to copy from");
    optional(add_place(app, "TO", to_, server::Needs::kNamespace,
                       "the namespace to copy to (the same)"));
    add_range(app, range_);
    add_value(app, "--to-offset SIZE", "first byte at the target (as --offset)",
              [this](const std::string& text) { return take_offset(text); });
    add_switch(app, "--verify", verify_, "read both back and compare them");
    add_switch(app, "--fua", plan_.durable, "each write is durable by itself; else one flush");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme copy nvme-tcp://box1/NQN nvme-tcp://box2/NQN --verify",
                       "cairn nvme copy nvme-tcp://box1/NQN --length 1G --to-offset 4G",
                       "Within a namespace the target copies by itself where it can."});
  }

  Attempt<int> run() override {
    if (to_.empty()) to_ = from_;
    const Attempt<fabric::Uri> from = server::find_target_uri(from_, server::Needs::kNamespace);
    if (!from) return std::unexpected(from.error());
    const Attempt<fabric::Uri> to = server::find_target_uri(to_, server::Needs::kNamespace);
    if (!to) return std::unexpected(to.error());
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return with_drives(env, *from, *to); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json()) : text());
    return kExitOk;
  }

 private:
  Attempt<void> take_offset(const std::string& text);

  task::Task<Attempt<void>> with_drives(env::Env& env, const fabric::Uri& from,
                                        const fabric::Uri& to) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> source = co_await server::open_drive(env, from);
    if (!source) co_return std::unexpected(source.error());
    Attempt<void> outcome;
    if (Attempt<std::unique_ptr<fabric::RemoteDrive>> target =
            co_await server::open_drive(env, to)) {
      const bool is_same = from.nqn == to.nqn && (*source)->info().is_same((*target)->info());
      outcome = co_await copy(env, **source, **target, is_same);
      co_await (*target)->close();
    } else {
      outcome = std::unexpected(target.error());
    }
    co_await (*source)->close();
    co_return outcome;
  }

  task::Task<Attempt<void>> copy(env::Env& env, fabric::RemoteDrive& source,
                                 fabric::RemoteDrive& target, bool is_same) {
    if (Attempt<void> planned = plan(source.geometry(), target.geometry(), is_same); !planned) {
      co_return planned;
    }
    plan_.by_target = is_same && target.info().copy_blocks > 0;
    {
      Progress progress(env, "copied", plan_.length);
      const Attempt<CopyResult> copied = co_await copy_range(env, source, target, plan_, progress);
      if (!copied) co_return std::unexpected(copied.error());
      by_target_ = copied->bytes_by_target;
      elapsed_ = progress.elapsed();
    }
    if (!verify_) co_return Attempt<void>{};
    Progress progress(env, "compared", plan_.length * 2);
    Attempt<void> same = co_await compare_ranges(env, source, target, plan_, progress);
    co_return same;
  }

  Attempt<void> plan(const drive::Geometry& source, const drive::Geometry& target, bool is_same) {
    const Attempt<ByteRange> from = check_range(range_, source);
    if (!from) return std::unexpected(from.error());
    const RangeOptions wanted{.offset = to_offset_.value_or(from->offset), .length = from->length};
    const Attempt<ByteRange> to = check_range(wanted, target);
    if (!to) return refuse("at the target, " + to.error().text);
    const uint64_t distance =
        std::max(from->offset, to->offset) - std::min(from->offset, to->offset);
    if (is_same && distance < from->length) {
      return refuse(
          fmt::format("source and target are one namespace and overlap: give --to-offset {} or "
                      "more, or a shorter --length",
                      from->offset + from->length));
    }
    plan_.from = from->offset;
    plan_.to = to->offset;
    plan_.length = from->length;
    return {};
  }

  nlohmann::ordered_json json() const {
    return {{"from", from_},
            {"to", to_},
            {"offset", plan_.from},
            {"to_offset", plan_.to},
            {"bytes", plan_.length},
            {"bytes_by_target", by_target_},
            {"seconds", elapsed_.seconds()},
            {"bytes_per_second", bytes_per_second(plan_.length, elapsed_)},
            {"verified", verify_}};
  }
  std::string text() const {
    const char* how = by_target_ == plan_.length ? "by the target itself" : "through this host";
    return fmt::format("copied {}, {}{}\n", speed_text(plan_.length, elapsed_), how,
                       verify_ ? "; both are the same" : "");
  }

  NvmeOptions options_;
  std::string from_;
  std::string to_;
  RangeOptions range_;
  std::optional<uint64_t> to_offset_;
  bool verify_ = false;
  CopyPlan plan_;
  uint64_t by_target_ = 0;
  Duration elapsed_;
};

Attempt<void> CopyCommand::take_offset(const std::string& text) {
  const Attempt<uint64_t> size = config::parse_bytes(text);
  if (!size) return std::unexpected(size.error());
  to_offset_ = *size;
  return {};
}

}  // namespace

std::unique_ptr<Command> make_nvme_copy(CLI::App& app) {
  return std::make_unique<CopyCommand>(app);
}

}  // namespace cairn::apps
