#!/bin/sh
# A stand-in of `tc` for a kernel without CAKE: what sets CAKE's bandwidth sets the rate of the HTB
# that autorate.py made; `qdisc show` tells the framing that cake-autorate looks for.
# TC is the machine's own. Everything else is passed to it.
case "$*" in
  "qdisc change root dev "*" cake bandwidth "*)
    exec "$TC" class change dev "$5" parent 1: classid 1:1 htb rate "$8" ceil "$8" quantum 1514 ;;
  "qdisc show dev "*)
    "$TC" "$@"
    echo "qdisc cake 1: dev $4 root bandwidth 1Mbit noatm overhead 0" ;;
  *) exec "$TC" "$@" ;;
esac
