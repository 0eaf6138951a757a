package page

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// goal is a line of the table of what is wanted.
type goal struct {
	What, Want string
	// Got is the figure, and Verdict "met", "not met", or "reported" where there is no
	// measure for it.
	Got, Verdict string
	// Why is where the time goes, by the profile, if it is not met.
	Why string
}

// judge compares with what is wanted. What was not measured is not listed.
func judge(r *results.Results) []goal {
	var goals []goal
	for _, find := range []func(*results.Results) []goal{straightGoals, throughGoals, burstGoals, replicaGoals, growthGoals, largeGoals, profileGoals} {
		goals = append(goals, find(r)...)
	}
	return goals
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "not met"
}

// atMost judges a ratio or a figure; the measure is rounded as it is shown.
func atMost(got, most float64) string { return verdict(got > 0 && got < most+0.005) }

func straightGoals(r *results.Results) []goal {
	remembered, fresh, job, controller := r.Target("router-remembered"), r.Target("router-new"), r.Target("job"), r.Target("noop-controllerruntime")
	if remembered == nil {
		return nil
	}
	toJob, toController := results.Ratio(remembered.One, job.One), results.Ratio(fresh.One, controller.One)
	cpu := cpuOfThousand(remembered)
	goals := []goal{
		{
			What: "straight to the webhook, decision remembered: p50", Want: "at most 1.2 times the hard-coded job on net/http",
			Got: fmt.Sprintf("%s ms, %s times", milliseconds(results.MedianOf(remembered.One, p50)), ratio(toJob)), Verdict: atMost(toJob, 1.2),
		},
		{
			What: "the same: processor time", Want: "at most 0.45 s for 1000", Got: fmt.Sprintf("%.2f s", cpu), Verdict: atMost(cpu, 0.45),
		},
		{
			What: "straight, every decision new: p50", Want: "at most 1.3 times the no-op on controller-runtime",
			Got: fmt.Sprintf("%s ms, %s times", milliseconds(results.MedianOf(fresh.One, p50)), ratio(toController)), Verdict: atMost(toController, 1.3),
		},
		{
			What: "start: from the process to ready", Want: "at most 1.0 s", Got: milliseconds(fresh.Ready) + " ms",
			Verdict: atMost(fresh.Ready.Seconds(), 1),
		},
	}
	explain(goals[:2], r, "remembered")
	explain(goals[2:3], r, "new")
	return goals
}

// explain says of goals that are not met where the time goes.
func explain(goals []goal, r *results.Results, profile string) {
	for _, p := range r.Profiles {
		if p.Name != profile {
			continue
		}
		var largest []string
		for _, f := range p.Packages[:min(4, len(p.Packages))] {
			largest = append(largest, fmt.Sprintf("%s %.0f %%", f.Name, f.Flat))
		}
		for i := range goals {
			if goals[i].Verdict == "not met" && len(largest) > 0 {
				goals[i].Why = "Of the processor time of " + p.Title + ", without the connection, packages take themselves: " + strings.Join(largest, ", ") + "; the profile below has the rest."
			}
		}
	}
}

func throughGoals(r *results.Results) []goal {
	router := r.Variant("router")
	if router == nil {
		return nil
	}
	to := func(of, other string) float64 {
		return results.Ratio(r.Variant(of).Samples[1], r.Variant(other).Samples[1])
	}
	alone, trusted := to("router", "job"), to("router-trusted", "noop")
	goals := []goal{
		{
			What: "through the API server, mutation alone: p50", Want: "at most 1.05 times the hard-coded job on net/http",
			Got:     fmt.Sprintf("%s times; %s times the MutatingAdmissionPolicy with one JSONPatch", ratio(alone), ratio(to("router", "map-jsonpatch"))),
			Verdict: atMost(alone, 1.05),
		},
		{
			What: "through the API server, all of it: p50", Want: "reported",
			Got: fmt.Sprintf("mutation %s times none; with validation %s; with the guards %s", ratio(to("router", "none")),
				ratio(to("router-validated", "none")), ratio(to("router-all", "none"))),
			Verdict: "reported",
		},
		{
			What: "a trusted pod that keeps its route: p50", Want: "at most 1.05 times the no-op webhook on net/http",
			Got: ratio(trusted) + " times", Verdict: atMost(trusted, 1.05),
		},
	}
	explain(goals, r, "remembered")
	return goals
}

