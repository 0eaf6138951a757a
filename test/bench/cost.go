package main

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// cpu is the processor time, user and system, that a process has used.
func cpu(pid int) (time.Duration, error) {
	stat, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// memory is the resident set of a process, in bytes.
func memory(pid int) (int64, error) {
	stat, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return int64(stat.ResidentMemory()), nil
}

// binary is the size of the file that a process runs.
func binary(pid int) (int64, error) {
	file, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return 0, err
	}
	return file.Size(), nil
}

func stat(pid int) (procfs.ProcStat, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return process.Stat()
}

// meter reads what processes cost meanwhile.
type meter struct {
	pids   []int
	before []time.Duration
}

// startMeter begins; a pid of zero costs nothing.
func startMeter(pids ...int) (*meter, error) {
	m := &meter{pids: pids}
	var err error
	m.before, err = m.read()
	return m, err
}

func (m *meter) read() ([]time.Duration, error) {
	used := make([]time.Duration, len(m.pids))
	for i, pid := range m.pids {
		if pid == 0 {
			continue
		}
		var err error
		if used[i], err = cpu(pid); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// each returns what every process used for one of n.
func (m *meter) each(n int) ([]time.Duration, error) {
	after, err := m.read()
	for i := range after {
		after[i] = (after[i] - m.before[i]) / time.Duration(n)
	}
	return after, err
}
