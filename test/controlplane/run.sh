#!/bin/sh
# Notes its process ID for watch.sh and becomes the program this copy is named after. envtest calls
# the API server once with --help only, to see which flags it has.
dir=${0%/*}
[ "$1" = --help ] || echo $$ >>"$dir/pids"
exec "$dir/bin/${0##*/}" "$@"
