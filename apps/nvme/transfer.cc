// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/nvme/flight.h"
#include "apps/nvme/pieces.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

task::Task<Result<void>> read_piece(env::Env& env, drive::Drive& drive, Lba lba,
                                    MutableBytes into) {
  Result<void> done = co_await drive.read(lba, into, env.stop_token());
  co_return done;
}

task::Task<Result<void>> write_piece(env::Env& env, drive::Drive& drive, drive::Request request,
                                     MutableBytes from) {
  Result<void> done = co_await drive.submit(request, {&from, 1}, {}, env.stop_token());
  co_return done;
}

// One transfer from an input to a drive.
class Writing {
 public:
  Writing(env::Env& env, drive::Drive& drive, const WriteOptions& options, InputFile& input,
          Progress& progress)
      : env_(env), drive_(drive), options_(options), input_(input), progress_(progress) {}

  // Refuses what is known to be wrong before the first byte is written.
  Attempt<void> check() {
    const drive::Geometry& geometry = drive_.geometry();
    RangeOptions range{.offset = options_.offset, .length = options_.length};
    if (input_.size()) {
      const uint64_t size = *input_.size();
      if (!options_.length) {
        if (size == 0) return refuse(fmt::format("{} is empty", input_.name()));
        if (auto sound = check_blocks(fmt::format("the size of {}, {} bytes,", input_.name(), size),
                                      size, geometry.block_size);
            !sound) {
          return refuse(sound.error().text + "; give --length to write a part of it");
        }
        range.length = size;
      } else if (size < *options_.length) {
        return refuse(fmt::format("{} has {} bytes, less than --length {}: nothing was written",
                                  input_.name(), size, *options_.length));
      }
    }
    const Attempt<ByteRange> sound = check_range(range, geometry);
    if (!sound) return std::unexpected(sound.error());
    is_bounded_ = range.length.has_value();
    left_ = sound->length;
    return {};
  }

  task::Task<Attempt<uint64_t>> run(Flight& flight) {
    Attempt<void> outcome;
    bool has_ended = false;
    while (outcome && !has_ended && left_ > 0) {
      if (flight.is_full()) {
        outcome = co_await end_oldest(flight);
        continue;
      }
      const Attempt<size_t> filled = co_await fill(flight.next_memory());
      if (!filled) {
        outcome = std::unexpected(filled.error());
        break;
      }
      has_ended = *filled < std::min<uint64_t>(left_, Flight::kPieceSize);
      start(flight, *filled);
      if (has_ended) outcome = judge_end(*filled);
    }
    while (!flight.is_empty()) {
      const Attempt<void> ended = co_await end_oldest(flight);
      if (outcome && !ended) outcome = ended;
    }
    if (outcome && left_ == 0 && !is_bounded_) outcome = co_await expect_end();
    if (!outcome) co_return std::unexpected(outcome.error());
    if (!options_.durable) {
      const Result<void> flushed = co_await drive_.flush(env_.stop_token());
      if (!flushed) co_return std::unexpected(server::cannot_do("flushing", flushed.error()));
    }
    co_return written_;
  }

 private:
  task::Task<Attempt<size_t>> fill(MutableBytes memory) {
    const size_t wanted = std::min<uint64_t>(left_, memory.size());
    Attempt<size_t> got = co_await input_.read(env_, memory.first(wanted));
    co_return got;
  }

  // Whole blocks only; what follows them is judge_end's.
  void start(Flight& flight, size_t filled) {
    const uint32_t block = drive_.geometry().block_size;
    const uint64_t length = align_down(filled, block);
    if (length == 0) return;
    const drive::Request request{.kind = drive::Request::Kind::kWrite,
                                 .durable = options_.durable,
                                 .lba = Lba((options_.offset + written_) / block),
                                 .blocks = length / block};
    flight.start(write_piece(env_, drive_, request, flight.next_memory().first(length)));
    written_ += length;
    left_ -= length;
  }

  // The input ended before the range did.
  Attempt<void> judge_end(size_t filled) const {
    const uint64_t rest = filled % drive_.geometry().block_size;
    if (is_bounded_) {
      return refuse(
          fmt::format("{} ended after {} bytes, before --length {}: {} bytes in whole "
                      "blocks were written, nothing behind them",
                      input_.name(), written_ + rest, *options_.length, written_));
    }
    if (rest == 0 && written_ > 0) return {};
    if (written_ + rest == 0) return refuse(fmt::format("{} is empty", input_.name()));
    return refuse(
        fmt::format("{} ended after {} bytes, no multiple of the block of {}: the last "
                    "{} bytes were not written",
                    input_.name(), written_ + rest, drive_.geometry().block_size, rest));
  }

  // An endless input that filled the drive.
  task::Task<Attempt<void>> expect_end() {
    std::byte more{};
    const Attempt<size_t> got = co_await input_.read(env_, {&more, 1});
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return Attempt<void>{};
    co_return refuse(
        fmt::format("{} goes on behind the end of the namespace: its first {} bytes "
                    "were written",
                    input_.name(), written_));
  }

  task::Task<Attempt<void>> end_oldest(Flight& flight) {
    const Result<void> done = co_await flight.take();
    const uint64_t length = std::min<uint64_t>(Flight::kPieceSize, written_ - progress_.done());
    if (!done) {
      co_return std::unexpected(server::cannot_do(
          piece_text("writing", length, options_.offset + progress_.done()), done.error()));
    }
    progress_.add(length);
    co_return Attempt<void>{};
  }

  env::Env& env_;
  drive::Drive& drive_;
  const WriteOptions options_;
  InputFile& input_;
  Progress& progress_;
  bool is_bounded_ = false;
  uint64_t left_ = 0;     // of the range
  uint64_t written_ = 0;  // or on their way
};

}  // namespace

task::Task<Attempt<void>> read_range(env::Env& env, drive::Drive& drive, ByteRange range,
                                     OutputFile& output, Progress& progress) {
  Result<std::unique_ptr<Flight>> flight = Flight::make(env);
  if (!flight) co_return refuse(flight.error().text());
  const uint32_t block = drive.geometry().block_size;
  PieceWork work;
  work.start = [&](uint64_t done, MutableBytes memory) {
    return read_piece(env, drive, Lba((range.offset + done) / block), memory);
  };
  work.ended = [&](uint64_t, MutableBytes memory) { return output.write(env, memory); };
  work.what = [&](uint64_t done, uint64_t length) {
    return piece_text("reading", length, range.offset + done);
  };
  Attempt<void> outcome = co_await work_pieces(**flight, range.length, work, progress);
  co_return outcome;
}

task::Task<Attempt<uint64_t>> write_range(env::Env& env, drive::Drive& drive, WriteOptions options,
                                          InputFile& input, Progress& progress) {
  Result<std::unique_ptr<Flight>> flight = Flight::make(env);
  if (!flight) co_return refuse(flight.error().text());
  Writing writing(env, drive, options, input, progress);
  if (const Attempt<void> sound = writing.check(); !sound) co_return std::unexpected(sound.error());
  Attempt<uint64_t> written = co_await writing.run(**flight);
  co_return written;
}

}  // namespace cairn::apps
