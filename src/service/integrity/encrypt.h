// SPDX-License-Identifier: Apache-2.0
// encrypt: what lies on the drive below is ciphertext, of AES-256-XTS.
//
//   encrypt(DRIVE, key=FILE, old_key=none, rate=0)
//
// FILE holds 64 bytes as base64 in one line; `cairn key new drive --output FILE` makes one. The
// cipher's key and a value that tells a wrong key are derived from them and the label's id by HKDF,
// so that one file may serve many drives: equal blocks of two drives differ. A sector is a block of
// the drive; its tweak is the block's number. XTS hides contents and does not prove them: whoever
// can write to the medium can put old ciphertext back; checksum() below or above finds accidents,
// not malice.
//
// Blocks that were never written, or discarded, or zeroed by request, are zeroes on the medium and
// read as zeroes: whoever sees the medium sees which they are. Ciphertext of written data is all
// zeroes with probability 2^-4096 or less per block, which nobody without the key can raise.
//
// `tell rotate FILE` gives it another key while in use. Windows of 64 KiB, each held alone, go from
// one key to the other at `rate` bytes per second (0: any); holes and zeroes stay as they are and
// take no space. Before a window is written its old
// ciphertext is durable in a journal and the label says so; before anybody uses the window again
// the label says that it is done. After a crash the window in flight is written again from the
// journal. Until the end both are needed: a drive that is opened meanwhile takes key=NEW,
// old_key=OLD and goes on; it always opens. While the medium refuses a window its blocks fail with
// kIo, or kNoSpace when it is full; a concern says why, and it is tried again every second.
//
// A blank drive is discarded and becomes a new one.
//
// Does not open (nothing is written): a wrong key; a rotation under way without both keys; a label
// of another service, or one whose numbers make no sense; a drive that became smaller.
//
// Geometry as below, less 128 KiB at the start (4 blocks if these are larger), and transfers of at
// most 1 MiB, for which it takes a buffer; atomic writes in units that divide that offset.
#pragma once

#include <optional>
#include <string_view>

#include "crypto/secret.h"
#include "service/common/service.h"

namespace cairn::drive {

extern const Service kEncrypt;

inline constexpr size_t kDriveKeySize = 64;
using DriveKey = crypto::SecretBytes<kDriveKeySize>;
// The key in a key file's text; none: it is not 64 bytes in base64.
std::optional<DriveKey> parse_drive_key(std::string_view text);

}  // namespace cairn::drive
