// SPDX-License-Identifier: Apache-2.0
// `cairn key new drive`: a key for drives that encrypt.
#include <memory>
#include <string>

#include "apps/key/commands.h"
#include "apps/key/key_maker.h"
#include "crypto/base64.h"
#include "service/integrity/encrypt.h"

namespace cairn::apps {

namespace {

class NewDriveKeyCommand final : public KeyMaker {
 public:
  explicit NewDriveKeyCommand(CLI::App& app) {
    add_output(app);
    set_examples(app, {"cairn key new drive --output drive.key"});
  }

 private:
  std::string make(env::Env& env) override {
    drive::DriveKey key(drive::kDriveKeySize);
    env.fill_secret(key.mutable_bytes());
    return crypto::to_base64(key.bytes());
  }
};

}  // namespace

std::unique_ptr<Command> make_key_new_drive(CLI::App& app) {
  return std::make_unique<NewDriveKeyCommand>(app);
}

}  // namespace cairn::apps
