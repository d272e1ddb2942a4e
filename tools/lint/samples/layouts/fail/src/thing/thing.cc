// SPDX-License-Identifier: Apache-2.0
#include "thing/thing.h"

struct Head {
  uint64_t magic;
};

// load<uint32_t>(bytes) in a comment is none.
uint32_t count_of(Bytes bytes) { return load<uint32_t>(bytes.subspan(4)); }
uint16_t port_of(const uint8_t* at) { return at[0] << 8 | at[1]; }
uint32_t swapped(uint32_t value) { return std::byteswap(value); }
uint64_t magic_of(Bytes bytes) { return load<Head>(bytes).magic; }
void fill(FieldWriter& writer) { writer.number(7); }
std::string encoded(const Point& point) { return encode_message<Layout>(point); }
struct __attribute__((packed)) Tight {
  uint8_t kind;
  uint64_t number;
};
