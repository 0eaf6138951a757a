package benchmark

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Workload is what a pod's container does.
type Workload struct {
	// Name is a DNS label.
	Name string
	// Command is a line for /bin/sh -c.
	Command string
}

// Start is the workload of the pods whose start is timed.
const Start = "start"

// start lives for two of the kubelet's looks at its containers, which it takes each
// second (genericPlegRelistPeriod): what ends sooner may never be seen running.
func start() Workload { return Workload{Name: Start, Command: "sleep 2"} }

// builtin are the workloads of which the one asks much of the kernel and little of the
// processor, and the other the reverse. Each takes around a second on crun. They use
// what a shell has in itself, /bin/true, mkdir and rm.
func builtin() []Workload {
	return []Workload{
		{Name: "syscall-heavy", Command: `set -e
mkdir /tmp/benchmark
cd /tmp/benchmark
n=0
while [ $n -lt 5000 ]; do
  echo $n >file-$n
  [ -s file-$n ]
  n=$((n + 1))
done
n=0
while [ $n -lt 1000 ]; do
  /bin/true
  n=$((n + 1))
done
cd /
rm -r /tmp/benchmark`},
		{Name: "compute-heavy", Command: `n=0
x=1
while [ $n -lt 300000 ]; do
  x=$(((x * 1103515245 + 12345) % 2147483648))
  n=$((n + 1))
done`},
	}
}

// timed runs its arguments and leaves the kernel's uptime before and after as the
// termination message, or nothing if they failed: the kubelet then takes the end of the
// log. The API's own times have a resolution of a second, and date has no fractions in
// every image. Uptime has hundredths, in gVisor too, whose kernel counts from the start
// of the sandbox, by the wall clock.
const timed = `read -r before rest </proc/uptime
"$@"
status=$?
read -r after rest </proc/uptime
if [ $status -eq 0 ]; then echo "$before $after" >/dev/termination-log; fi
exit $status`

// arguments is the container's command.
func (w *Workload) arguments() []string {
	return []string{"/bin/sh", "-c", timed, "benchmark", "/bin/sh", "-c", unexpanded.Replace(w.Command)}
}

// unexpanded keeps a command from the kubelet, which would take $(NAME) for a variable
// of the container and $$ for an escaped $.
var unexpanded = strings.NewReplacer("$$", "$$$$", "$(", "$$(")

// elapsed reads what timed left.
func elapsed(message string) (time.Duration, error) {
	var uptimes []float64
	for _, field := range strings.Fields(message) {
		uptime, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("termination message %q: want the uptimes before and after", message)
		}
		uptimes = append(uptimes, uptime)
	}
	if len(uptimes) != 2 || uptimes[1] < uptimes[0] {
		return 0, fmt.Errorf("termination message %q: want the uptimes before and after", message)
	}
	// Whole hundredths: a difference of floats has more digits than it knows.
	return time.Duration((uptimes[1]-uptimes[0])*100+0.5) * 10 * time.Millisecond, nil
}
