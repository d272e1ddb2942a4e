// SPDX-License-Identifier: Apache-2.0
// `cairn nvme verify`: whether a namespace gives back what is written to it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/nvme/byte_file.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/range.h"
#include "apps/nvme/verify_report.h"
#include "base/words.h"
#include "config/bytes_text.h"
#include "config/files.h"
#include "config/json_text.h"
#include "loadgen/drive_load.h"
#include "loadgen/drive_verify.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

// What is used of a large namespace unless told otherwise: 24 bytes of memory go with each block.
constexpr uint64_t kSizeDefault = 256_MiB;
constexpr uint64_t kSizeMax = 1_TiB;
constexpr size_t kStateMax = 4_GiB;

class VerifyCommand final : public Command {
 public:
  explicit VerifyCommand(CLI::App& app) {
    add_place(app, "URI", report_.uri, server::Needs::kNamespace,
              "the namespace, WHICH IS OVERWRITTEN");
    add_number(app, "--seconds S", seconds_, 0.01, 1e7, "how long to write and read (10)");
    add_size(app, "--offset SIZE", offset_, "where the range that is overwritten begins (0)");
    add_value(app, "--size SIZE", "its size (256M, or what there is)",
              [this](const std::string& text) { return take_size(text); });
    add_value(app, "--seed N", "what the contents follow from (a new one, which is shown)",
              [this](const std::string& text) { return take_seed(text); });
    add_integer(app, "--write-percent N", write_percent_, {.min = 0, .max = 100},
                "share of writes among the requests (50)");
    add_integer(app, "--depth N", depth_, {.min = 1, .max = loadgen::kLoadDepthMax},
                "requests outstanding (32)");
    add_switch(app, "--fua", verify_.durable, "writes are durable by themselves; else by flushes");
    add_text(app, "--state FILE", state_,
             "keep there what was acknowledged, for a later --check-only");
    add_switch(app, "--check-only", report_.check_only,
               "write nothing: check what an earlier run with this --state or --seed has left");
    add_nvme_options(app, options_);
    set_examples(app,
                 {"cairn nvme verify nvme-tcp://box1/NQN --seconds 60 --size 4G",
                  "cairn nvme verify nvme-tcp://box1/NQN --state run.state",
                  "cairn nvme verify nvme-tcp://box1/NQN --state run.state --check-only", "",
                  "It asks nothing and OVERWRITES the range, as fio does: the first 256M unless",
                  "--offset and --size name another. --check-only writes nothing. With --state it",
                  "knows what was acknowledged and finds lost writes, also after a crash of the",
                  "target; with --seed alone it finds blocks that are damaged or misplaced."});
  }

  Attempt<int> run() override {
    if (report_.check_only && state_.empty() && !seed_) {
      return refuse("--check-only needs the --state of an earlier run, or its --seed");
    }
    const Attempt<fabric::Uri> uri =
        server::find_target_uri(report_.uri, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    verify_.duration = Duration::from_seconds(seconds_);
    verify_.write_share = write_percent_ / 100.0;
    verify_.depth = static_cast<uint32_t>(depth_);
    if (report_.check_only && !state_.empty()) {
      if (Attempt<void> loaded = load_state(); !loaded) return std::unexpected(loaded.error());
    }
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return with_drive(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json_of(report_)) : text_of(report_));
    if (report_.result.ok()) return kExitOk;
    return std::unexpected(problem_of(report_));
  }

