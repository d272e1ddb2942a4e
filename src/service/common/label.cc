// SPDX-License-Identifier: Apache-2.0
#include "service/common/label.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "drive/blank.h"
#include "drive/scratch.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kMagic = 0x6c6562614c6e7243;  // "CrnLabel"

struct Head {
  uint64_t magic;
  std::array<char, kLabelServiceMax + 1> service;
  uint32_t version;
  uint32_t checksum;
  std::array<uint64_t, 2> id;
  uint64_t generation;
  uint64_t blocks;
  uint32_t block_size;
  uint32_t body_size;
};
static_assert(sizeof(Head) == 72);
// Of the first 512 bytes the last ones are medium and writer; they were zero before there were any.
constexpr size_t kWriterOffset = 512 - sizeof(uint64_t);
constexpr size_t kMediumOffset = kWriterOffset - sizeof(uint64_t);
static_assert(sizeof(Head) + kLabelBodyMax <= kMediumOffset);

bool is_blank(Bytes block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_whole(Bytes block, Head head) {
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  return crc32c(block.subspan(sizeof head), crc32c(start)) == checksum;
}

// Of what the two blocks gave, the error that tells most.
const Error& worse(const Error& a, const Error& b) {
  constexpr auto rank = [](const Error& error) {
    if (error == Errc::kUnsupported) return 3;
    if (error == Errc::kInvalid) return 2;
    return error == Errc::kCorrupt ? 1 : 0;
  };
  return rank(b) > rank(a) ? b : a;
}

}  // namespace

void encode_label(const LabelKind& kind, const Label& label, MutableBytes block) {
  CHECK(kind.service.size() <= kLabelServiceMax && label.body.size() <= kLabelBodyMax);
  std::ranges::fill(block, std::byte{0});
  Head head{.magic = kMagic,
            .service = {},
            .version = kind.version,
            .checksum = 0,
            .id = label.id,
            .generation = label.generation,
            .blocks = label.blocks,
            .block_size = label.block_size,
            .body_size = static_cast<uint32_t>(label.body.size())};
  std::ranges::copy(kind.service, head.service.begin());
  store(block, head);
  std::ranges::copy(label.body, block.begin() + sizeof head);
  store(block.subspan(kMediumOffset), label.medium);
  store(block.subspan(kWriterOffset), label.writer);
  head.checksum = crc32c(block);
  store(block, head);
}

Result<Label> decode_label(const LabelKind& kind, Bytes block) {
  if (is_blank(block)) return fail(Errc::kNotFound, "there is no label");
  const auto head = load<Head>(block);
  if (head.magic != kMagic) {
    return fail(Errc::kInvalid, "the drive below holds something else");
  }
  if (!is_whole(block, head)) return fail(Errc::kCorrupt, "the label is damaged");
  if (strnlen(head.service.data(), head.service.size()) != kind.service.size() ||
      !std::ranges::equal(kind.service,
                          std::string_view(head.service.data(), kind.service.size()))) {
    return fail(Errc::kInvalid, "the drive below was made by another service of a stack");
  }
  if (head.version != kind.version) {
    return fail(Errc::kUnsupported, "the drive below has another version of this format; version",
                static_cast<int32_t>(head.version));
  }
  if (head.body_size > kLabelBodyMax || head.generation == 0 || head.block_size != block.size()) {
    return fail(Errc::kCorrupt, "the label makes no sense");
  }
  const Bytes body = block.subspan(sizeof head, head.body_size);
  return Label{.id = head.id,
               .generation = head.generation,
               .blocks = head.blocks,
               .block_size = head.block_size,
               .body = {body.begin(), body.end()},
               .writer = load<uint64_t>(block.subspan(kWriterOffset)),
               .medium = load<uint64_t>(block.subspan(kMediumOffset))};
}

namespace {

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
struct Newest {
  uint64_t generation = 0;
  uint64_t writer = 0;
};

task::Task<Result<Newest>> read_newest(env::Env& env, Drive& drive, std::array<uint64_t, 2> id,
                                       task::CancelToken token = {}) {
  const uint32_t size = drive.geometry().block_size;
  Result<Scratch> memory = Scratch::make(env, kLabelBlocks * size);
  if (!memory) co_return fail(memory.error());
  const Request request{.metadata = true, .lba = Lba(0), .blocks = kLabelBlocks};
  const MutableBytes piece = memory->bytes();
  const Result<void> done = co_await drive.submit(request, {&piece, 1}, {}, token);
  if (!done) co_return fail(done.error());
  Newest newest;
  for (size_t i = 0; i < kLabelBlocks; ++i) {
    const Bytes block = piece.subspan(i * size, size);
    const auto head = load<Head>(block);
    if (head.magic != kMagic || head.id != id || !is_whole(block, head)) continue;
    if (head.generation <= newest.generation) continue;
    newest = {.generation = head.generation,
              .writer = load<uint64_t>(block.subspan(kWriterOffset))};
  }
  co_return newest;
}

}  // namespace

task::Task<Result<bool>> has_writer(env::Env& env, Drive& drive, const Label& label,
                                    task::CancelToken token) {
  const Result<Newest> newest = co_await read_newest(env, drive, label.id, token);
  if (!newest) co_return fail(newest.error());
  if (newest->generation == 0) {
    co_return fail(Errc::kCorrupt, "the label is gone: the drive below is not the one it was");
  }
  co_return newest->writer == label.writer;
}

task::Task<Result<void>> claim_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
  const Result<Newest> newest = co_await read_newest(env, drive, label.id);
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
