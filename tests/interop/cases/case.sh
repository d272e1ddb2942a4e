# SPDX-License-Identifier: Apache-2.0
# The script of a host's guest: what cases are written with, and what runs them.
#
# A case is a function case_NAME in one of the other files here. It runs in a shell of its own with
# `set -e` and ends with success, with `fail WHY`, or with `cannot WHY` when this kernel or the
# kernel's own target has no such thing. It finds in its environment
#
#   ADDR PORT NQN     where the target is
#   TARGET            its kind: kernel or cairn
#
# and it leaves nothing behind: what it connected, mounted and started is undone when it ends.
. /lib.sh
timeout_s=120  # as long as the driver's own, which the kernel's options set
modprobe -a nvme-tcp ext4 xfs
for file in /test/*.sh; do [ "$file" = /test/case.sh ] || . "$file"; done

# The first reason is the cause; what follows from it says nothing new.
fail() { [ -e /tmp/reason ] || echo "$*" >/tmp/reason; exit 1; }
cannot() { echo "$*" >/tmp/reason; exit 77; }

# target_lacks WHAT: the kernel's own target may, ours may not.
target_lacks() {
  [ "$TARGET" = cairn ] && fail "the target has no $*"
  cannot "the kernel's target has no $*"
}

# expect WHAT COMMAND...: waits for a condition, as long as a busy machine may take.
expect() {
  local what=$1
  shift
  wait_for $timeout_s "$@" || fail "$what: not within $timeout_s s"
}

# --- controllers and namespaces

# connect [OPTIONS]: connects and waits for the first two namespaces. Reconnects quickly, and does
# not give up a target that gets little of a busy machine.
connect() {
  quiet nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" \
    --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=30 "$@"
  expect "namespaces 1 and 2 there" have_namespaces 1 2
}

# What follows runs often, and asks no other program: a process costs much in an emulated processor.
controllers() {
  local folder nqn
  for folder in /sys/class/nvme/nvme*; do
    if read -r nqn <"$folder/subsysnqn" && [ "$nqn" = "$NQN" ]; then echo "${folder##*/}"; fi
  done 2>/dev/null
}

controller() {
  local first
  read -r first < <(controllers) && echo "$first"
}

state_is() { # STATE [CONTROLLER]
  local state
  read -r state <"/sys/class/nvme/${2:-$(controller)}/state" && [ "$state" = "$1" ]
}
state_is_not() { ! state_is "$@"; }

# device NSID: the block device of a namespace; fails when there is none.
device() {
  local folder nsid nqn
  for folder in /sys/block/nvme*n*; do
    case ${folder##*/} in *c*n*) continue ;; esac  # one path of several
    if read -r nsid <"$folder/nsid" && [ "$nsid" = "$1" ] &&
      read -r nqn <"$folder/device/subsysnqn" && [ "$nqn" = "$NQN" ]; then
      echo "/dev/${folder##*/}"
      return
    fi
  done 2>/dev/null
  return 1
}

have_namespaces() {
  local nsid
  for nsid; do [ -b "$(device "$nsid")" ] || return 1; done
}
have_no_namespace() { ! device "$1"; }

size_is() { # NSID BYTES
  local dev sectors
  dev=$(device "$1") && read -r sectors <"/sys/block/${dev#/dev/}/size" && ((sectors * 512 == $2))
}

block_size() { # DEVICE
  local bytes
  read -r bytes <"/sys/block/${1#/dev/}/queue/logical_block_size" && echo "$bytes"
}
# blocks DEVICE KIB: so many of the device's blocks.
blocks() { echo $(($2 * 1024 / $(block_size "$1"))); }
# zero_based DEVICE KIB: the same as NVMe counts them in most commands.
zero_based() { echo $(($(blocks "$@") - 1)); }

# quiet COMMAND...: it must succeed and warn of nothing; `field` reads what it printed.
quiet() {
  "$@" >/tmp/case/out 2>/tmp/case/err || fail "$* ended with $?: $(tail -n 1 /tmp/case/err)"
  [ ! -s /tmp/case/err ] || fail "$* warned: $(head -n 1 /tmp/case/err)"
}

# refused STATUS COMMAND...: it must fail, and nvme-cli must name the NVMe status.
refused() {
  local status=$1
  shift
  ! "$@" >/tmp/case/out 2>&1 || fail "$* succeeded, but had to fail with $status"
  grep -qi "$status" /tmp/case/out || fail "$* failed with $(head -n 1 /tmp/case/out), not $status"
}

# field NAME: the value that the last output gives it, in decimal if it is a number.
field() {
  local name value
  while IFS=: read -r name value; do
    [ "${name%%[[:space:]]*}" = "$1" ] || continue
    read -r value _ <<<"$value"
    case $value in 0x*) echo $((value)) ;; *) echo "$value" ;; esac
    return
  done </tmp/case/out
  fail "nvme-cli shows no $1"
}

# --- data

