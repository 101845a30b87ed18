#!/bin/sh
# Runs ptxas and appends a line to the file $COUNTED_RUNS for every assembly.
case "$1" in --version) ;; *) echo run >> "$COUNTED_RUNS" ;; esac
exec ptxas "$@"
