# usage: watch.sh DIR SCRATCH
# Waits on standard input. A line means that the control plane was stopped in good order; the end of
# the input without one means that the process that started it was killed. Then the processes noted
# in DIR/pids are killed, twice, since one may have been on its way when the first pass was made, and
# the folder SCRATCH, if not empty, is removed.
if read -r line; then
	exit 0
fi
for pass in 1 2; do
	while read -r pid; do
		# The process ID may have been given to another program since. Where there is a /proc, ask it.
		if [ -r "/proc/$pid/cmdline" ] && ! grep -qF "$1" "/proc/$pid/cmdline"; then
			continue
		fi
		kill -KILL "$pid"
	done <"$1/pids"
	sleep 1
done 2>/dev/null
[ -z "$2" ] || rm -rf "$2"
