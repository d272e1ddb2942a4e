# SPDX-License-Identifier: Apache-2.0
# Cases: what is written is read back, by fio, by file systems and by single commands.

# Both namespaces at once: a box serves them from different kinds of drives.
both() { # OPTIONS...
  connect
  verified_io both "$(device 1) $(device 2)" "$@"
  no_complaints
}

case_fio_4k() { both --bs=4k --size=2M --iodepth=32; }
case_fio_128k() { both --bs=128k --size=8M; }
case_fio_1m() { both --bs=1M --size=12M --iodepth=4; }
case_fio_mixed() {
  both --rw=randrw --rwmixread=40 --bssplit=4k/50:36k/20:128k/20:1m/10 --size=6M
}
# The smallest a namespace can do.
case_fio_blocks() {
  connect
  local nsid
  for nsid in 1 2; do
    verified_io "blocks$nsid" "$(device $nsid)" --bs="$(block_size "$(device $nsid)")" --size=256k
  done
  no_complaints
}

# file_system COMMAND...: made by COMMAND, filled with a copy, and read back past all caches.
file_system() {
  local file
  connect
  "$@" "$(device 1)" || fail "$1 ended with $?"
  mount "$(device 1)" /mnt || fail "cannot mount"
  cp -a /bin /mnt/ || fail "cannot copy"
  umount /mnt
  mount "$(device 1)" /mnt || fail "cannot mount again"
  find /bin -type f >files
  while read -r file; do
    cmp "$file" "/mnt$file" || fail "the copy of $file differs"
  done <files
  umount /mnt
  no_complaints
}

case_ext4() {
  file_system mkfs.ext4 -q -F
  e2fsck -fn "$(device 1)" || fail "e2fsck found errors"
}

case_xfs() {
  file_system mkfs.xfs -q -f
  xfs_repair -n "$(device 1)" || fail "xfs_repair found errors"
}

# zeroed_by DEVICE COMMAND...: COMMAND makes 256 KiB at 512 KiB zero, and nothing around them.
zeroed_by() {
  local dev=$1
  shift
  pattern 1024 data
  put data "$dev" 0
  "$@" || fail "$* ended with $?"
  reads_zeroes "$dev" 512 256 || fail "what $1 covered does not read zeroes"
  same_as data 0 "$dev" 0 512 || fail "$1 changed what is before its range"
  same_as data 768 "$dev" 768 256 || fail "$1 changed what is after its range"
}

case_discard() {
  connect
  local nsid
  for nsid in 1 2; do
    zeroed_by "$(device $nsid)" blkdiscard -o 512K -l 256K "$(device $nsid)"
  done
  blkdiscard "$(device 2)" || fail "cannot discard all of it"
  reads_zeroes "$(device 2)" 0 1024 || fail "a discarded namespace does not read zeroes"
  no_complaints
}

# Several ranges in one command, with a hole between them.
case_discard_ranges() {
  connect
  local dev
  dev=$(device 1)
  pattern 1024 data
  put data "$dev" 0
  quiet nvme dsm "$dev" --ad --slbs="$(blocks "$dev" 4),$(blocks "$dev" 512)" \
    --blocks="$(blocks "$dev" 4),$(blocks "$dev" 32)"
  reads_zeroes "$dev" 4 4 || fail "the first range does not read zeroes"
  reads_zeroes "$dev" 512 32 || fail "the second range does not read zeroes"
  same_as data 0 "$dev" 0 4 || fail "what is before the ranges has changed"
  same_as data 8 "$dev" 8 504 || fail "what is between the ranges has changed"
  same_as data 544 "$dev" 544 480 || fail "what is after the ranges has changed"
}

case_fstrim() {
  connect
  local dev trimmed
  dev=$(device 1)
  mkfs.ext4 -q -F "$dev" 128M
  mount "$dev" /mnt
  pattern 8192 /mnt/data
  sync
  rm /mnt/data
  sync
  trimmed=$(fstrim -v /mnt | sed 's/.*(\([0-9]*\) .*/\1/')
  ((trimmed >= 8 << 20)) || fail "fstrim gave back $trimmed bytes of 8 MiB"
  umount /mnt
  e2fsck -fn "$dev" || fail "e2fsck found errors"
  no_complaints
}

