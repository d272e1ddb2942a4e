// SPDX-License-Identifier: Apache-2.0
#include "rack/types.h"

#include "env/address.h"
#include "nvme/format/nqn.h"

namespace cairn::rack {

namespace {

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]";
constexpr std::string_view kPlainLetters = kLetters.substr(0, kLetters.size() - 3);

bool is_name(std::string_view name, size_t size_max, std::string_view letters) {
  return !name.empty() && name.size() <= size_max &&
         name.find_first_not_of(letters) == std::string_view::npos;
}

}  // namespace

Result<void> check_drive_name(std::string_view name) {
  if (is_name(name, kDriveNameMax, kPlainLetters)) return {};
  return fail(Errc::kInvalid, "a drive's name is 1 to 64 letters, digits, '.', '_' and '-'");
}

Result<void> check_shelf_name(std::string_view name) {
  if (is_name(name, kShelfNameMax, kPlainLetters)) return {};
  return fail(Errc::kInvalid, "a shelf's name is 1 to 64 letters, digits, '.', '_' and '-'");
}

Result<void> check_box_name(std::string_view name) {
  if (is_name(name, kBoxNameMax, kLetters)) return {};
  return fail(Errc::kInvalid,
              "a box's name is 1 to 128 letters, digits, '.', '_', '-', ':', '[' and ']'");
}

Result<void> check_client_name(std::string_view name) {
  if (is_name(name, kBoxNameMax, kLetters)) return {};
  return fail(Errc::kInvalid,
              "a client's name is 1 to 128 letters, digits, '.', '_', '-', ':', '[' and ']'");
}

Result<void> check_amount(const Amount& amount) {
  if (amount.bytes == 0 || amount.bytes % kUnit != 0 || amount.bytes > kBytesMax) {
    return fail(Errc::kInvalid, "space is given in multiples of 1 MiB");
  }
  if (amount.iops > kBytesMax || amount.bandwidth > kBytesMax) {
    return fail(Errc::kInvalid, "so much in a second is no number of this world");
  }
  return {};
}

Result<void> check_place(const Endpoint& place) {
  const Result<env::Address> address = env::Address::parse(place.address);
  if (!address || address->family == env::Address::Family::kLocal || address->port == 0) {
    return fail(Errc::kInvalid, "a box is reached at an IP address and a port");
  }
  if (!nvme::is_nqn(place.nqn)) return fail(Errc::kInvalid, "a subsystem's name is an NQN");
  return {};
}

}  // namespace cairn::rack
