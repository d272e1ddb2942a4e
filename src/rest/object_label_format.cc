// SPDX-License-Identifier: Apache-2.0
#include "rest/object_label_format.h"

#include <bit>

#include "rest/endpoint.h"
#include "service/common/label_format.h"

namespace cairn::rest {

namespace {

constexpr drive::LabelKind kKind{.service = "rest", .version = 1};

struct Body {
  uint32_t block_size = 0;
  uint32_t object_size = 0;
  std::array<uint64_t, 2> owner{};
};
static_assert(sizeof(Body) == 24);

bool is_power(uint32_t value, uint32_t min, uint32_t max) {
  return std::has_single_bit(value) && value >= min && value <= max;
}

}  // namespace

Result<void> check_shape(uint64_t blocks, uint32_t block_size, uint32_t object_size) {
  if (!is_power(block_size, 512, 65536)) {
    return fail(Errc::kInvalid, "a block is a power of two, 512 to 65536");
  }
  if (!is_power(object_size, block_size, kObjectSizeMax)) {
    return fail(Errc::kInvalid, "an object is a power of two, a block to 1M");
  }
  if (blocks == 0 || blocks > UINT64_MAX / 2 / block_size) {
    return fail(Errc::kInvalid, "the size is nothing, or too much");
  }
  if ((blocks * block_size - 1) / object_size >= kObjectsMax) {
    return fail(Errc::kInvalid, "so large a drive needs larger objects: give object=1M");
  }
  return {};
}

std::array<std::byte, kLabelSize> ObjectLabel::encode() const {
  drive::Label label{
      .id = id, .generation = generation, .blocks = blocks, .block_size = kLabelSize};
  label.body.resize(sizeof(Body));
  store(MutableBytes(label.body),
        Body{.block_size = block_size, .object_size = object_size, .owner = owner});
  std::array<std::byte, kLabelSize> bytes{};
  drive::encode_label(kKind, label, bytes);
  return bytes;
}

Result<ObjectLabel> ObjectLabel::decode(Bytes bytes) {
  if (bytes.size() != kLabelSize) return fail(Errc::kCorrupt, "a label of another length");
  const Result<drive::Label> label = drive::decode_label(kKind, bytes);
  if (!label && label.error() == Errc::kUnsupported) {
    return fail(Errc::kUnsupported, "a label of another version of this format",
                label.error().detail());
  }
  if (!label || label->body.size() != sizeof(Body)) {
    return fail(Errc::kCorrupt, "what is there is no label of a drive, or a damaged one");
  }
  const auto body = load<Body>(label->body);
  if (!check_shape(label->blocks, body.block_size, body.object_size)) {
    return fail(Errc::kCorrupt, "the label's numbers make no drive");
  }
  return ObjectLabel{.id = label->id,
                     .generation = label->generation,
                     .blocks = label->blocks,
                     .block_size = body.block_size,
                     .object_size = body.object_size,
                     .owner = body.owner};
}

}  // namespace cairn::rest
