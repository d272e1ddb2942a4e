// SPDX-License-Identifier: Apache-2.0
#include "volume/mega_vol_format.h"

namespace cairn::volume {

namespace {

constexpr size_t kBodySize = 32;
constexpr size_t kExtentBytesAt = 16;
constexpr size_t kExtentsAt = 24;
constexpr size_t kIdAt = 28;
constexpr size_t kZeroAt = 30;

}  // namespace

std::vector<std::byte> encode_mega_vol(const MegaVolLabel& label) {
  std::vector<std::byte> body(kBodySize);
  const MutableBytes bytes(body);
  store(bytes, label.pool);
  store(bytes.subspan(kExtentBytesAt), label.extent_bytes);
  store(bytes.subspan(kExtentsAt), label.extents);
  store(bytes.subspan(kIdAt), label.id.value());
  return body;
}

Result<MegaVolLabel> decode_mega_vol(Bytes body) {
  if (body.size() != kBodySize || load<uint16_t>(body.subspan(kZeroAt)) != 0) {
    return fail(Errc::kCorrupt, "the label of a MegaVol has another length");
  }
  const MegaVolLabel label{.pool = load<Uuid>(body),
                           .extent_bytes = load<uint64_t>(body.subspan(kExtentBytesAt)),
                           .extents = load<uint32_t>(body.subspan(kExtentsAt)),
                           .id = MegaVolId(load<uint16_t>(body.subspan(kIdAt)))};
  if (!check_extent_bytes(label.extent_bytes) || label.extents < 2 ||
      label.extents > kMegaVolExtentsMax || label.id.value() >= kMegaVolsMax) {
    return fail(Errc::kCorrupt, "the label of a MegaVol makes no sense");
  }
  return label;
}

}  // namespace cairn::volume
