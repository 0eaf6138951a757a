package main

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// limitMemory makes the garbage collector work harder near the container's limit of
// memory, rather than have the kernel end the process. GOMEMLIMIT wins if it is set, and
// without a limit there is nothing to do.
func limitMemory(log logr.Logger) {
	switch limit, err := memlimit.Set(); {
	case err != nil:
		log.V(1).Info("the container's memory limit is not known", "reason", err.Error())
	case limit < math.MaxInt64:
		log.Info("memory limit set", "bytes", limit)
	}
}
