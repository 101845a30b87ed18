#!/bin/sh
# Says that it is ptxas and then does what $BROKEN says: writes nothing, noise, or machine code of another kernel; or
# hangs, at once or while it assembles; or crashes.
if [ "$1" = --version ]; then
  [ "$BROKEN" = hangs ] && exec sleep 100
  exec ptxas --version
fi
for last; do :; done
case "$BROKEN" in
nothing) : > "$last" ;;
slow) sleep 100 ;;
crash) echo "working" && kill -SEGV $$ ;;
noise) head -c 3000 /dev/zero > "$last" ;;
other)
  printf '.version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry other() { ret; }\n' > "$last.ptx"
  exec ptxas -arch=sm_90a "$last.ptx" -o "$last"
  ;;
esac