 private:
  Attempt<void> take_seed(const std::string& text) {
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return refuse(fmt::format("takes a whole number, not {}", in_quotes(text)));
    }
    seed_ = seed;
    return {};
  }

  Attempt<void> take_size(const std::string& text) {
    const Attempt<uint64_t> size = config::parse_bytes(text);
    if (!size) return std::unexpected(size.error());
    size_ = *size;
    return {};
  }

  Attempt<void> load_state() {
    const Attempt<std::string> text = config::read_file(state_, kStateMax);
    if (!text) return std::unexpected(text.error());
    Result<loadgen::BlockOracle> oracle = loadgen::BlockOracle::load(as_bytes(*text));
    if (!oracle) {
      return refuse(fmt::format("{} is of no use ({}): name the --state of an earlier run",
                                in_quotes(state_), oracle.error().text()));
    }
    oracle_ = std::move(*oracle);
    return {};
  }

  task::Task<Attempt<void>> with_drive(env::Env& env, const fabric::Uri& uri) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> drive = co_await server::open_drive(env, uri);
    if (!drive) co_return std::unexpected(drive.error());
    report_.block_size = (*drive)->geometry().block_size;
    Attempt<void> outcome = choose(env, (*drive)->geometry());
    if (outcome) {
      Result<loadgen::VerifyResult> result = co_await verify(env, **drive);
      if (result) {
        report_.result = std::move(*result);
      } else {
        outcome = refuse(fmt::format("verify cannot begin: {}", result.error().text()));
      }
    }
    report_.interrupted = env.stop_token().requested();
    co_await (*drive)->close();
    if (outcome && !state_.empty() && !report_.check_only) outcome = co_await save_state(env);
    co_return outcome;
  }

  // The range and the seed: those of the state, or as told.
  Attempt<void> choose(env::Env& env, const drive::Geometry& geometry) {
    if (!oracle_) {
      if (offset_ < geometry.bytes() && !size_) {
        const uint64_t left = geometry.bytes() - offset_;
        size_ = std::min(align_down(kSizeDefault, geometry.block_size), left);
      }
      const Attempt<ByteRange> range = check_range({.offset = offset_, .length = size_}, geometry);
      if (!range) return std::unexpected(range.error());
      if (range->length > kSizeMax) return refuse("--size is at most 1 TiB: verify parts in turn");
      if (!seed_) {
        uint32_t fresh = 0;  // short enough to be typed again
        env.fill_secret(std::as_writable_bytes(std::span(&fresh, 1)));
        seed_ = fresh;
      }
      oracle_.emplace(*seed_, Lba(range->offset / geometry.block_size),
                      range->length / geometry.block_size);
    }
    report_.seed = oracle_->seed();
    report_.offset = oracle_->first().value() * geometry.block_size;
    report_.size = oracle_->blocks() * geometry.block_size;
    return {};
  }

  task::Task<Result<loadgen::VerifyResult>> verify(env::Env& env, drive::Drive& drive) {
    if (!report_.check_only) {
      return loadgen::verify_drive(env, drive, verify_, *oracle_, env.stop_token());
    }
    if (!state_.empty())
      return loadgen::check_drive(env, drive, verify_, *oracle_, env.stop_token());
    const loadgen::StampRange range{
        .seed = oracle_->seed(), .first = oracle_->first(), .blocks = oracle_->blocks()};
    return loadgen::check_stamps(env, drive, verify_, range, env.stop_token());
  }

  task::Task<Attempt<void>> save_state(env::Env& env) {
    Attempt<std::unique_ptr<OutputFile>> file = OutputFile::open(state_);
    if (!file) co_return std::unexpected(file.error());
    const std::vector<std::byte> bytes = oracle_->save();
    Attempt<void> written = co_await (*file)->write(env, bytes);
    if (written) written = (*file)->commit();
    co_return written;
  }

  NvmeOptions options_;
  VerifyReport report_;
  loadgen::DriveVerify verify_;
  double seconds_ = 10;
  uint64_t offset_ = 0;
  std::optional<uint64_t> size_;
  std::optional<uint64_t> seed_;
  int write_percent_ = 50;
  int depth_ = 32;
  std::string state_;
  std::optional<loadgen::BlockOracle> oracle_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_verify(CLI::App& app) {
  return std::make_unique<VerifyCommand>(app);
}

}  // namespace cairn::apps
