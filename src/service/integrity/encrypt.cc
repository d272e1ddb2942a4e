// SPDX-License-Identifier: Apache-2.0
// With which keys encrypt opens: judged by the label, before anything is written.
#include "service/integrity/encrypt.h"

#include <utility>

#include "crypto/base64.h"
#include "service/integrity/encrypt_drive.h"

namespace cairn::drive {

namespace {

struct Keys {
  DriveKey key;
  std::optional<DriveKey> old_key;
};

Result<Keys> read_keys(const ServiceParts& parts) {
  const auto none =
      fail(Errc::kInvalid,
           "a key file holds no key: it is 64 bytes in base64; 'cairn key new drive --output "
           "FILE' makes one");
  const auto key = parts.contents.find("key");
  if (key == parts.contents.end()) return fail(Errc::kInvalid, "it needs a key: give it key=FILE");
  const std::optional<DriveKey> parsed = parse_drive_key(as_text(key->second.bytes()));
  if (!parsed) return none;
  Keys keys{.key = *parsed, .old_key = {}};
  const auto old_key = parts.contents.find("old_key");
  if (old_key == parts.contents.end()) return keys;
  keys.old_key = parse_drive_key(as_text(old_key->second.bytes()));
  if (!keys.old_key) return none;
  return keys;
}

Result<EncryptFound> make_new(env::Env& env, const Drive& below, const Keys& keys) {
  const std::optional<EncryptState> state = new_encrypt_state(below.geometry());
  if (!state) return fail(Errc::kInvalid, "the drive below is too small: use 256K or more");
  Label label = new_label(env, below);
  EncryptKey key(keys.key, label);
  EncryptFound found{
      .label = std::move(label), .state = *state, .key = std::move(key), .old_key = {}};
  found.state.key = found.key.check;
  return found;
}

Result<EncryptFound> match(Label label, const Drive& below, const Keys& keys) {
  const Result<EncryptState> state = decode_encrypt_body(label);
  if (!state) return fail(state.error());
  if (label.block_size != below.geometry().block_size) {
    return fail(Errc::kInvalid, "the drive below has other blocks than it had");
  }
  EncryptKey key(keys.key, label);
  if (key.check != state->key) {
    if (state->is_rotating && key.check == state->old_key) {
      return fail(Errc::kDenied,
                  "its key is being changed: give it the new one as key=NEW and this one as "
                  "old_key=OLD");
    }
    return fail(Errc::kDenied, "the key is wrong: this drive was written with another one");
  }
  EncryptFound found{
      .label = std::move(label), .state = *state, .key = std::move(key), .old_key = {}};
  if (!state->is_rotating) return found;
  if (!keys.old_key) {
    return fail(Errc::kDenied,
                "its key is being changed, and a part has the old one: give it that as "
                "old_key=OLD");
  }
  found.old_key.emplace(*keys.old_key, found.label);
  if (found.old_key->check != state->old_key) {
    return fail(Errc::kDenied, "the old key is wrong: a part was written with another one");
  }
  return found;
}

task::Task<Result<std::unique_ptr<Drive>>> open_encrypt(ServiceParts parts) {
  const Result<Keys> keys = read_keys(parts);
  if (!keys) co_return fail(keys.error());
  Drive& below = *parts.below[0];
  Result<std::optional<Label>> label =
      co_await find_label(parts.env, below, kEncryptLabel, {.may_format = parts.may_format});
  if (!label) co_return fail(label.error());
  Result<EncryptFound> found =
      *label ? match(std::move(**label), below, *keys) : make_new(parts.env, below, *keys);
  if (!found) co_return fail(found.error());
  found->rate = parts.options.number("rate");
  auto drive = std::make_unique<EncryptDrive>(parts.env, parts.files, std::move(parts.below),
                                              std::move(*found));
  const Result<void> begun = co_await drive->begin();
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "key",
     .kind = ServiceOption::Kind::kFile,
     .default_value = "",
     .what = "a file with the key, which 'cairn key new drive --output FILE' makes"},
    {.key = "old_key",
     .kind = ServiceOption::Kind::kFile,
     .default_value = kNoFile,
     .what = "the key before, while it is being changed"},
    {.key = "rate",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "bytes per second of changing keys; 0: any",
     .max = uint64_t{1} << 50},
};

}  // namespace

std::optional<DriveKey> parse_drive_key(std::string_view text) {
  std::optional<std::vector<std::byte>> bytes = crypto::from_base64(text);
  if (!bytes) return std::nullopt;
  std::optional<DriveKey> key;
  if (bytes->size() == kDriveKeySize) key.emplace(Bytes(*bytes));
  crypto::wipe(*bytes);
  return key;
}

constexpr Service kEncrypt{.name = "encrypt",
                           .what = "ciphertext below, by AES-256-XTS",
                           .example = "encrypt({}, key=drive.key)",
                           .options = kOptions,
                           .open = open_encrypt};

}  // namespace cairn::drive
