package policies

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime runs work and returns how long a processor worked on it. A busy machine lets it
// wait longer than that.
func cpuTime(work func()) time.Duration {
	runtime.LockOSThread() // the clock is the thread's
	defer runtime.UnlockOSThread()
	begin := threadTime()
	work()
	return threadTime() - begin
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // the clock is part of Linux, and &t is there
	}
	return time.Duration(t.Nano())
}
