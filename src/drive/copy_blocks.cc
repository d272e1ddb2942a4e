// SPDX-License-Identifier: Apache-2.0
#include "drive/copy_blocks.h"

#include <algorithm>

#include "base/units.h"
#include "drive/scatter.h"
#include "drive/scratch.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kLookBytes = 1_GiB;
// Smaller holes than this in larger units are still worth a request of their own: the drive's units
// may begin elsewhere than it says.
constexpr uint64_t kUnitBytesMax = 64_KiB;
constexpr uint64_t kZeroBytes = 64_KiB;  // written at a time where zeroes must be

Request as_holes(Request request) {
  request.kind = Request::Kind::kWriteZeroes;
  request.keep_space = false;
  return request;
}

}  // namespace

uint64_t holes_at(const Drive& drive, uint64_t lba, uint64_t max) {
  const Geometry& shape = drive.geometry();
  if (lba >= shape.blocks) return 0;
  max = std::min({max, shape.blocks - lba, kLookBytes / shape.block_size});
  if (max == 0) return 0;
  const Extent extent = drive.extent_at(Lba(lba), max);
  return extent.is_hole ? std::min(extent.blocks, max) : 0;
}

CopyRun copy_run_at(const CopyShape& shape, Bytes data, uint64_t first) {
  const uint64_t blocks = data.size() / shape.block_size;
  CopyRun run{.first = first};
  for (uint64_t at = first; at < blocks;) {
    const uint64_t end = std::min(blocks, at + shape.unit - (shape.lba + at) % shape.unit);
    const bool zero = is_zero(data.subspan(at * shape.block_size, (end - at) * shape.block_size));
    if (at == first) run.is_zero = zero;
    if (zero != run.is_zero) break;
    run.count += end - at;
    at = end;
  }
  return run;
}

task::Task<Result<void>> write_copy(Drive& to, Request request, MutableBytes data,
                                    task::CancelToken token) {
  const Geometry& below = to.geometry();
  const uint64_t unit_max = std::max<uint64_t>(kUnitBytesMax / below.block_size, 1);
  const CopyShape shape{.lba = request.lba.value(),
                        .unit = std::clamp<uint64_t>(below.discard_blocks, 1, unit_max),
                        .block_size = below.block_size};
  const uint64_t blocks = request.blocks;
  for (uint64_t at = 0; at < blocks;) {
    const CopyRun run = copy_run_at(shape, data, at);
    Request part = request;
    part.lba = Lba(shape.lba + run.first);
    part.blocks = run.count;
    const MutableBytes piece =
        data.subspan(run.first * shape.block_size, run.count * shape.block_size);
    Result<void> done = fail(Errc::kUnsupported, "");
    if (run.is_zero) done = co_await to.submit(as_holes(part), {}, {}, token);
    if (!done && done.error() == Errc::kUnsupported) {
      done = co_await to.submit(part, {&piece, 1}, {}, token);
    }
    if (!done) co_return done;
    at += run.count;
  }
  co_return Result<void>();
}

task::Task<Result<void>> write_holes(env::Env& env, Drive& to, Request request,
                                     task::CancelToken token) {
  Result<void> done = co_await to.submit(as_holes(request), {}, {}, token);
  if (done || done.error() != Errc::kUnsupported) co_return done;
  const Geometry& below = to.geometry();
  const uint64_t step =
      std::clamp<uint64_t>(kZeroBytes / below.block_size, 1, below.transfer_blocks);
  const Result<Scratch> zeroes = Scratch::make(env, step * below.block_size);
  if (!zeroes) co_return fail(zeroes.error());
  std::ranges::fill(zeroes->bytes(), std::byte{0});
  const uint64_t end = request.lba.value() + request.blocks;
  request.kind = Request::Kind::kWrite;
  for (uint64_t at = request.lba.value(); at < end; at += step) {
    request.lba = Lba(at);
    request.blocks = std::min(step, end - at);
    const MutableBytes piece = zeroes->first(request.blocks * below.block_size);
    done = co_await to.submit(request, {&piece, 1}, {}, token);
    if (!done) co_return done;
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
