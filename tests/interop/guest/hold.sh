# SPDX-License-Identifier: Apache-2.0
# Boots and takes commands, nothing more.
. /lib.sh
serve