# pattern KIB FILE: bytes that differ everywhere, and from those of any earlier pattern.
pattern() { dd if=/dev/urandom of="$2" bs=1k count="$1" status=none; }

put() { # FILE DEVICE OFFSET_IN_KIB
  dd if="$1" of="$2" bs=128k seek="$3"k oflag=direct,seek_bytes conv=fsync status=none
}
get() { # DEVICE OFFSET_IN_KIB SIZE_IN_KIB: to standard output
  dd if="$1" bs=128k skip="$2"k count="$3"k iflag=direct,skip_bytes,count_bytes status=none
}

# same_as FILE FILE_OFFSET_IN_KIB DEVICE OFFSET_IN_KIB SIZE_IN_KIB
same_as() {
  get "$3" "$4" "$5" | cmp - <(tail -c +$(($2 * 1024 + 1)) "$1" | head -c $(($5 * 1024)))
}
reads_zeroes() { # DEVICE OFFSET_IN_KIB SIZE_IN_KIB
  get "$@" | cmp -n $(($3 * 1024)) - /dev/zero
}

# verified_io NAME DEVICES OPTIONS...: writes what can be told apart, reads it back.
verified_io() {
  local name=$1 devices=$2 device jobs=()
  shift 2
  for device in $devices; do jobs+=(--name="$name" --filename="$device"); done
  # The kernel sends in the context of whoever asks, and lets it have the SIGPIPE of a target that
  # is gone.
  (trap '' PIPE
    exec fio --ioengine=libaio --direct=1 --iodepth=16 --rw=randwrite --verify=crc32c \
      --verify_fatal=1 --randrepeat=0 --group_reporting "$@" "${jobs[@]}"
  ) >"/tmp/case/$name.log" 2>&1 || {
    cat "/tmp/case/$name.log"
    fail "fio $name on $devices: $(grep -m 1 -iE 'verify|err|fio:' "/tmp/case/$name.log")"
  }
}

# begin_load NSID: verified I/O on a namespace, in the background, until end_load.
begin_load() {
  rm -f /tmp/case/enough
  (
    while [ ! -e /tmp/case/enough ]; do
      verified_io "load$1" "$(device "$1")" --size=8M --bsrange=4k-64k --iodepth=8 \
        --verify_backlog=64
    done
  ) &
  load=$!
  expect_progress "$1"
}

# completed NSID: how many reads and writes, over all paths. (6.1 does not count at their head.)
completed() {
  local dev file fields sum=0
  dev=$(device "$1") || return
  dev=${dev#/dev/}
  for file in /sys/block/"${dev%n*}"c*n"${dev##*n}"/stat; do
    read -r -a fields <"$file" && sum=$((sum + fields[0] + fields[4]))
  done 2>/dev/null
  echo "$sum"
}
completed_more_than() { (($(completed "$1") > $2)); }

expect_progress() { # NSID
  expect "I/O going on" completed_more_than "$1" $(($(completed "$1") + 50))
}

end_load() {
  touch /tmp/case/enough
  wait "$load" || fail "the I/O in the background failed"
}

# --- running

# kernel_errors: what the kernel's NVMe driver complained about during this case. A UUID may have a
# bad word in it by chance.
kernel_errors() {
  dmesg | sed 's/[0-9a-f]\{8\}-[0-9a-f-]\{27\}//g' | grep -E \
    'nvme.*(error|fail|invalid|timeout|mismatch|unexpected|bad|warn)|WARNING:|BUG:|I/O error'
}
no_complaints() {
  ! kernel_errors >/tmp/case/out || fail "the kernel says: $(head -n 1 /tmp/case/out)"
}

# undo: ends what the case has started. Fails when something stays, so that the guest is of no use.
undo() {
  rm -f /tmp/case/enough
  killall -KILL fio
  grep -q ' /mnt ' /proc/mounts && { umount /mnt || umount -l /mnt; }
  nvme disconnect-all
  echo 0 >/sys/kernel/tracing/events/nvme/enable
  wait_for $timeout_s no_controllers
}
no_controllers() { [ -z "$(ls /sys/class/nvme)" ]; }

# run_case NAME: status 0, 1 or 77; prints the reason unless 0. The log is in /tmp/case.log.
run_case() {
  local status
  rm -rf /tmp/case /tmp/reason /tmp/trap
  mkdir /tmp/case
  dmesg -c >/dev/null
  echo "interop: case $1" >/dev/kmsg
  (
    set -eE
    trap 'echo "line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND ended with $?" >/tmp/trap' ERR
    cd /tmp/case
    "case_$1"
  ) >/tmp/case.log 2>&1
  status=$?
  case $status in
    0) ;;
    77) cat /tmp/reason ;;
    *)
      cat /tmp/reason 2>/dev/null || cat /tmp/trap 2>/dev/null || echo "it ended with $status"
      cat /tmp/case/out /tmp/case/err >>/tmp/case.log 2>/dev/null
      dmesg >>/tmp/case.log
      status=1
      ;;
  esac
  undo >>/tmp/case.log 2>&1 || status=99
  return $status
}

serve
