package benchmark

import "fmt"

// Plan is which pods there will be, and in which order.
type Plan struct {
	Options
	// Run tells the pods of this benchmark from those of others.
	Run string
	// Phases follow one another.
	Phases []Phase
}

// Phase are pods of which several may exist at once.
type Phase struct {
	Parallel int
	Samples  []Sample
}

// Sample is one pod to measure.
type Sample struct {
	// Pod is its name.
	Pod string
	// Class is the RuntimeClass that it names.
	Class    string
	Workload Workload
	// Round counts from 0. In a round each class has one turn.
	Round int
	// Warmup: it is run and not counted.
	Warmup bool
}

// NewPlan lays a benchmark out: the pods that warm up, the short pods that time a start,
// and each workload alone. Classes take turns, so that whatever disturbs the cluster
// meanwhile disturbs them alike, and another class begins each round.
func NewPlan(run string, o Options) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{Options: o, Run: run}
	p.add(o.Parallel, o.Warmup, true, start())
	p.add(o.Parallel, o.Pods, false, start())
	p.add(1, o.Runs, false, append(builtin(), o.Workloads...)...)
	if total := p.Total(); total > o.MaxPods {
		return nil, fmt.Errorf("this takes %d pods and max-pods is %d: raise it, or measure less (pods, runs, class)", total, o.MaxPods)
	}
	return p, nil
}

func (p *Plan) add(parallel, rounds int, warmup bool, workloads ...Workload) {
	phase := Phase{Parallel: parallel}
	for round := range rounds {
		for _, workload := range workloads {
			for turn := range p.Classes {
				phase.Samples = append(phase.Samples, Sample{
					Pod:      fmt.Sprintf("benchmark-%s-%d", p.Run, p.Total()+len(phase.Samples)),
					Class:    p.Classes[(round+turn)%len(p.Classes)],
					Workload: workload, Round: round, Warmup: warmup,
				})
			}
		}
	}
	if len(phase.Samples) > 0 {
		p.Phases = append(p.Phases, phase)
	}
}

// Total is the number of pods.
func (p *Plan) Total() int {
	total := 0
	for _, phase := range p.Phases {
		total += len(phase.Samples)
	}
	return total
}

// Distinct are the samples that differ by more than their turn, each with how often it is
// there.
func (p *Plan) Distinct() (samples []Sample, counts map[string]int) {
	first := map[[2]string]string{}
	counts = map[string]int{}
	for _, phase := range p.Phases {
		for _, s := range phase.Samples {
			key := [2]string{s.Class, s.Workload.Name}
			if _, known := first[key]; !known {
				first[key] = s.Pod
				samples = append(samples, s)
			}
			counts[first[key]]++
		}
	}
	return samples, counts
}
