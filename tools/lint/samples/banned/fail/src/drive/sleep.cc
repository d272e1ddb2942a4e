// SPDX-License-Identifier: Apache-2.0
void nap() {
  sleep(1);
  ::usleep(1);
  if (tired) nanosleep(&spec, nullptr);
  std::this_thread::sleep_for(second);
}
