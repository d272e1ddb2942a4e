// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/copy_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/nvme/pieces.h"
#include "drive/copy_blocks.h"
#include "nvme/format/copy_format.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

class Copying {
 public:
  Copying(env::Env& env, drive::Drive& source, fabric::RemoteDrive& target, const CopyPlan& plan)
      : env_(env), source_(source), target_(target), plan_(plan) {}

  uint64_t piece_size() const {
    if (!plan_.by_target) return Flight::kPieceSize;
    const uint64_t max = uint64_t{target_.info().copy_blocks} * target_.geometry().block_size;
    return std::min(max, Flight::kPieceSize);
  }

  task::Task<Result<void>> copy(uint64_t done, MutableBytes memory) {
    if (plan_.by_target) {
      const bool copied = co_await copy_by_target(done, memory.size());
      if (copied) {
        result_.bytes_by_target += memory.size();
        co_return Result<void>{};
      }
    }
    Result<void> moved = co_await copy_by_host(done, memory);
    co_return moved;
  }

  const CopyResult& result() const { return result_; }

 private:
  // False: it did not, and the blocks may hold anything.
  task::Task<bool> copy_by_target(uint64_t done, uint64_t length) {
    const uint32_t block = target_.geometry().block_size;
    nvme::CopyRange range;
    range.start = (plan_.from + done) / block;
    range.blocks = static_cast<uint16_t>(length / block - 1);
    nvme::Sqe sqe = nvme::Sqe::make(nvme::IoOpcode::kCopy, target_.info().nsid);
    const nvme::CopyFields fields{.destination = Lba((plan_.to + done) / block),
                                  .force_unit_access = plan_.durable};
    fields.encode(sqe);
    const Result<nvme::Cqe> answer =
        co_await target_.execute(sqe, nvme::mutable_bytes_of(range), env_.stop_token());
    co_return answer && answer->get_status().ok();
  }

  task::Task<Result<void>> copy_by_host(uint64_t done, MutableBytes memory) {
    const Lba from((plan_.from + done) / source_.geometry().block_size);
    const Result<void> read = co_await source_.read(from, memory, env_.stop_token());
    if (!read) co_return read;
    const uint32_t block = target_.geometry().block_size;
    const drive::Request request{.kind = drive::Request::Kind::kWrite,
                                 .durable = plan_.durable,
                                 .lba = Lba((plan_.to + done) / block),
                                 .blocks = memory.size() / block};
    const Result<void> written =
        co_await drive::write_copy(target_, request, memory, env_.stop_token());
    co_return written;
  }

  env::Env& env_;
  drive::Drive& source_;
  fabric::RemoteDrive& target_;
  const CopyPlan plan_;
  CopyResult result_;
};

// A piece of the source in one half of the memory, and of the target in the other.
task::Task<Result<void>> read_both(env::Env& env, drive::Drive& source, drive::Drive& target,
                                   CopyPlan plan, MutableBytes memory) {
  const size_t half = memory.size() / 2;
  const Lba from(plan.from / source.geometry().block_size);
  Result<void> read = co_await source.read(from, memory.first(half), env.stop_token());
  if (!read) co_return read;
  const Lba to(plan.to / target.geometry().block_size);
  read = co_await target.read(to, memory.subspan(half), env.stop_token());
  co_return read;
}

task::Task<Attempt<void>> expect_same(Bytes memory, uint64_t done, CopyPlan plan) {
  const size_t half = memory.size() / 2;
  const auto differ = std::ranges::mismatch(memory.first(half), memory.subspan(half));
  if (differ.in1 == memory.first(half).end()) co_return Attempt<void>{};
  const uint64_t at = done / 2 + static_cast<uint64_t>(differ.in1 - memory.begin());
  co_return refuse(fmt::format(
      "the copy differs from its source: byte {} of the source is {:02x}, byte {} of the target "
      "is {:02x}; is somebody else writing there?",
      plan.from + at, static_cast<int>(*differ.in1), plan.to + at, static_cast<int>(*differ.in2)));
}

}  // namespace

task::Task<Attempt<CopyResult>> copy_range(env::Env& env, drive::Drive& source,
                                           fabric::RemoteDrive& target, CopyPlan plan,
                                           Progress& progress) {
  Result<std::unique_ptr<Flight>> flight = Flight::make(env);
  if (!flight) co_return refuse(flight.error().text());
  Copying copying(env, source, target, plan);
  PieceWork work;
  work.piece_size = copying.piece_size();
  work.start = [&](uint64_t done, MutableBytes memory) { return copying.copy(done, memory); };
  work.what = [&](uint64_t done, uint64_t length) {
    return piece_text("copying", length, plan.from + done);
  };
  const Attempt<void> copied = co_await work_pieces(**flight, plan.length, work, progress);
  if (!copied) co_return std::unexpected(copied.error());
  if (!plan.durable) {
    const Result<void> flushed = co_await target.flush(env.stop_token());
    if (!flushed) co_return std::unexpected(server::cannot_do("flushing", flushed.error()));
  }
  co_return copying.result();
}

task::Task<Attempt<void>> compare_ranges(env::Env& env, drive::Drive& source, drive::Drive& target,
                                         CopyPlan plan, Progress& progress) {
  Result<std::unique_ptr<Flight>> flight = Flight::make(env);
  if (!flight) co_return refuse(flight.error().text());
  // Each byte is there twice: once of the source, once of the target.
  PieceWork work;
  work.start = [&](uint64_t done, MutableBytes memory) {
    CopyPlan part = plan;
    part.from += done / 2;
    part.to += done / 2;
    return read_both(env, source, target, part, memory);
  };
  work.ended = [&](uint64_t done, MutableBytes memory) { return expect_same(memory, done, plan); };
  work.what = [&](uint64_t done, uint64_t length) {
    return piece_text("reading back", length / 2, plan.from + done / 2);
  };
  Attempt<void> outcome = co_await work_pieces(**flight, plan.length * 2, work, progress);
  co_return outcome;
}

}  // namespace cairn::apps
