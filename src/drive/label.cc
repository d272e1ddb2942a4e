// SPDX-License-Identifier: Apache-2.0
#include "drive/label.h"
#include "drive/scratch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"

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
static_assert(sizeof(Head) + kLabelBodyMax <= 512);

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
  head.checksum = crc32c(block);
  store(block, head);
}

Result<Label> decode_label(const LabelKind& kind, Bytes block) {
  if (is_blank(block)) return fail(Errc::kNotFound, "there is no label");
  const auto head = load<Head>(block);
  if (head.magic != kMagic) {
    return fail(Errc::kInvalid,
                "the drive below holds something else; to use it nevertheless, discard its first "
                "64 KiB");
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
               .body = {body.begin(), body.end()}};
}

task::Task<Result<std::optional<Label>>> read_label(env::Env& env, Drive& drive, LabelKind kind,
                                                    task::CancelToken token) {
  const Geometry& shape = drive.geometry();
  if (shape.blocks <= kLabelBlocks) {
    co_return fail(Errc::kInvalid, "the drive below is too small for a label");
  }
  Result<Scratch> memory = Scratch::make(env, kLabelBlocks * shape.block_size);
  if (!memory) co_return fail(memory.error());
  const Result<void> done = co_await drive.read(Lba(0), memory->bytes(), token);
  if (!done) co_return fail(done.error());
  std::optional<Label> newest;
  Error worst(Errc::kNotFound, "there is no label");
  for (size_t i = 0; i < kLabelBlocks; ++i) {
    Result<Label> label =
        decode_label(kind, memory->bytes().subspan(i * shape.block_size, shape.block_size));
    if (!label) {
      worst = worse(worst, label.error());
    } else if (!newest || label->generation > newest->generation) {
      newest = std::move(*label);
    }
  }
  // A label of another kind beside ours is no torn write.
  if (!newest || worst == Errc::kUnsupported || worst == Errc::kInvalid) {
    if (worst == Errc::kNotFound) co_return std::optional<Label>();
    co_return fail(worst);
  }
  if (newest->blocks > shape.blocks) {
    co_return fail(Errc::kInvalid, "the drive below is smaller than it was");
  }
  co_return newest;
}

Label new_label(env::Env& env, const Drive& drive) {
  return {.id = {env.rng().next(), env.rng().next()},
          .generation = 0,
          .blocks = drive.geometry().blocks,
          .block_size = drive.geometry().block_size,
          .body = {}};
}

task::Task<Result<void>> write_label(env::Env& env, Drive& drive, LabelKind kind, Label& label) {
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

}  // namespace cairn::drive
