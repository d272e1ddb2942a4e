// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace.h"

#include <fmt/format.h>

#include <utility>

#include "service/common/service_drive.h"
#include "service/trace/trace_file.h"

namespace cairn::drive {

namespace {

std::string_view name_of(Request::Kind kind) {
  constexpr std::string_view kNames[] = {"read",  "write",   "compare",     "compare-and-write",
                                         "flush", "discard", "write-zeroes"};
  return kNames[static_cast<size_t>(kind)];
}

class Trace final : public ServiceDrive {
 public:
  Trace(env::Env& env, std::vector<std::unique_ptr<Drive>> drives, std::string path)
      : ServiceDrive(std::move(drives)), env_(env), file_(env, std::move(path)) {}

  const Geometry& geometry() const override { return below().geometry(); }
  Extent extent_at(Lba lba, uint64_t max) const override { return below().extent_at(lba, max); }
  task::Task<Result<void>> resize(uint64_t blocks) override { return below().resize(blocks); }
  std::vector<Fact> facts() const override {
    const TraceFile::Counts& counts = file_.counts();
    return {{"recording", file_.is_open() ? 1U : 0U},
            {"recorded", counts.lines},
            {"dropped", counts.dropped},
            {"file_errors", counts.errors}};
  }
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;
  task::Task<void> close() override {
    co_await gate().close();
    co_await file_.close();
    co_await below().close();
  }
  // An error is counted: a drive is worth more than its trace.
  task::Task<Result<void>> begin() { return file_.begin(); }

 private:
  task::Task<Result<void>> run(DriveOp& op) override {
    const Time begun = env_.now();
    const Request request = op.request;
    const Result<void> done = co_await below().submit(request, op.data(), op.second(), op.token());
    const uint32_t block_size = geometry().block_size;
    file_.add({.arrival = begun.ns,
               .kind = name_of(request.kind),
               .offset = request.lba.value() * block_size,
               .bytes = request.blocks * block_size,
               .latency = (env_.now() - begun).ns,
               .result = done ? "ok" : name(done.error().code())});
    co_return done;
  }

  env::Env& env_;
  TraceFile file_;
};

task::Task<std::expected<std::string, std::string>> Trace::tell(std::vector<std::string> args) {
  const std::string word = args.size() == 1 ? args[0] : "";
  if (word != "start" && word != "stop" && word != "rotate") {
    co_return std::unexpected("trace knows three commands: start, stop and rotate");
  }
  if (word == "start" && file_.is_open()) co_return fmt::format("{} is open", file_.name());
  const std::string before = file_.is_open() ? file_.name() : "";
  const Result<void> ended = co_await file_.end();
  if (!ended) co_return std::unexpected(fmt::format("{}: {}", file_.name(), ended.error().text()));
  if (word == "stop") {
    co_return before.empty() ? "nothing was being recorded" : fmt::format("{} is whole", before);
  }
  const Result<void> begun = co_await file_.begin();
  if (!begun) co_return std::unexpected(fmt::format("no file: {}", begun.error().text()));
  co_return fmt::format("recording to {}", file_.name());
}

task::Task<Result<std::unique_ptr<Drive>>> open_trace(ServiceParts parts) {
  auto drive = std::make_unique<Trace>(parts.env, std::move(parts.below), parts.options.text("to"));
  if (parts.options.is_yes("recording")) {
    [[maybe_unused]] const Result<void> begun = co_await drive->begin();
  }
  co_return std::move(drive);
}

constexpr ServiceOption kOptions[] = {
    {.key = "to", .kind = ServiceOption::Kind::kText, .default_value = "", .what = "the file"},
    {.key = "recording",
     .kind = ServiceOption::Kind::kYesNo,
     .default_value = "yes",
     .what = "from the start; else when told"},
};

}  // namespace

constexpr Service kTrace{.name = "trace",
                         .what = "records every request in a file",
                         .example = "trace({}, to=requests.trace)",
                         .is_filter = true,
                         .options = kOptions,
                         .open = open_trace};

}  // namespace cairn::drive
