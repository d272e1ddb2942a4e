// SPDX-License-Identifier: Apache-2.0
// `cairn nvme flush`, `write-zeroes` and `discard`: requests without data.
#include <fmt/format.h>

#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/range.h"
#include "config/json_text.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using Kind = drive::Request::Kind;

class ChangeCommand final : public Command {
 public:
  ChangeCommand(CLI::App& app, Kind kind) : name_(name_of(app)) {
    request_.kind = kind;
    add_place(app, "URI", uri_, server::Needs::kNamespace, "the namespace");
    if (kind != Kind::kFlush) add_range(app, range_);
    if (kind == Kind::kWriteZeroes) {
      add_switch(app, "--keep-space", request_.keep_space, "the blocks stay allocated");
      add_switch(app, "--fua", request_.durable, "durable when it completes");
    }
    add_nvme_options(app, options_);
    const char* range = kind == Kind::kFlush ? "" : " --offset 1M --length 64K";
    set_examples(app, {fmt::format("cairn nvme {} nvme-tcp://box1/NQN?nsid=2{}", name_, range)});
  }

  Attempt<int> run() override {
    if (request_.kind != Kind::kFlush && !range_.length) {
      return refuse(
          fmt::format("'cairn nvme {}' destroys what the range holds: say how much with "
                      "--length",
                      name_));
    }
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return with_drive(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json()) : fmt::format("{}: done\n", name_));
    return kExitOk;
  }

 private:
  task::Task<Attempt<void>> with_drive(env::Env& env, const fabric::Uri& uri) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> drive = co_await server::open_drive(env, uri);
    if (!drive) co_return std::unexpected(drive.error());
    Attempt<void> outcome = prepare((*drive)->geometry());
    if (outcome) {
      const Result<void> done = co_await (*drive)->submit(request_, {}, {}, env.stop_token());
      if (!done) outcome = std::unexpected(server::cannot_do(name_, done.error()));
    }
    co_await (*drive)->close();
    co_return outcome;
  }

  Attempt<void> prepare(const drive::Geometry& geometry) {
    if (request_.kind == Kind::kFlush) return {};
    const Attempt<ByteRange> range = check_range(range_, geometry);
    if (!range) return std::unexpected(range.error());
    request_.lba = Lba(range->offset / geometry.block_size);
    request_.blocks = range->length / geometry.block_size;
    return {};
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json = {{"uri", uri_}};
    if (request_.kind == Kind::kFlush) return json;
    json["offset"] = range_.offset;
    json["bytes"] = *range_.length;
    return json;
  }

  NvmeOptions options_;
  std::string name_;
  std::string uri_;
  RangeOptions range_;
  drive::Request request_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_flush(CLI::App& app) {
  return std::make_unique<ChangeCommand>(app, Kind::kFlush);
}
std::unique_ptr<Command> make_nvme_write_zeroes(CLI::App& app) {
  return std::make_unique<ChangeCommand>(app, Kind::kWriteZeroes);
}
std::unique_ptr<Command> make_nvme_discard(CLI::App& app) {
  return std::make_unique<ChangeCommand>(app, Kind::kDiscard);
}

}  // namespace cairn::apps
