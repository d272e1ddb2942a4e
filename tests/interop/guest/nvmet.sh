# SPDX-License-Identifier: Apache-2.0
# The kernel's own NVMe/TCP target, set up by the functions below: the script of a target's guest.
. /lib.sh
nvmet=/sys/kernel/config/nvmet

# nvmet_up ADDRESS...: loads the target and takes on addresses that are not the network card's. The
# target can then report in its discovery log where its hosts, beyond QEMU's network, find it.
nvmet_up() {
  local address
  modprobe -a nvmet nvmet-tcp
  echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet  # for 127.0.0.1
  for address; do
    ip addr show | grep -q "inet $address/" || ip addr add "$address/32" dev lo
  done
}

# nvmet_subsystem NQN: any host may connect. Serial number and model are the same after a restart.
nvmet_subsystem() {
  local folder=$nvmet/subsystems/$1
  mkdir "$folder"
  echo 1 >"$folder/attr_allow_any_host"
  echo cairn-interop >"$folder/attr_serial"
}

# nvmet_namespace NQN NSID DISK [GROUP [reserved]]: adds a namespace on the disk with that serial
# number. Its identifiers follow from the NSID, since hosts refuse a namespace that comes back with
# others. Hosts can reserve it if the last word is there, which needs a kernel from 6.13 on.
nvmet_namespace() {
  local folder=$nvmet/subsystems/$1/namespaces/$2 disk
  disk=$(disk_with_serial "$3") || { echo "there is no disk $3"; return 1; }
  mkdir "$folder"
  echo -n "$disk" >"$folder/device_path"
  printf '%08x-0000-4000-8000-000000000001' "$2" >"$folder/device_uuid"
  printf '%08x-0000-4000-8000-000000000002' "$2" >"$folder/device_nguid"
  [ -z "${4-}" ] || echo "$4" >"$folder/ana_grpid"
  [ "${5-}" != reserved ] || echo 1 >"$folder/resv_enable" || return 1
  echo 1 >"$folder/enable"
}

disk_with_serial() {
  local disk
  for disk in /sys/block/vd*; do
    [ "$(cat "$disk/serial")" != "$1" ] || { echo "/dev/${disk##*/}"; return; }
  done
  return 1
}

nvmet_namespace_remove() { # NQN NSID
  echo 0 >"$nvmet/subsystems/$1/namespaces/$2/enable"
  rmdir "$nvmet/subsystems/$1/namespaces/$2"
}

# nvmet_namespace_resized NQN NSID DISK BYTES: waits for the disk's new size and tells the hosts.
nvmet_namespace_resized() {
  local disk
  disk=$(disk_with_serial "$3") || return 1
  wait_for 10 test "$(blockdev --getsize64 "$disk")" = "$4" || return 1
  echo 1 >"$nvmet/subsystems/$1/namespaces/$2/revalidate_size"
}

# nvmet_port ID ADDRESS PORT IN_CAPSULE_BYTES NQN...: listens, and serves the subsystems there. Less
# than 4096 bytes would refuse even the data of Connect.
nvmet_port() {
  local folder=$nvmet/ports/$1 nqn
  mkdir "$folder"
  echo tcp >"$folder/addr_trtype"
  echo ipv4 >"$folder/addr_adrfam"
  echo "$2" >"$folder/addr_traddr"
  echo "$3" >"$folder/addr_trsvcid"
  echo "$4" >"$folder/param_inline_data_size"
  shift 4
  for nqn; do ln -s "$nvmet/subsystems/$nqn" "$folder/subsystems/$nqn"; done
}

# nvmet_host NQN HOST HASH GROUP KEY CONTROLLER_KEY: only this host may use the subsystem, with this
# key. CONTROLLER_KEY `none`: the target has none. The first port serves it.
nvmet_host() {
  local folder=$nvmet/hosts/$2 subsystem=$nvmet/subsystems/$1
  [ -d "$folder" ] || mkdir "$folder"
  [ -e "$nvmet/ports/1/subsystems/$1" ] || ln -s "$subsystem" "$nvmet/ports/1/subsystems/$1"
  if [ ! -e "$subsystem/allowed_hosts/$2" ]; then
    echo 0 >"$subsystem/attr_allow_any_host"
    ln -s "$folder" "$subsystem/allowed_hosts/$2"
  fi
  echo "hmac($3)" >"$folder/dhchap_hash"
  echo "$4" >"$folder/dhchap_dhgroup"
  echo -n "$5" >"$folder/dhchap_key"
  [ "$6" = none ] || echo -n "$6" >"$folder/dhchap_ctrl_key"
}

# nvmet_ana PORT GROUP STATE: optimized, non-optimized, inaccessible, persistent-loss or change.
nvmet_ana() {
  local folder=$nvmet/ports/$1/ana_groups/$2
  [ -d "$folder" ] || mkdir "$folder"
  echo "$3" >"$folder/ana_state"
}

serve