func burstGoals(r *results.Results) []goal {
	job, router := r.BurstOf("job"), r.BurstOf("router")
	if router == nil {
		return nil
	}
	got := results.RatioOf(router.Elapsed, job.Elapsed)
	return []goal{{
		What: fmt.Sprintf("burst: %d pods by 32 clients, stored", router.Pods), Want: "no error; at most 1.1 times the hard-coded job's time",
		Got: fmt.Sprintf("no error; %s ms, %s times", milliseconds(results.Median(router.Elapsed)), ratio(got)), Verdict: atMost(got, 1.1),
	}}
}

func replicaGoals(r *results.Results) []goal {
	var goals []goal
	for _, w := range r.Replicas {
		g := goal{What: fmt.Sprintf("%s of %d", w.Kind, w.Pods), Want: fmt.Sprintf("one evaluation, %d remembered", w.Pods-1)}
		g.Got = fmt.Sprintf("%d evaluated, %d remembered", w.Evaluated, w.Remembered)
		g.Verdict = verdict(w.Evaluated == 1 && w.Remembered == w.Pods-1)
		if !w.Counted {
			g.Got, g.Verdict = "this version does not count evaluations", "not met"
		}
		goals = append(goals, g)
	}
	return goals
}

func growthGoals(r *results.Results) []goal {
	var goals []goal
	for _, c := range r.Growth {
		if len(c.Points) == 0 {
			continue
		}
		last := len(c.Points) - 1
		g := goal{
			What: fmt.Sprintf("growth: %s to %s %s", results.Thousands(c.Points[0].Size), results.Thousands(c.Points[last].Size), c.Title),
			Want: "a new decision's p50 grows by at most a tenth",
			Got:  ratio(c.Growth(last)) + " times", Verdict: atMost(c.Growth(last), 1.1),
		}
		if fault := c.Points[last].Fault; fault != "" {
			g.Got, g.Why = "no figure", fault
		}
		if c.Name == "files" {
			g.Want, g.Verdict = "reported: each file is evaluated", "reported"
		}
		goals = append(goals, g)
	}
	return goals
}

func largeGoals(r *results.Results) []goal {
	l := r.Large
	if l == nil {
		return nil
	}
	pods := "it may not list pods"
	if l.MayListPods {
		pods = "it may list pods"
	}
	where := fmt.Sprintf("%s nodes, %s namespaces, %s classes", results.Thousands(l.Nodes), results.Thousands(l.Namespaces), results.Thousands(l.RuntimeClasses))
	if l.Fault != "" {
		return []goal{{What: "memory and start: " + where, Want: "at most 150 MB resident, none of it pods", Got: "no figure", Verdict: "not met", Why: l.Fault}}
	}
	return []goal{
		{
			What: "memory: " + where + ", " + results.Thousands(l.Pods) + " pods", Want: "at most 150 MB resident, none of it pods",
			Got: megabytes(max(l.Idle, l.Memory)) + " MB; " + pods, Verdict: verdict(max(l.Idle, l.Memory) <= 150e6 && !l.MayListPods),
		},
		{What: "start there: from the process to ready", Want: "reported", Got: milliseconds(l.Start) + " ms", Verdict: "reported"},
	}
}

// wire are the packages that a decision which is remembered cannot do without.
var wire = regexp.MustCompile(`(^|/)(json|jsontext|jsonwire|tls|crypto|syscall)(/|$)`)

// profileGoals says what takes processor time beside what is read and written.
func profileGoals(r *results.Results) []goal {
	var goals []goal
	for _, p := range r.Profiles {
		if p.Name != "remembered" {
			continue
		}
		others, known := []string{}, 0.0
		for _, f := range p.Packages {
			switch {
			case wire.MatchString(f.Name):
				known += f.Flat
			case f.Flat > 5:
				others = append(others, fmt.Sprintf("%s %.0f %%", f.Name, f.Flat))
			}
		}
		g := goal{
			What: "processor time of " + p.Title + ", by package", Want: "none but JSON, TLS and system calls takes more than 5 % itself",
			Got: fmt.Sprintf("JSON and TLS %.0f %%", known), Verdict: verdict(len(others) == 0),
		}
		if len(others) > 0 {
			g.Got += "; more than 5 %: " + strings.Join(others, ", ")
		}
		goals = append(goals, g)
	}
	return goals
}
