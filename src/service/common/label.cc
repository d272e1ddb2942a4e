// SPDX-License-Identifier: Apache-2.0
#include "service/common/label.h"

#include <utility>

#include "base/check.h"
#include "drive/blank.h"
#include "drive/scratch.h"

namespace cairn::drive {

namespace {

// Of what the two blocks gave, the error that tells most.
const Error& worse(const Error& a, const Error& b) {
  constexpr auto rank = [](const Error& error) {
    if (error == Errc::kUnsupported) return 3;
    if (error == Errc::kInvalid) return 2;
    return error == Errc::kCorrupt ? 1 : 0;
  };
  return rank(b) > rank(a) ? b : a;
}

// What the two blocks say.
struct LabelBlocks {
  std::optional<Label> newest;
  Error worst{Errc::kNotFound, "there is no label"};

  // A label of another kind beside ours is no torn write. Beside a first label, or one of a drive
  // that is being made, lies what was there before.
  bool is_foreign() const {
    if (newest && (newest->generation == 1 || newest->body.empty())) return false;
    return worst == Errc::kInvalid;
  }
};

task::Task<Result<LabelBlocks>> read_label_blocks(env::Env& env, Drive& drive, LabelKind kind,
                                                  task::CancelToken token) {
  const Geometry& shape = drive.geometry();
  if (shape.blocks <= kLabelBlocks) {
    co_return fail(Errc::kInvalid, "the drive below is too small for a label");
  }
  Result<Scratch> memory = Scratch::make(env, kLabelBlocks * shape.block_size);
  if (!memory) co_return fail(memory.error());
  const Result<void> done = co_await drive.read(Lba(0), memory->bytes(), token);
  if (!done) co_return fail(done.error());
  LabelBlocks blocks;
  for (size_t i = 0; i < kLabelBlocks; ++i) {
    Result<Label> label =
        decode_label(kind, memory->bytes().subspan(i * shape.block_size, shape.block_size));
    if (!label) {
      blocks.worst = worse(blocks.worst, label.error());
    } else if (!blocks.newest || label->generation > blocks.newest->generation) {
      blocks.newest = std::move(*label);
    }
  }
  co_return blocks;
}

Result<std::optional<Label>> judge(LabelBlocks blocks, const Geometry& shape) {
  if (!blocks.newest || blocks.worst == Errc::kUnsupported || blocks.is_foreign()) {
    if (blocks.worst == Errc::kNotFound) return std::nullopt;
    return fail(blocks.worst);
  }
  if (blocks.newest->blocks > shape.blocks) {
    return fail(Errc::kInvalid, "the drive below is smaller than it was");
  }
  return std::move(blocks.newest);
}

}  // namespace

task::Task<Result<std::optional<Label>>> read_label(env::Env& env, Drive& drive, LabelKind kind,
                                                    task::CancelToken token) {
  Result<LabelBlocks> blocks = co_await read_label_blocks(env, drive, kind, token);
  if (!blocks) co_return fail(blocks.error());
  co_return judge(std::move(*blocks), drive.geometry());
}

task::Task<Result<std::optional<Label>>> find_label(env::Env& env, Drive& drive, LabelKind kind,
                                                    LabelTerms terms) {
  Result<LabelBlocks> blocks = co_await read_label_blocks(env, drive, kind, {});
  if (!blocks) co_return fail(blocks.error());
  if (blocks->is_foreign()) {
    if (terms.may_format) co_return std::optional<Label>();
    co_return fail(not_blank(terms.number));
  }
  Result<std::optional<Label>> label = judge(std::move(*blocks), drive.geometry());
  if (!label) co_return label;
  if (*label && !(*label)->body.empty()) co_return label;
  if (!*label && !terms.may_format) {
    const Result<void> blank = co_await check_blank(env, drive, terms.number);
    if (!blank) co_return fail(blank.error());
  }
  co_return std::optional<Label>();
}

Label new_label(env::Env& env, const Drive& drive) {
  return {.id = {env.rng().next(), env.rng().next()},
          .generation = 0,
          .blocks = drive.geometry().blocks,
          .block_size = drive.geometry().block_size,
          .body = {}};
}

task::Task<Result<void>> put_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  Result<Scratch> memory = Scratch::make(env, label.block_size);
  if (!memory) co_return fail(memory.error());
  Label next = label;
  ++next.generation;
  encode_label(kind, next, memory->bytes());
  const MutableBytes pieces[] = {memory->bytes()};
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = true,
                        .metadata = true,
                        .lba = Lba(next.generation % kLabelBlocks),
                        .blocks = 1};
  const Result<void> done = co_await drive.submit(request, pieces);
  // After a failure the block may hold either: the next attempt writes the same one.
  if (done) label.generation = next.generation;
  co_return done;
}

