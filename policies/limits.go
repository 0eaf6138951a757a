package policies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxBytes is the most that a policy may hold, in one file and in all of its own
// together: it is what the API server stores in a ConfigMap
// (MaxSecretSize in pkg/apis/core/validation of Kubernetes; etcd takes requests of 1.5
// MiB). That much compiles in 1.5 s and takes 110 MiB meanwhile, where a pod has 512.
const MaxBytes = 1 << 20

// Limits bound what a policy may take while it is loaded. They are wide, for a machine
// that is busy: what they find is a policy that explodes.
type Limits struct {
	// Answer is for one question of the self-test, as a processor's time, in the best of
	// three attempts: 250 ms by default. The shipped policy takes one or two.
	Answer time.Duration
	// Tests is for all rules named test_..., 10 s by default, and half of it for one.
	Tests time.Duration
	// Load is for everything, 30 s by default.
	Load time.Duration
}

// DefaultLimits are those of an engine that is given none.
func DefaultLimits() Limits {
	return Limits{Answer: 250 * time.Millisecond, Tests: 10 * time.Second, Load: 30 * time.Second}
}

const smaller = "move lists to the configuration, or split the file"

// checkSize refuses a policy that is too large, before anything reads it: no deadline
// ends the parser. Files of the shipped policy are not counted.
func checkSize(modules Modules) error {
	shipped := Shipped()
	var errs []error
	total, files := 0, 0
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		source := modules[name]
		if source == shipped[name] {
			continue
		}
		total += len(source)
		files++
		if len(source) > MaxBytes {
			errs = append(errs, &LocatedError{File: name, Line: 1, Hint: smaller,
				Err: fmt.Errorf("the file has %d bytes, and %d is the most: a ConfigMap holds no more", len(source), MaxBytes)})
		}
	}
	if len(errs) == 0 && total > MaxBytes {
		errs = append(errs, &LocatedError{Hint: "move lists to the configuration",
			Err: fmt.Errorf("the policy has %d bytes in %d files, and %d is the most: a ConfigMap holds no more", total, files, MaxBytes)})
	}
	return errors.Join(errs...)
}
