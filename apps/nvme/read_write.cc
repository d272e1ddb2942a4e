// SPDX-License-Identifier: Apache-2.0
// `cairn nvme read` and `cairn nvme write`: a namespace to a file, and a file to a namespace.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/transfer.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

void add_file(CLI::App& app, std::string_view spec, std::string help, std::string& into) {
  add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
    into = text;
    return {};
  });
}

// What was transferred, printed at the end.
struct Summary {
  uint64_t bytes = 0;
  Duration elapsed;

  void print(bool as_json, const std::string& uri, std::string_view verb, uint64_t offset) const {
    if (!as_json) return say(fmt::format("{} {}\n", verb, speed_text(bytes, elapsed)));
    say(config::json_text({{"uri", uri},
                           {"offset", offset},
                           {"bytes", bytes},
                           {"seconds", elapsed.seconds()},
                           {"bytes_per_second", bytes_per_second(bytes, elapsed)}}));
  }
};

class ReadCommand final : public Command {
 public:
  explicit ReadCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kNamespace, "the namespace");
    add_range(app, range_);
    add_file(app, "--output FILE", "where the bytes go; - (the default) is stdout", output_);
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme read nvme-tcp://127.0.0.1/NQN --output whole.img",
                       "cairn nvme read nvme-tcp://box1/NQN?nsid=2 --length 4K | hexdump -C"});
  }

  Attempt<int> run() override {
    if (output_ == "-" && options_.json) {
      return refuse("--json and the bytes both go to stdout: name a file with --output");
    }
    if (output_ == "-" && ::isatty(STDOUT_FILENO) == 1) {
      return refuse("a terminal is no place for the bytes: name a file with --output, or a pipe");
    }
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return with_drive(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    if (output_ != "-") summary_.print(options_.json, uri_, "read", range_.offset);
    return kExitOk;
  }

 private:
  task::Task<Attempt<void>> with_drive(env::Env& env, const fabric::Uri& uri) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> drive = co_await server::open_drive(env, uri);
    if (!drive) co_return std::unexpected(drive.error());
    Attempt<void> outcome = co_await read(env, **drive);
    co_await (*drive)->close();
    co_return outcome;
  }
  task::Task<Attempt<void>> read(env::Env& env, drive::Drive& drive) {
    const Attempt<ByteRange> range = check_range(range_, drive.geometry());
    if (!range) co_return std::unexpected(range.error());
    const Attempt<std::unique_ptr<OutputFile>> output = OutputFile::open(output_);
    if (!output) co_return std::unexpected(output.error());
    Progress progress(env, "read", range->length);
    Attempt<void> outcome = co_await read_range(env, drive, *range, **output, progress);
    if (outcome) outcome = (*output)->commit();
    summary_ = {.bytes = progress.done(), .elapsed = progress.elapsed()};
    if (!outcome && (*output)->is_regular()) {
      co_return refuse(
          fmt::format("{}; {} was left as it was", outcome.error().text, (*output)->name()));
    }
    co_return outcome;
  }

  NvmeOptions options_;
  std::string uri_;
  RangeOptions range_;
  std::string output_ = "-";
  Summary summary_;
};

class WriteCommand final : public Command {
 public:
  explicit WriteCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kNamespace, "the namespace");
    add_range(app, range_);
    add_file(app, "--input FILE", "where the bytes come from; - (the default) is stdin", input_);
    add_switch(app, "--fua", durable_,
               "each request is durable by itself; else a flush at the end");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme write nvme-tcp://127.0.0.1/NQN --input disk.img",
                       "zcat disk.img.gz | cairn nvme write nvme-tcp://box1/NQN?nsid=2",
                       "Without --length all of the input is written, which has whole blocks."});
  }

  Attempt<int> run() override {
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<std::unique_ptr<InputFile>> input = InputFile::open(input_);
    if (!input) return std::unexpected(input.error());
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return with_drive(env, *uri, **input); });
    if (!ran) return std::unexpected(ran.error());
    summary_.print(options_.json, uri_, "wrote", range_.offset);
    return kExitOk;
  }

 private:
  task::Task<Attempt<void>> with_drive(env::Env& env, const fabric::Uri& uri, InputFile& input) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> drive = co_await server::open_drive(env, uri);
    if (!drive) co_return std::unexpected(drive.error());
    Progress progress(env, "wrote", range_.length.value_or(input.size().value_or(0)));
    const Attempt<uint64_t> written = co_await write_range(
        env, **drive, {.offset = range_.offset, .length = range_.length, .durable = durable_},
        input, progress);
    summary_ = {.bytes = progress.done(), .elapsed = progress.elapsed()};
    co_await (*drive)->close();
    if (!written) co_return std::unexpected(written.error());
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  std::string uri_;
  RangeOptions range_;
  std::string input_ = "-";
  bool durable_ = false;
  Summary summary_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_read(CLI::App& app) {
  return std::make_unique<ReadCommand>(app);
}
std::unique_ptr<Command> make_nvme_write(CLI::App& app) {
  return std::make_unique<WriteCommand>(app);
}

}  // namespace cairn::apps
