package benchmark

import (
	"cmp"
	"fmt"
	"slices"
)

// Notes say, class by class, which pods the figures lack, and why.
func (r *Report) Notes() []string {
	type lack struct {
		class, first   string
		failed, unseen int
	}
	var lacks []lack
	for _, pod := range r.Pods {
		i := slices.IndexFunc(lacks, func(l lack) bool { return l.class == pod.Class })
		if i < 0 {
			i, lacks = len(lacks), append(lacks, lack{class: pod.Class})
		}
		switch l := &lacks[i]; {
		case pod.Error != "":
			l.failed++
			l.first = cmp.Or(l.first, pod.Name+": "+pod.Error)
		case pod.Running == 0 && pod.Workload == Start && !pod.Warmup:
			l.unseen++
		}
	}
	var notes []string
	for _, l := range lacks {
		if l.failed > 0 {
			notes = append(notes, fmt.Sprintf("runtime class %s: %d of its pods failed and do not count, the first was %s", l.class, l.failed, l.first))
		}
		if l.unseen > 0 {
			notes = append(notes, fmt.Sprintf("runtime class %s: %d of its pods were first seen when they had ended; they do not count for %q", l.class, l.unseen, CreateToRunning))
		}
	}
	return notes
}
