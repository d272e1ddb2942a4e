// SPDX-License-Identifier: Apache-2.0
// How views, and what nodes say of themselves, lie in the metadata store.
//
//   0   magic "CKVR"
//   4   kind: 1 view, 2 node                  one byte
//   5   version                               one byte
//   6   zero                                  two bytes
//   8   length of the body                    four bytes
//   12  CRC32C of bytes 0 to 11 and the body  four bytes
//   16  the body: numbers little-endian, texts and lists with a count of four bytes before them
//
// In a view a replica names its member by its place in the list of members, in two bytes. All is
// read as hostile input: what decodes keeps every limit and order of view.h, and encoding it again
// gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "kv/ring/view.h"

namespace cairn::kv::ring {

// What a node says of itself, for as long as its lease lasts.
struct NodeRecord {
  Member member;  // its state: whether it wants to leave
  Epoch seen;     // it acts by no older view any more
  // Ranges whose joining replica has everything, as this node, the one before it in the chain,
  // knows: their ends and epochs.
  std::vector<std::pair<uint64_t, Epoch>> copied;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

std::string encode(const View& view);
std::string encode(const NodeRecord& node);

// kCorrupt: damaged, or not such a record. kUnsupported: of another version.
Result<View> decode_view(Bytes bytes);
Result<NodeRecord> decode_node(Bytes bytes);

}  // namespace cairn::kv::ring
