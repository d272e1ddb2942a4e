// SPDX-License-Identifier: Apache-2.0
#include "thing/thing_format.h"

struct Head {
  uint64_t magic;
};
uint32_t count_of(Bytes bytes) { return load<uint32_t>(bytes.subspan(4)); }
uint64_t magic_of(Bytes bytes) { return load<Head>(bytes).magic; }
