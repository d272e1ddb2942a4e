# SPDX-License-Identifier: Apache-2.0
# Cases: namespaces come, go and grow while hosts are connected, who learn of it without asking.

case_namespace_resized() {
  connect
  ask target add 3 64 || fail "cannot add a namespace"
  expect "namespace 3 seen" have_namespaces 3
  expect "its size seen" size_is 3 $((64 << 20))
  ask target resize 3 96 || fail "cannot resize a namespace"
  expect "growth to 96 MiB seen" size_is 3 $((96 << 20))
  verified_io grown "$(device 3)" --offset=60M --size=8M --bs=128k
  ask target resize 3 32 || fail "cannot shrink a namespace"
  expect "shrinkage to 32 MiB seen" size_is 3 $((32 << 20))
  verified_io shrunken "$(device 3)" --size=2M --bs=128k
  ask target remove 3 || fail "cannot remove a namespace"
  expect "namespace 3 gone" have_no_namespace 3
}

case_namespace_added_and_removed_under_load() {
  connect
  local round
  begin_load 1
  for round in 1 2; do
    ask target add 3 64 || fail "cannot add a namespace"
    expect "namespace 3 seen" have_namespaces 3
    verified_io "added$round" "$(device 3)" --size=1M --bs=64k
    ask target remove 3 || fail "cannot remove a namespace"
    expect "namespace 3 gone" have_no_namespace 3
  done
  expect_progress 1
  end_load
}

# The I/O on it ends with an error, neither hangs nor harms the neighbour's.
case_namespace_removed_while_busy() {
  connect
  begin_load 1
  ask target add 3 64 || fail "cannot add a namespace"
  expect "namespace 3 seen" have_namespaces 3
  fio --name=victim --filename="$(device 3)" --ioengine=libaio --direct=1 --iodepth=8 --bs=16k \
    --rw=randrw --size=48M --loops=100 --output=victim.log 2>&1 &
  local victim=$!
  expect_progress 3
  ask target remove 3 || fail "cannot remove a namespace"
  expect "namespace 3 gone" have_no_namespace 3
  ended() { ! kill -0 "$victim"; }
  expect "end of the I/O on it" ended
  ! wait "$victim" || fail "I/O on a removed namespace ended well"
  expect_progress 1
  end_load
}
