// SPDX-License-Identifier: Apache-2.0
#include "service/common/sealed_format.h"

#include <utility>

#include "base/crc32c.h"

namespace cairn::drive {

void seal(MutableBytes block, uint64_t magic, uint32_t version) {
  Seal seal{.magic = magic, .version = version, .checksum = 0};
  store(block, seal);
  seal.checksum = crc32c(block);
  store(block, seal);
}

bool is_whole(Bytes block) {
  Seal seal = load<Seal>(block);
  const uint32_t checksum = std::exchange(seal.checksum, 0);
  const Bytes head(reinterpret_cast<const std::byte*>(&seal), sizeof seal);
  return crc32c(block.subspan(sizeof seal), crc32c(head)) == checksum;
}

}  // namespace cairn::drive
