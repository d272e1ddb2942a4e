// SPDX-License-Identifier: Apache-2.0
#pragma once

// Time and files by name only: clock_gettime(), open(), std::thread, sleep(1).
class Mirror {
 public:
  Task<Result<void>> read(Lba first, Buffer& out);
  Task<Result<void>> write(Lba first, const Buffer& in);
  [[nodiscard]] bool open() const { return open_; }
  Stream& connect(Address to);
  static Mirror* socket(int number);
  Time time() const;

 private:
  bool open_ = false;
};