case_write_zeroes() {
  connect
  local nsid dev range
  for nsid in 1 2; do
    dev=$(device $nsid)
    range="--start-block=$(blocks "$dev" 512) --block-count=$(zero_based "$dev" 256)"
    zeroed_by "$dev" blkdiscard -z -o 512K -l 256K "$dev"
    zeroed_by "$dev" nvme write-zeroes "$dev" $range
    zeroed_by "$dev" nvme write-zeroes "$dev" $range --deac
  done
  no_complaints
}

oncs_has() { # BIT NAME
  quiet nvme id-ctrl "/dev/$(controller)"
  (($(field oncs) & $1)) || target_lacks "$2"
}

case_compare() {
  connect
  oncs_has 1 Compare
  local dev
  dev=$(device 1)
  pattern 64 data
  put data "$dev" 0
  nvme compare "$dev" -s 0 -c "$(zero_based "$dev" 64)" -z 65536 -d data || fail "equal data differ"
  cp data other
  printf X | dd of=other bs=1 seek=65535 conv=notrunc status=none
  refused 'Compare Failure' nvme compare "$dev" -s 0 -c "$(zero_based "$dev" 64)" -z 65536 -d other
  nvme compare "$dev" -s 0 -c "$(zero_based "$dev" 60)" -z 61440 -d other ||
    fail "data that are equal up to there differ"
}

case_copy() {
  connect
  oncs_has 0x100 Copy
  local dev
  dev=$(device 1)
  pattern 64 data
  put data "$dev" 0
  quiet nvme copy "$dev" --sdlba="$(blocks "$dev" 2048)" --slbs="0,$(blocks "$dev" 32)" \
    --blocks="$(zero_based "$dev" 4),$(zero_based "$dev" 8)" --format=0
  same_as data 0 "$dev" 2048 4 || fail "the first range was not copied"
  same_as data 32 "$dev" 2052 8 || fail "the second range was not copied"
}

case_flush() {
  connect
  local dev
  dev=$(device 1)
  quiet nvme flush "$dev"
  quiet nvme id-ctrl "/dev/$(controller)"
  if (($(field vwc) & 1)); then
    grep -q 'write back' "/sys/block/${dev#/dev/}/queue/write_cache" ||
      fail "the kernel did not take note of the volatile write cache"
  fi
  verified_io flushes "$dev" --size=1M --bs=16k --fsync=4
  verified_io fua "$dev" --size=1M --bs=16k --ioengine=psync --sync=dsync
  no_complaints
}

case_reservations() {
  connect
  oncs_has 0x20 Reservations
  local dev
  dev=$(device 2)
  quiet nvme resv-register "$dev" --nrkey=0x1234 --rrega=0
  quiet nvme resv-acquire "$dev" --crkey=0x1234 --rtype=1 --racqa=0
  quiet nvme resv-report "$dev" --eds
  grep -qi 'rtype.*1' /tmp/case/out || fail "the report does not show a write exclusive reservation"
  verified_io held "$dev" --size=1M --bs=4k
  quiet nvme resv-release "$dev" --crkey=0x1234 --rtype=1 --rrela=0
  quiet nvme resv-register "$dev" --crkey=0x1234 --rrega=1
}

# A stack with `atomic` on top says how much it writes wholly or not at all, and Linux lets programs
# rely on that; on any other namespace it refuses more than a block.
case_atomic_writes() {
  [ "$TARGET" = cairn ] || cannot "the kernel's target has no atomic drives"
  connect
  local limit=queue/atomic_write_unit_max_bytes
  [ -e "/sys/block/$(basename "$(device 1)")/$limit" ] || cannot "this kernel has no RWF_ATOMIC"
  ask target add 3 64 atomic || fail "cannot add a namespace"
  expect "namespace 3 seen" have_namespaces 3
  local device unit
  device=$(device 3)
  unit=$(cat "/sys/block/$(basename "$device")/$limit")
  [ "$unit" = 65536 ] || fail "the kernel takes the unit for $unit bytes, not 65536"
  /test/atomic_write "$device" 65536 || fail "an atomic write of 64 KiB is refused"
  [ "$(get "$device" 0 64 | tr -d Z | wc -c)" = 0 ] || fail "it is not what was written"
  ! /test/atomic_write "$device" 131072 || fail "an atomic write of two units is taken"
  ! /test/atomic_write "$(device 1)" 65536 || fail "a drive that tears writes takes an atomic one"
  ask target remove 3 || fail "cannot remove a namespace"
  expect "namespace 3 gone" have_no_namespace 3
  no_complaints
}
