//go:build linux

package node

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Stage is what a process of the test binary is there for. Each starts the next.
type Stage string

// The stages.
const (
	// Host checks the machine, builds, and compares the machine before and after.
	Host Stage = ""
	// Keeper outlives the others, and removes what a killed one cannot: cgroups and files.
	Keeper Stage = "keeper"
	// Init is process 1 of the namespaces: it sets them up, and reaps.
	Init Stage = "init"
	// Inside starts the cluster and runs the tests.
	Inside Stage = "inside"
)

const (
	stageVariable   = "RUNTIMECLASS_ROUTER_NODE_STAGE"
	scratchVariable = "RUNTIMECLASS_ROUTER_NODE_SCRATCH"
)

// CurrentStage is the stage of this process.
func CurrentStage() Stage { return Stage(os.Getenv(stageVariable)) }

// Scratch is the run's own folder. It lies outside of the namespaces' own mounts.
func Scratch() string { return os.Getenv(scratchVariable) }

// Name is of this run, on a machine that may have several.
func Name() string { return filepath.Base(Scratch()) }

// again is this program with the same arguments, as another stage.
func again(stage Stage, scratch string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"="+string(stage), scratchVariable+"="+scratch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}