Error taken_over() {
  return {Errc::kDenied,
          "another process has opened this drive since, and has it now: this one writes no more"};
}

Error changed_meanwhile() {
  return {Errc::kDenied, "another process changed this drive meanwhile: end it, and open it again"};
}

namespace {

// The newest label of an id, whatever service made it; generation 0: there is none.
task::Task<Result<LabelStamp>> read_newest(env::Env& env, Drive& drive, std::array<uint64_t, 2> id,
                                           task::CancelToken token = {}) {
  const uint32_t size = drive.geometry().block_size;
  Result<Scratch> memory = Scratch::make(env, kLabelBlocks * size);
  if (!memory) co_return fail(memory.error());
  const Request request{.metadata = true, .lba = Lba(0), .blocks = kLabelBlocks};
  const MutableBytes piece = memory->bytes();
  const Result<void> done = co_await drive.submit(request, {&piece, 1}, {}, token);
  if (!done) co_return fail(done.error());
  LabelStamp newest;
  for (size_t i = 0; i < kLabelBlocks; ++i) {
    const std::optional<LabelStamp> found = decode_label_stamp(id, piece.subspan(i * size, size));
    if (found && found->generation > newest.generation) newest = *found;
  }
  co_return newest;
}

}  // namespace

task::Task<Result<bool>> has_writer(env::Env& env, Drive& drive, const Label& label,
                                    task::CancelToken token) {
  const Result<LabelStamp> newest = co_await read_newest(env, drive, label.id, token);
  if (!newest) co_return fail(newest.error());
  if (newest->generation == 0) {
    co_return fail(Errc::kCorrupt, "the label is gone: the drive below is not the one it was");
  }
  co_return newest->writer == label.writer;
}

task::Task<Result<void>> claim_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  const Result<LabelStamp> newest = co_await read_newest(env, drive, label.id);
  if (!newest) co_return fail(newest.error());
  if (newest->generation != label.generation) {
    co_return fail(changed_meanwhile());
  }
  Label mine = label;
  mine.writer = env.rng().next() | 1;
  const Result<void> done = co_await put_label(env, drive, kind, mine);
  if (done) label = std::move(mine);
  co_return done;
}

task::Task<Result<void>> write_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  if (label.writer != 0 && label.generation > 0) {
    const Result<bool> is_mine = co_await has_writer(env, drive, label);
    if (!is_mine) co_return fail(is_mine.error());
    if (!*is_mine) co_return fail(taken_over());
  }
  co_return co_await put_label(env, drive, kind, label);
}

task::Task<Result<void>> begin_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  Label unmade = label;
  unmade.body.clear();
  unmade.writer = env.rng().next() | 1;
  Result<void> done;
  // What was there may have the same id: of an attempt that a crash ended.
  for (uint64_t i = 0; i < kLabelBlocks && done; ++i) {
    done = co_await put_label(env, drive, kind, unmade);
  }
  if (!done) co_return done;
  label.generation = unmade.generation;
  label.writer = unmade.writer;
  co_return done;
}

task::Task<Result<void>> finish_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  CHECK(!label.body.empty());
  Result<void> done;
  for (uint64_t i = 0; i < kLabelBlocks && done; ++i) {
    done = co_await write_label(env, drive, kind, label);
  }
  co_return done;
}

}  // namespace cairn::drive
